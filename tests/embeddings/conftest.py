"""Models for the tests: the real one from its offline package, and a tiny one made here. Each is loaded once."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from chunksink.chunkbus.storage import Storage, open_storage
from chunksink.embeddings.cache import VectorCache
from chunksink.embeddings.errors import ModelUnavailable
from chunksink.embeddings.resolve import resolve_model
from chunksink.embeddings.transformer import TransformerEncoder
from tests.embeddings.endpoint import Server, serve
from tests.embeddings.helpers import load_model

WORDS = [
    *("the", "a", "cat", "dog", "sat", "on", "mat", "ran", "far", "away", "query", "passage", ":", ",", "."),
    *("long", "text", "one", "two", "three", "four", "five", "six"),
]
TEXTS = [" ".join(WORDS[number % 7 :: 1 + number % 5][: 1 + number % 20]) for number in range(60)]


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[VectorCache]:
    with VectorCache.open(tmp_path / "vectors.db") as opened:
        yield opened


@pytest.fixture
def place(tmp_path: Path) -> Storage:
    """The folder for segments."""
    return open_storage(str(tmp_path / "place"))


@pytest.fixture
def server() -> Iterator[Server]:
    with serve() as served:
        yield served


@pytest.fixture(scope="session")
def real_folder() -> Path:
    """The folder of all-MiniLM-L6-v2."""
    try:
        return resolve_model(network=False).folder
    except ModelUnavailable as exc:
        pytest.skip(str(exc))


@pytest.fixture(scope="session")
def real_float32(real_folder: Path) -> Iterator[TransformerEncoder]:
    encoder = load_model(str(real_folder), precision="float32", long_texts="truncate")
    assert encoder.info.runtime == "openvino"
    yield encoder
    encoder.close()


@pytest.fixture(scope="session")
def real_bfloat16(real_folder: Path) -> Iterator[TransformerEncoder]:
    encoder = load_model(str(real_folder), precision="bfloat16", long_texts="truncate")
    assert encoder.info.runtime == "openvino"
    yield encoder
    encoder.close()


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT of one layer and 32 dimensions, with a vocabulary of a few words, random but always the same."""
    import torch
    from safetensors.torch import save_file
    from tokenizers import Tokenizer
    from tokenizers.models import WordPiece
    from tokenizers.normalizers import BertNormalizer
    from tokenizers.pre_tokenizers import BertPreTokenizer
    from tokenizers.processors import TemplateProcessing
    from transformers import BertConfig, BertModel

    folder = tmp_path_factory.mktemp("tiny-model")
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    letters = [chr(code) for code in range(ord("a"), ord("z") + 1)]
    vocabulary = list(dict.fromkeys([*special, *WORDS, *letters, *(f"##{letter}" for letter in letters)]))
    ids = {word: number for number, word in enumerate(vocabulary)}
    tokenizer = Tokenizer(WordPiece(ids, unk_token="[UNK]"))
    tokenizer.normalizer = BertNormalizer()
    tokenizer.pre_tokenizer = BertPreTokenizer()
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", ids["[CLS]"]), ("[SEP]", ids["[SEP]"])]
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=64,
    )
    torch.manual_seed(7)
    weights = {name: value.contiguous() for name, value in BertModel(config).state_dict().items()}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    config.save_pretrained(folder)
    written = {
        "tokenizer_config.json": {
            "tokenizer_class": "BertTokenizer",
            "model_max_length": 32,
            "pad_token": "[PAD]",
            "unk_token": "[UNK]",
            "cls_token": "[CLS]",
            "sep_token": "[SEP]",
            "mask_token": "[MASK]",
        },
        "sentence_bert_config.json": {"max_seq_length": 32, "do_lower_case": False},
        "modules.json": [
            {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
            {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
            {"idx": 2, "name": "2", "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"},
        ],
        "1_Pooling/config.json": {"word_embedding_dimension": 32, "pooling_mode_mean_tokens": True},
    }
    for name, value in written.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(json.dumps(value), encoding="utf-8")
    (folder / "2_Normalize").mkdir()
    return folder


@pytest.fixture(scope="session")
def tiny(tiny_folder: Path) -> Iterator[TransformerEncoder]:
    encoder = load_model(str(tiny_folder), precision="float32", workers=2, token_budget=64, use_graph=False)
    yield encoder
    encoder.close()
