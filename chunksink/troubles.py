"""What is under way, amiss, held or due in a home, in lines: for `chunksink status` and for the status page."""

from typing import TYPE_CHECKING

from chunksink.output import counted, printable, some
from chunksink.summary import unbuilt_lines, unconfigured_lines

if TYPE_CHECKING:
    from chunksink.rebuild.status import HomeStatus


def troubles(found: "HomeStatus", shown: int | None) -> list[str]:
    """Each with what to do about it. Of what there are many, so many are `shown`; with None all."""
    return [*_under_way(found), *_bus_troubles(found, shown), *_held(found, shown), *_due(found), *_drift(found)]


def _under_way(found: "HomeStatus") -> list[str]:
    lines = []
    if "writer" in found.locks:
        lines.append("a run is writing to this home now")
    if found.unfinished:
        done = ", ".join(f"{name} {chunks:,}" for name, chunks in found.unfinished.chunks.items())
        what = "is under way" if found.unfinished.under_way else "was stopped; `chunksink rebuild` goes on with it"
        lines.append(f"rebuild {found.unfinished.generation.id} {what} (chunks so far: {done})")
    elif "rebuild" in found.locks:
        lines.append("a rebuild is under way")
    if found.begun_flip:
        lines.append("a run died while it changed what readers see; the next sync ends it: `chunksink sync`")
    return lines


def _bus_troubles(found: "HomeStatus", shown: int | None) -> list[str]:
    bus = found.bus
    if not bus.found:
        return [f"no chunks at {printable(bus.path)}: name their folder with --chunks DIR"]
    lines = []
    for broken in bus.broken[:shown]:
        if broken.state == "missing":
            lines.append(
                f"partition {broken.key} is missing, {counted(broken.families, 'source')} held: bring it back, or "
                f"`chunksink retire-partition {broken.key}`"
            )
        else:
            lines.append(
                f"partition {broken.key} is invalid, {counted(broken.families, 'source')} held: "
                f"{printable(broken.finding)}; `chunksink validate` shows all"
            )
    lines += _more(len(bus.broken), shown, "partition")
    if bus.pending:
        new = f"{counted(len(bus.pending), 'partition')} new, changed or gone since the last sync"
        lines.append(f"{new}: {some(bus.pending, shown)}; run `chunksink sync`")
    elif any(sink.to_write or sink.to_remove or sink.open_intents for sink in found.sinks.values()):
        lines.append(f"not every engine has what the chunks say; {_catch_up(found)}")
    return lines


def _catch_up(found: "HomeStatus") -> str:
    """What to do about sources that wait, some of which may be a large share that would go."""
    brake = found.brake
    if brake is None:
        return "run `chunksink sync`"
    return (
        f"a sync would remove {brake.removed:,} of the {brake.total:,} sources in the index, and stop at that number: "
        f"`chunksink plan` names some, `chunksink sync {brake.flag}` lets them go"
    )


def _held(found: "HomeStatus", shown: int | None) -> list[str]:
    if not found.held:
        return []
    told = [
        f"held as it was: source {printable(held.source or held.family)}: {printable(held.detail)}"
        for held in found.held_families
    ]
    return [*told, *_more(found.held, shown, "held source")]


def _due(found: "HomeStatus") -> list[str]:
    lines = []
    refused = sum(sink.refused for sink in found.sinks.values())
    if refused:
        lines.append(f"{counted(refused, 'document')} refused by engines; `chunksink dead-letters` lists them")
    lines += unconfigured_lines(found.unconfigured) + unbuilt_lines(found.unbuilt)
    if found.rebuild_due:
        lines.append(f"a rebuild is due: {found.rebuild_due}; `chunksink rebuild`")
    return lines


def _drift(found: "HomeStatus") -> list[str]:
    """Our records would say that all is well."""
    last = found.last_run
    if last is not None and last.command in ("sync", "rebuild") and last.status == "failed":
        return [f"the last {last.command} failed: `chunksink runs {last.id}` says why"]
    if last is None or (last.command, last.status) != ("verify", "drift"):
        return []
    return ["the last verify did not find everything as it should be: `chunksink verify` says what, and what to do"]


def _more(number: int, shown: int | None, noun: str) -> list[str]:
    if shown is None or number <= shown:
        return []
    return [f"... and {counted(number - shown, f'more {noun}')}; --all names them"]
