"""A cross-encoder on this machine scores pairs as its library does."""

import shutil
from pathlib import Path

import pytest

from chunksink.embeddings.errors import ModelUnsupported, RerankFailed
from chunksink.embeddings.rerankers import open_reranker
from chunksink.settings.rerank import RerankOptions

TEXTS = ["the cat sleeps", "a boat in the harbour", "zebra", ""]


def cross_encoder(tiny_folder: Path, folder: Path, labels: int = 1) -> Path:
    """A random classifier with the tokenizer of the tiny model."""
    import torch
    from transformers import BertConfig, BertForSequenceClassification

    folder.mkdir()
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(tiny_folder / name, folder)
    torch.manual_seed(11)
    config = BertConfig.from_pretrained(tiny_folder, num_labels=labels)
    BertForSequenceClassification(config).save_pretrained(folder)
    return folder


def test_scores_are_those_of_the_library(tiny_folder: Path, tmp_path: Path) -> None:
    from sentence_transformers import CrossEncoder

    folder = cross_encoder(tiny_folder, tmp_path / "model")
    reranker = open_reranker(RerankOptions(model=str(folder)))
    found = reranker.scores("cat", TEXTS)
    expected = CrossEncoder(str(folder), device="cpu").predict([("cat", text) for text in TEXTS])
    assert found == pytest.approx(expected.tolist(), abs=1e-5)
    assert len(set(found)) == len(TEXTS)
    reranker.close()


def test_unusable_model_is_refused(tiny_folder: Path, tmp_path: Path) -> None:
    two = open_reranker(RerankOptions(model=str(cross_encoder(tiny_folder, tmp_path / "two", labels=2))))
    with pytest.raises(RerankFailed, match="2 scores"):
        two.scores("cat", TEXTS)
    with pytest.raises(ModelUnsupported, match="not a cross-encoder"):
        open_reranker(RerankOptions(model=str(tiny_folder))).load()
    with pytest.raises(RerankFailed, match="no model folder"):
        open_reranker(RerankOptions(model=str(tmp_path / "missing"))).load()
    broken = cross_encoder(tiny_folder, tmp_path / "broken")
    (broken / "model.safetensors").write_bytes(b"cut")
    with pytest.raises(ModelUnsupported):
        open_reranker(RerankOptions(model=str(broken))).load()
