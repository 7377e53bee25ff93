"""The model fingerprint, prompts included, changes exactly when vectors would change."""

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from chunksink.embeddings.encoder import Vectors
from chunksink.embeddings.errors import ModelUnsupported
from chunksink.embeddings.fingerprint import digest_of_files, file_digests, fingerprint_of_model
from chunksink.embeddings.resolve import DEFAULT_MODEL, resolve_model
from chunksink.embeddings.transformer import TransformerEncoder
from tests.embeddings.conftest import WORDS
from tests.embeddings.helpers import load_with_torch

TEXTS = [
    "the cat sat on the mat",
    "The CAT Sat",
    "a bàd dôg",
    "bathe the dog",
    "mat",
    " ".join(WORDS[:16] * 3),
]
Change = Callable[[Path], None]


def merged(file: str, **keys: Any) -> Change:
    """Set keys of a JSON file, which may be missing."""

    def change(folder: Path) -> None:
        path = folder / file
        found = json.loads(path.read_text()) if path.exists() else {}
        path.write_text(json.dumps(found | keys))

    return change


def without(file: str, key: str) -> Change:
    def change(folder: Path) -> None:
        found = json.loads((folder / file).read_text())
        del found[key]
        (folder / file).write_text(json.dumps(found))

    return change


def other_vocabulary(folder: Path) -> None:
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    ids = tokenizer["model"]["vocab"]
    ids["cat"], ids["dog"] = ids["dog"], ids["cat"]
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))


def other_weights(folder: Path) -> None:
    from safetensors.numpy import load_file, save_file

    weights = load_file(folder / "model.safetensors")
    weights["embeddings.LayerNorm.bias"][3] += 0.5
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def added_token(folder: Path) -> None:
    (folder / "added_tokens.json").write_text(json.dumps({"the": 5}))


def no_change(folder: Path) -> None:
    pass


def loaded(base: Path, folder: Path, *changes: Change, **settings: Any) -> TransformerEncoder:
    shutil.copytree(base, folder)
    for change in changes:
        change(folder)
    return load_with_torch(str(folder), precision="float32", **settings)


def shown(encoder: TransformerEncoder) -> Vectors:
    return np.concatenate([encoder.encode(TEXTS), encoder.encode_queries(TEXTS[:1])])


CASED = merged("tokenizer_config.json", do_lower_case=False)
DECIDING: Mapping[str, tuple[tuple[Change, ...], dict[str, Any]]] = {
    "maximum": ((), {"max_length": 16}),
    "long texts": ((), {"long_texts": "truncate"}),
    "query prompt": ((), {"query_prompt": "query : "}),
    "passage prompt": ((), {"passage_prompt": "passage : "}),
    "weights": ((other_weights,), {}),
    "vocabulary": ((other_vocabulary,), {}),
    "architecture": ((merged("config.json", layer_norm_eps=0.1),), {}),
    "pooling": ((merged("1_Pooling/config.json", pooling_mode_mean_tokens=False, pooling_mode_cls_token=True),), {}),
    "case": ((CASED,), {}),
    "accents": ((merged("tokenizer_config.json", strip_accents=False),), {}),
    "first token": ((merged("tokenizer_config.json", cls_token="[SEP]"),), {}),
    "padding side": ((merged("tokenizer_config.json", padding_side="left"),), {}),
    "special tokens": ((merged("special_tokens_map.json", cls_token="[MASK]"),), {}),
    "added tokens": ((added_token,), {}),
    "module's maximum": ((merged("sentence_bert_config.json", max_seq_length=20),), {}),
    "module's case": ((CASED, merged("sentence_bert_config.json", do_lower_case=True)), {}),
}


def test_fingerprint_changes_with_everything_that_changes_vectors(tiny_folder: Path, tmp_path: Path) -> None:
    found = {"nothing": loaded(tiny_folder, tmp_path / "nothing")}
    for name, (changes, settings) in DECIDING.items():
        found[name] = loaded(tiny_folder, tmp_path / name, *changes, **settings)
    vectors = {name: shown(encoder) for name, encoder in found.items()}
    for name in DECIDING:
        before = "case" if name == "module's case" else "nothing"
        assert np.abs(vectors[name] - vectors[before]).max() > 1e-3, f"{name} changes no vector: a bad example"
    assert len({encoder.info.fingerprint for encoder in found.values()}) == len(found)


