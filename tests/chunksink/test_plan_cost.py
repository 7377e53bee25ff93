"""What `chunksink plan` says of tokens and money, compared with the default model's own tokenizer."""

import pytest

from chunksink.rebuild.forecast import SAMPLE
from chunksink.rebuild.state import State
from tests.chunksink.shell import Shell
from tests.support.bus import source

ENGLISH = (
    "It was a bright cold day in April, and the clocks were striking thirteen. Nobody on the third floor had wound "
    "them since the winter, and the caretaker, who was responsible for such matters, had long left for the coast."
)
CHINESE = "北京是中华人民共和国的首都，也是全国的政治和文化中心。这里每年都有许多来自世界各地的游客前来参观。"
CODE = 'fn main() {\n    let args: Vec<String> = env::args().collect();\n    println!("{:?}", args[1]);\n}\n'
RUSSIAN = "Быстрая коричневая лиса прыгает через ленивую собаку, потому что сегодня хорошая погода."


@pytest.mark.parametrize(
    ("text", "tokens", "within"),
    [(ENGLISH, 46, 1.25), (CHINESE, 49, 1.25), (CODE, 48, 1.5), (RUSSIAN, 77, 2)],
    ids=["English", "Chinese", "code", "Russian"],
)
def test_tokens_are_near_those_that_the_model_counts(text: str, tokens: int, within: float, shell: Shell) -> None:
    """However much else each line says, and also where most lines are not read."""
    chunks = [f"{text} {number}" for number in range(2 * SAMPLE)]
    shell.commit("p1", source("a.md", *chunks, metadata={"title": "A", "keywords": ["much else"] * 50}))
    plan = shell("plan", "--json").json
    assert plan["embeddings"]["missing"] == 2 * SAMPLE
    expected = (tokens + 1) * 2 * SAMPLE
    assert expected / within < plan["embeddings"]["tokens"] < expected * within


@pytest.mark.parametrize(
    ("price", "told"),
    [
        ("250000", "0.50"),
        ("10000", "0.020"),
        ("0.02", "0.000000040"),
        ("0", "0.00"),
        ("12345678901", "24,691.36"),
    ],
)
def test_a_cost_shows_at_least_two_digits(price: str, told: str, shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHUNKSINK_TOKEN_PRICE", price)
    shell.commit("p1", source("a.md", "a cat"))
    assert f"about 2 tokens to embed, which costs {told}\n" in shell("plan").out


def test_seconds_go_by_the_length_of_texts_and_count_loading_the_model(shell: Shell) -> None:
    shell.synced(p1=[source("a.md", "a cat")])
    with State(shell.home) as state:
        assert {"model", "embedded", "fts", "chroma"} <= state.pace().keys()
        state.note_pace({"model": (1, 3.0), "embedded": (10**6, 10**4), "fts": (10**6, 1.0), "chroma": (10**6, 1.0)})
    long, short = ENGLISH * 20, "a dog"
    for text in (short, long):
        shell.commit("p1", source("a.md", text, version=text))
        seconds = shell("plan", "--json").json["seconds"]
        assert seconds == pytest.approx(3 + len(text) * 0.01, rel=0.02)
    shell.commit("p2", source("b.md", "a cat"))
    shell.commit("p1", source("a.md", "a cat"))
    plan = shell("plan", "--json").json
    assert (plan["families"]["added"], plan["embeddings"]["cached"], plan["seconds"]) == (1, 1, 0)
