"""Each engine: whether it answers, whether the live build is there and this home's, whether its settings fit."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chunksink.doctor.check import Check
from chunksink.doctor.records import Live
from chunksink.settings.config import Config, ConfigError, variable

if TYPE_CHECKING:
    from chunksink.sinks.capabilities import SupportsSettings

_AGAIN = "then run `chunksink doctor` again"


def sink(config: Config, name: str, live: Live | None) -> Iterator[Check]:
    from chunksink.session import open_one_sink
    from chunksink.settings.index_settings import UnusableSettings
    from chunksink.sinks.capabilities import SupportsSettings, capability
    from chunksink.sinks.errors import SinkError

    label = f"sink {name}"
    with ExitStack() as stack:
        try:
            sink: Any = open_one_sink(config, stack, name)
            builds = sink.builds()
            version = _version(sink)
        except UnusableSettings as error:
            yield Check(label, "fail", str(error), "correct that file")
            return
        except ConfigError as error:
            yield Check(label, "fail", str(error), f"correct the options [sink.{name}] or the list of sinks")
            return
        except SinkError as error:
            yield Check(label, "fail", str(error), _AGAIN)
            return
        yield Check(label, "ok", f"answers{version}; builds {len(builds):,}")
        if live is not None:
            yield _live(name, sink, live)
        strange = _strange(config, name, sink)
        if strange is not None:
            yield strange
        elif (settings := capability(sink, SupportsSettings)) is not None:
            yield _settings(config, name, settings)


def options_not_in_use(config: Config) -> Iterator[Check]:
    """Options of sinks that no run opens now: what is wrong with them would be told on the day when one does."""
    from chunksink.session import open_one_sink
    from chunksink.sinks.errors import SinkError

    for name in config.sink:
        if name in config.sinks:
            continue
        try:
            with ExitStack() as stack:
                open_one_sink(config, stack, name)
        except (ConfigError, SinkError) as error:
            remedy = f"correct [sink.{name}] or {variable('sink')}_{name.upper()}_*; {name} is not among the sinks now"
            yield Check(f"options of {name}", "warn", str(error), remedy)


def _version(sink: Any) -> str:
    """What answers there, where the sink can say it."""
    from chunksink.sinks.capabilities import SupportsVersion, capability

    versioned = capability(sink, SupportsVersion)
    return f", {versioned.version()}" if versioned is not None else ""


def _live(name: str, sink: Any, live: Live) -> Check:
    from chunksink.sinks.errors import BuildBroken, BuildMissing, SinkError

    label = f"live in {name}"
    if name not in live.builds:
        return Check(label, "ok", "no build yet; `chunksink sync` makes it")
    build_id = live.builds[name]
    try:
        marker = _marker(sink, build_id)
    except BuildMissing:
        return Check(label, "fail", f"build {build_id} is gone", "`chunksink sync` writes it again from the chunks")
    except BuildBroken as error:
        return Check(label, "fail", str(error), "`chunksink verify --repair` writes it again from the chunks")
    except ConfigError as error:  # in the way of the engine's library, not of ours
        return Check(label, "fail", str(error), "set right what that names, and ask again")
    except SinkError as error:
        return Check(label, "fail", str(error), _AGAIN)
    if marker is not None and marker.home_id != live.home_id:
        remedy = "put that id back into home.id; or, if this home shall have the build, `chunksink sync --adopt`"
        return Check(label, "fail", f"build {build_id} is of another home, whose id is {marker.home_id}", remedy)
    return Check(label, "ok", f"build {build_id} is there; `chunksink verify` compares all of it")


def _strange(config: Config, name: str, sink: Any) -> Check | None:
    """What the sink shows other programs, where no run of this home would replace it."""
    from chunksink.rebuild.schema import existing_home_id
    from chunksink.sinks.capabilities import SupportsPublicName, capability
    from chunksink.sinks.errors import SinkError

    label = f"public name in {name}"
    try:
        public = capability(sink, SupportsPublicName)
        marker = public.shown() if public is not None else None
    except SinkError as error:
        return Check(label, "fail", str(error), _AGAIN)
    if marker is None or marker.home_id == existing_home_id(config.home_path):
        return None
    remedy = "give the index another name; or, if this home shall replace it, `chunksink sync --adopt`"
    return Check(label, "fail", f"what it shows was made by another home, whose id is {marker.home_id}", remedy)


def _marker(sink: Any, build_id: str) -> Any:
    """Through a reader, where there is one: it changes nothing, and waits for nobody."""
    from chunksink.sinks.capabilities import SupportsReader, capability

    readable = capability(sink, SupportsReader)
    opened = readable.reader(build_id) if readable is not None else sink.open(build_id)
    with closing(opened) as build:
        return build.marker()


def _settings(config: Config, name: str, sink: "SupportsSettings") -> Check:
    from chunksink.chunkbus.errors import ChunkBusError
    from chunksink.session import live_dimensions
    from chunksink.settings.engine_settings import DEFAULTS
    from chunksink.settings.index_settings import differences, find_settings_file, load_index_settings
    from chunksink.sinks.errors import BuildMissing, SinkError

    label = f"settings of {name}"
    file = find_settings_file(config.sink.get(name, {}).get("settings_file"))
    wanted = load_index_settings(file)
    try:
        live = sink.live_settings()
    except BuildMissing:
        return _refused(label, file, wanted, DEFAULTS) or Check(label, "ok", "no live index yet")
    except SinkError as error:
        return Check(label, "fail", str(error), _AGAIN)
    if refused := _refused(label, file, wanted, live):
        return refused
    try:
        dimensions = live_dimensions(config, name)
    except (ChunkBusError, OSError):
        return Check(label, "warn", "not compared, for the records of the index cannot be read", "see `index` above")
    if found := differences(sink.wanted_settings(dimensions), live):
        names = ", ".join(each.name for each in found)
        remedy = "`chunksink settings diff` shows them, `chunksink settings apply` changes the live index"
        return Check(label, "warn", f"the live index differs from {file}: {names}", remedy)
    return Check(label, "ok", f"as {file} has them")


def _refused(label: str, file: Path, wanted: Mapping[str, Any], known: Mapping[str, Any]) -> Check | None:
    from chunksink.settings.index_settings import unknown

    names = unknown(wanted, known)
    if not names:
        return None
    told = f"{file} sets {', '.join(names)}, which Meilisearch does not know: it would refuse the whole file"
    return Check(label, "fail", told, "correct the name, or remove it from the file")
