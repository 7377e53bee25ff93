"""Our packages stand beside each other under plain names, so that a program may hide one behind a module of its own."""

from importlib.util import find_spec
from pathlib import Path

NAMES = ("chunkbus", "embeddings", "producers", "rebuild", "search", "settings", "sinks")


def require_ours() -> None:
    """ImportError where another module is found under the name of a package of ours."""
    root = Path(__file__).resolve().parents[1]
    for name in NAMES:
        try:
            spec = find_spec(name)
        except ValueError:  # what stands under that name was made without an import
            spec = None
        found = spec.origin if spec is not None else None
        if found is None or Path(found).resolve() != root / name / "__init__.py":
            raise ImportError(
                f"chunksink needs its package `{name}`, and Python finds {found or 'none'} under that name: "
                f"rename that, or put {root} before its folder in sys.path",
                name=name,
            )
