"""Checks of each engine: whether it answers, has the live build of this home, and has the configured settings."""

from collections.abc import Iterator
from contextlib import ExitStack, closing
from functools import partial

from chunksink.chunkbus.errors import ChunksinkError
from chunksink.chunkbus.wording import counted
from chunksink.doctor import AGAIN, OWNER, Check, CheckProblem, check, remedies
from chunksink.doctor.records import Live
from chunksink.rebuild.embedder import cached_vectors
from chunksink.rebuild.schema import existing_home_id
from chunksink.rebuild.state import State
from chunksink.settings.config import Config, variable
from chunksink.settings.errors import ConfigError, UnusableSettings
from chunksink.sinks.capabilities import (
    RENAME_ADVICE,
    SupportsNearest,
    SupportsPublicName,
    SupportsReader,
    SupportsSettings,
    SupportsVersion,
    SupportsWriteCheck,
    capability,
)
from chunksink.sinks.contract import Sink
from chunksink.sinks.errors import BuildBroken, BuildMissing, SinkError
from chunksink.wiring import existing_cache, live_dimensions, open_one_sink


def sink(config: Config, name: str, live: Live | None) -> Iterator[Check]:
    """The checks of one sink. The later ones are skipped if the sink does not answer, if its public name is taken, or
    if its settings are not as configured."""
    with ExitStack() as stack:
        try:
            sink, found = _answering(config, name, stack)
        except CheckProblem as problem:
            yield problem.check(f"sink {name}")
            return
        yield Check(f"sink {name}", "ok", found)
        build_id = None
        if live is not None:
            build = check(f"live in {name}", partial(_live, name, sink, live))
            build_id = live.builds.get(name) if build.verdict == "ok" else None
            yield build
        if (shown := capability(sink, SupportsPublicName)) is not None:
            public = check(f"public name in {name}", partial(_public_name, config, sink, shown))
            yield public
            if public.verdict != "ok":
                return
        if (settings := capability(sink, SupportsSettings)) is not None:
            as_configured = check(f"settings of {name}", partial(_settings, config, name, settings, build_id))
            yield as_configured
            if as_configured.verdict != "ok":
                return
        if build_id is not None and sink.wants_vectors and _has_recall(sink, build_id):
            yield check(f"recall of {name}", partial(_recall, config, sink, build_id))


def _answering(config: Config, name: str, stack: ExitStack) -> tuple[Sink, str]:
    """The opened sink, and its description; the stack closes it."""
    with remedies(
        (UnusableSettings, "correct that file"),
        (ConfigError, f"correct the options [sink.{name}] or the list of sinks"),
        (SinkError, AGAIN),
        (OSError, OWNER),
    ):
        sink = open_one_sink(config, stack, name)
        builds = sink.builds()
        if (checked := capability(sink, SupportsWriteCheck)) is not None:
            checked.check_writable()
        versioned = capability(sink, SupportsVersion)
        version = f", {versioned.version()}" if versioned is not None else ""
    return sink, f"answers{version}; {counted(len(builds), 'build')}"


def unused_options(config: Config) -> Iterator[Check]:
    """Mistakes in options of sinks that are not in use."""
    for name in config.sink:
        if name in config.sinks:
            continue
        try:
            with ExitStack() as stack:
                open_one_sink(config, stack, name)
        except (ConfigError, SinkError) as error:
            remedy = f"correct [sink.{name}] or {variable('sink')}_{name.upper()}_*; {name} is not in use"
            yield Check(f"options of {name}", "warn", str(error), remedy)


def _live(name: str, sink: Sink, live: Live) -> str:
    if name not in live.builds:
        return "no build yet; `chunksink sync` creates it"
    build_id = live.builds[name]
    # ConfigError: the engine's library refuses a setting in the environment or in `.env`.
    with remedies((ConfigError, "correct the setting that the message names"), (SinkError, AGAIN)):
        try:
            # A reader is preferred because it changes nothing and takes no lock.
            readable = capability(sink, SupportsReader)
            with closing(readable.reader(build_id) if readable is not None else sink.open(build_id)) as build:
                marker = build.marker()
        except (BuildMissing, BuildBroken) as error:
            raise CheckProblem(error.args[0], error.remedy) from error
    if marker is not None and marker.home_id != live.home_id:
        remedy = "restore that id in home.id; or take the build over with `chunksink sync --adopt`"
        raise CheckProblem(f"build {build_id} was made by another home, whose id is {marker.home_id}", remedy)
    return f"build {build_id} is there; `chunksink verify` compares all of it"


def _has_recall(sink: Sink, build_id: str) -> bool:
    """Whether recall can be measured. True if the engine fails, so that the check reports the failure."""
    readable = capability(sink, SupportsReader)
    if readable is None:
        return False
    try:
        with closing(readable.reader(build_id)) as reader:
            return capability(reader, SupportsNearest) is not None
    except SinkError:
        return True


def _recall(config: Config, sink: Sink, build_id: str) -> str:
    """The recall of the sink's vector search. A low recall is only a warning."""
    from chunksink.rebuild.recall import measure

    try:
        with State.existing(config.home_path) as state, existing_cache(config) as cache:
            recall = measure(state, sink, build_id, partial(cached_vectors, cache, state.live().model))
    except SinkError as error:
        raise CheckProblem(str(error), AGAIN) from error
    except (ChunksinkError, OSError):
        return "not measured: see `index` and `cache`"
    if recall is None:
        return "not measured: the cache has no vectors of the texts in this build"
    if remedy := recall.remedy(sink.name):
        raise CheckProblem(recall.summary, remedy, "warn")
    return recall.summary


def _public_name(config: Config, sink: Sink, public: SupportsPublicName) -> str:
    """Whether the public name is free or belongs to a build of this home."""
    with remedies((SinkError, AGAIN)):
        marker = public.shown()
    if marker is not None and marker.home_id != existing_home_id(config.home_path):
        remedy = f"{RENAME_ADVICE}; or replace the index with `chunksink sync --adopt`"
        raise CheckProblem(f"its index was made by another home, whose id is {marker.home_id}", remedy)
    return "free, or used by this home"


def _settings(config: Config, name: str, sink: SupportsSettings, build_id: str | None) -> str:
    with remedies((SinkError, AGAIN)):
        if unusable := sink.unusable_settings(build_id):
            raise CheckProblem(unusable, "correct the name, or remove it from the file")
        if build_id is None:
            return "no live build to compare with"
        due = sink.settings_due(build_id, live_dimensions(config, name))
    if due:
        found = f"the live build differs from the configured settings: {', '.join(due)}"
        raise CheckProblem(found, "`chunksink sync` applies them", "warn")
    return "as configured"
