"""The gate before every rebuild: chunks that break the contract stop it before anything is written."""

from collections.abc import Callable
from concurrent.futures import Executor

from chunkbus.findings import Finding
from chunkbus.layout import BusRoot
from chunkbus.validate import Validation
from rebuild.errors import InvalidBus

_EXAMPLES = 3


def require_valid(
    root: BusRoot,
    *,
    require_source_checksum: bool,
    workers: Executor | None,
    on_finding: Callable[[Finding], object],
    on_progress: Callable[[int], object],
) -> None:
    """Validates the whole bus root; raises InvalidBus, with the first errors, where it has any."""
    first: list[Finding] = []

    def take(finding: Finding) -> None:
        on_finding(finding)
        if finding.is_error and len(first) < _EXAMPLES:
            first.append(finding)

    summary = Validation(
        root,
        require_source_checksum=require_source_checksum,
        workers=workers,
        on_finding=take,
        on_progress=on_progress,
    ).run()
    if not summary.ok:
        errors = "1 error" if summary.errors == 1 else f"{summary.errors:,} errors"
        shown = "\n".join(f"  {finding}" for finding in first)
        raise InvalidBus(
            f"{errors} in {root.path}; the index is unchanged. The first:\n{shown}\n"
            f"See all with `chunksink validate --chunks {root.path}`"
        )
