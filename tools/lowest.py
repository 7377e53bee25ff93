"""Prints constraints that pin each dependency with a lower bound in pyproject.toml to that version.

    python3 -m tools.lowest      (`make lowest` installs them, and runs the tests)

Without such a test a lower bound is a guess, and the first user with older packages finds the error.
"""

from __future__ import annotations

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from tools.lock import requirements


def main() -> int:
    print("\n".join(lowest(requirements())))
    return 0


def lowest(wanted: list[str]) -> list[str]:
    """A pin for each requirement that has a lower bound. If a package has several, the highest counts."""
    pins: dict[str, Version] = {}
    for requirement in map(Requirement, wanted):
        name = canonicalize_name(requirement.name)
        bounds = [Version(bound.version) for bound in requirement.specifier if bound.operator in (">=", "==", "~=")]
        if requirement.specifier and not bounds:
            raise SystemExit(f"{requirement} has no lower bound to test")
        if bounds:
            pins[name] = max(*bounds, pins.get(name, bounds[0]))
    return [f"{name}=={version}" for name, version in pins.items()]


if __name__ == "__main__":
    raise SystemExit(main())