@pytest.mark.parametrize(
    "change",
    [
        no_change,
        merged("config.json", transformers_version="1.2.3", _name_or_path="elsewhere"),
        merged("1_Pooling/config.json", pooling_mode_max_tokens=False, include_prompt=True),
        lambda folder: (folder / "1_Pooling/config.json").write_text(
            '{"embedding_dimension": 32, "pooling_mode": "mean"}'
        ),
        merged(
            "tokenizer.json",
            truncation={"max_length": 5, "strategy": "LongestFirst", "stride": 0, "direction": "Right"},
        ),
        merged("tokenizer_config.json", name_or_path="/some/where", tokenizer_file="/some/where"),
        merged("tokenizer_config.json", model_max_length=512, chat_template="{{ messages }}"),
        without("sentence_bert_config.json", "do_lower_case"),
        lambda folder: (folder / "README.md").write_text("# A model like any other"),
    ],
)
def test_fingerprint_is_unchanged_by_what_changes_no_vector(
    tiny: TransformerEncoder, tiny_folder: Path, tmp_path: Path, change: Change
) -> None:
    encoder = loaded(tiny_folder, tmp_path / "other", change)
    assert np.abs(shown(encoder) - shown(tiny)).max() < 1e-5
    assert encoder.info.fingerprint == tiny.info.fingerprint


def test_packaged_model_and_a_folder_of_its_files_are_one_model(real_folder: Path, tmp_path: Path) -> None:
    if resolve_model(network=False).source != "package":
        pytest.skip("the offline package is not installed")
    for path in real_folder.rglob("*"):
        if path.is_file():
            copy = tmp_path / "e5-small" / path.relative_to(real_folder)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.symlink_to(path)
    folder = load_with_torch(str(tmp_path / "e5-small"))
    assert folder.info.fingerprint == load_with_torch(DEFAULT_MODEL, network=False).info.fingerprint


E5 = ("query: ", "passage: ")
BGE = ("Represent this sentence for searching relevant passages: ", "")
NONE = ("", "")


@pytest.mark.parametrize(
    ("card", "base", "prompts"),
    [
        ("---\ntags:\n- mteb\nmodel-index:\n- name: multilingual-e5-small\n  results: []\n---\n", None, E5),
        ("---\nlicense: mit\n---\n\n## Multilingual-E5-base\n", "tmp/", E5),
        ("---\nbase_model:\n- intfloat/e5-base\n---\n# My own\n", None, E5),
        (None, "intfloat/e5-small-v2", E5),
        ("---\nmodel-index:\n- name: bge-small-en-v1.5\n---\n<h1>FlagEmbedding</h1>\n", None, BGE),
        (None, "/data/sentence_transformers/BAAI_bge-large-en/", BGE),
        (None, "BAAI/bge-base-zh-v1.5", ("为这个句子生成表示以用于检索相关文章：", "")),
        (None, "BAAI/bge-m3", NONE),
        ("---\nmodel-index:\n- name: multilingual-e5-large-instruct\n---\n", "intfloat/multilingual-e5-large", NONE),
        ("# Something else\n\nBetter than e5-small.\n", "somebody/something", NONE),
        (None, None, NONE),
    ],
)
def test_prompts_of_known_models_are_in_their_files(
    tiny_folder: Path, tmp_path: Path, card: str | None, base: str | None, prompts: tuple[str, str]
) -> None:
    changes = [merged("config.json", _name_or_path=base)] if base else []
    if card:
        changes.append(lambda folder: (folder / "README.md").write_text(card))  # type: ignore[arg-type, return-value]
    infos = [loaded(tiny_folder, tmp_path / name, *changes).info for name in ("some-copy", "bge-small-en", "e5-small")]
    assert [(info.query_prompt, info.passage_prompt) for info in infos] == [prompts] * 3
    assert len({info.fingerprint for info in infos}) == 1, "a folder's name is no part of the model"


def test_prompts_are_read_from_the_models_configuration(tiny_folder: Path, tmp_path: Path) -> None:
    own = merged("config_sentence_transformers.json", prompts={"query": "ask ", "passage": "tell "})
    known = merged("config.json", _name_or_path="intfloat/e5-small")
    info = loaded(tiny_folder, tmp_path / "model", own, known).info
    assert (info.query_prompt, info.passage_prompt) == ("ask ", "tell ")


def test_unreadable_model_file_is_named(tiny_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights on a disconnected share, or a file removed during the read."""
    folder = tmp_path / "model"
    shutil.copytree(tiny_folder, folder)
    (folder / "more.safetensors").symlink_to(tmp_path / "gone.safetensors")
    with pytest.raises(ModelUnsupported, match=r"cannot read .*more\.safetensors"):
        fingerprint_of_model(folder, file_digests(folder), {})
    monkeypatch.setattr(Path, "is_file", lambda _path: True)
    with pytest.raises(ModelUnsupported, match="cannot read"):
        digest_of_files(file_digests(folder))
