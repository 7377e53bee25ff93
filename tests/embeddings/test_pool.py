"""An encoder stays loaded between runs while its settings and model are unchanged."""

from dataclasses import replace
from pathlib import Path

import pytest

from chunksink.embeddings import pool
from chunksink.embeddings.pool import EncoderPool
from chunksink.embeddings.settings import EncoderSettings, settled
from tests.embeddings.helpers import HashEncoder


class Opened(HashEncoder):
    closed = 0

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[Opened]:
    """Every encoder that was opened."""
    every: list[Opened] = []

    def open_encoder(_settings: EncoderSettings, *, model_cache: Path | None) -> Opened:
        every.append(Opened(dimension=8))
        return every[-1]

    monkeypatch.setattr(pool, "open_encoder", open_encoder)
    return every


@pytest.fixture
def model(tmp_path: Path) -> EncoderSettings:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "weights").write_bytes(b"1")
    return EncoderSettings(model=str(tmp_path))


def use(encoders: EncoderPool, *wanted: EncoderSettings) -> None:
    """A run that needs these encoders."""
    with encoders.lend(None) as open_encoder:
        for settings in wanted:
            open_encoder(settings)


def test_next_run_reuses_the_encoder_until_the_pool_closes(model: EncoderSettings, opened: list[Opened]) -> None:
    encoders = EncoderPool()
    use(encoders, model)
    use(encoders)
    use(encoders, model)
    assert [each.closed for each in opened] == [0]
    encoders.close()
    assert [each.closed for each in opened] == [1]
    use(encoders, model)
    assert len(opened) == 2


def test_recorded_build_settings_name_the_same_encoder(model: EncoderSettings, opened: list[Opened]) -> None:
    encoders = EncoderPool()
    use(encoders, model)
    recorded = settled(model, opened[0])
    assert recorded != model
    use(encoders, recorded)
    assert len(opened) == 1


@pytest.mark.parametrize("what", ["settings", "content", "file", "new file", "gone"])
def test_another_model_is_opened_and_the_former_closed(
    what: str, model: EncoderSettings, opened: list[Opened], tmp_path: Path
) -> None:
    encoders = EncoderPool()
    use(encoders, model)
    weights = tmp_path / "weights"
    match what:
        case "settings":
            model = replace(model, max_length=7)
        case "content":
            weights.write_bytes(b"2")
        case "file":
            (tmp_path / "draft").write_bytes(b"1")
            (tmp_path / "draft").rename(weights)
        case "new file":
            (tmp_path / "tokenizer.json").write_text("{}")
        case "gone":
            (tmp_path / "config.json").unlink()
    use(encoders, model)
    assert [each.closed for each in opened] == [1, 1 if what == "gone" else 0]


def test_model_changed_while_loaded_is_not_kept(model: EncoderSettings, opened: list[Opened], tmp_path: Path) -> None:
    encoders = EncoderPool()
    with encoders.lend(None) as open_encoder:
        open_encoder(model)
        (tmp_path / "weights").write_bytes(b"2")
    use(encoders, model)
    assert len(opened) == 2


def test_two_concurrent_runs_have_an_encoder_each(model: EncoderSettings, opened: list[Opened]) -> None:
    encoders = EncoderPool()
    use(encoders, model)
    with encoders.lend(None) as one, encoders.lend(None) as other:
        assert one(model) is not other(model)
        assert [each.closed for each in opened] == [0, 0]
    assert sorted(each.closed for each in opened) == [0, 1]


def test_endpoint_is_asked_again_by_every_run(opened: list[Opened]) -> None:
    encoders = EncoderPool()
    behind = EncoderSettings(model="m", endpoint="http://127.0.0.1:9")
    use(encoders, behind)
    use(encoders, behind)
    assert [each.closed for each in opened] == [1, 1]


def test_forked_process_is_refused_and_closes_nothing(
    model: EncoderSettings, opened: list[Opened], monkeypatch: pytest.MonkeyPatch
) -> None:
    encoders = EncoderPool()
    use(encoders, model)
    with monkeypatch.context() as child:
        child.setattr(pool.os, "getpid", lambda: -1)
        with pytest.raises(RuntimeError, match="forked"):
            use(encoders, model)
    use(encoders, model)
    assert [each.closed for each in opened] == [0]
