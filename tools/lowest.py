"""Print constraints that hold every dependency down to the oldest version that pyproject.toml admits.

    python3 -m tools.lowest      (`make lowest` installs them, and runs the tests)

A lower bound that nobody tries is a guess: whoever installs chunksink beside older packages finds out first.
"""

from __future__ import annotations

import re

from tools.lock import requirements

BOUND = re.compile(r"([A-Za-z0-9._-]+)(?:\[[^\]]*\])?[>=]=([0-9][0-9.]*)$")


def main() -> int:
    print("\n".join(lowest(requirements())))
    return 0


def lowest(wanted: list[str]) -> list[str]:
    """A pin for each requirement that has a lower bound; of two for one package, the higher."""
    pins: dict[str, str] = {}
    for bound in filter(None, map(BOUND.match, wanted)):
        pins[bound[1]] = max(pins.get(bound[1], "0"), bound[2], key=_numbers)
    return [f"{name}=={version}" for name, version in pins.items()]


def _numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


if __name__ == "__main__":
    raise SystemExit(main())
