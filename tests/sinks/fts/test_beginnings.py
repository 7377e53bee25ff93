"""Prefixes of words in an index of stems, and corrections of misspelled words."""

import unicodedata

import pytest

from chunksink.sinks.conformance.samples import family
from chunksink.sinks.fts import FtsBuild, FtsReader
from chunksink.sinks.fts.search import Search
from chunksink.sinks.reader import Filter
from tests.conftest import sampled

_WORDS_TOLD = """
    installation installs installer concurrency expressions iterator iteration generic generally generations operation
    operator PaymentGatewayClient SharingService KeyError gateways capability capabilities sensibility happiness happily
    beautifully relational conditionally rational conformably hopefulness electricities electrical triplicate formative
    formalize feudalism decisiveness callousness running stopped controlling controller falling agreed hoping hopping
    sized families flies dying skies analyses universe universities conclusions processes accesses resource inference
    internals service useful usage usually onerous argument replacement adjustments adoption homologous activate
    bowdlerize Königsberg naïvely résumé Größe ownership borrowed threads lifetimes vectors yes yesterday eye any anyone
    day daylight way waypoint dependencies dependent dependable dependably authorization authorizations authorizers
    idempotency initializing initializers serializable serialization tautologies logical theology
"""
WORDS = tuple(_WORDS_TOLD.split())


def folded(word: str) -> str:
    return "".join(sign for sign in unicodedata.normalize("NFD", word.lower()) if not unicodedata.combining(sign))


@pytest.fixture
def words(build: FtsBuild) -> dict[str, str]:
    """An index with one document for each word. Maps parents to words."""
    families = {word: family(f"words/{number}", [f"x {word} x"]) for number, word in enumerate(WORDS)}
    build.replace(list(families.values()))
    return {one.parent_id: word for word, one in families.items()}


def test_prefix_finds_its_word_above_others(reader: FtsReader, words: dict[str, str]) -> None:
    for typed in sampled(sorted({word[:length].lower() for word in WORDS for length in range(3, len(word) + 1)})):
        found = [words[hit.parent_id] for hit in reader.search(typed, 1000)]
        begin_so = {word for word in WORDS if folded(word).startswith(folded(typed))}
        assert begin_so <= set(found), typed
        # Other forms of a complete word count like the word. Other forms of the beginning of a word do not.
        forms = {words[hit.parent_id] for hit in reader.search(f"{typed} ", 1000)}
        others = [word for word in found if word not in begin_so | forms]
        assert found[len(found) - len(others) :] == others, (typed, found)


def test_word_that_only_resembles_a_prefix_match_is_not_found(reader: FtsReader, words: dict[str, str]) -> None:
    def found(typed: str) -> set[str]:
        return {words[hit.parent_id] for hit in reader.search(typed, 1000)}

    assert found("res") == {"resource"} | {word for word in WORDS if word.startswith("rés")}
    assert found("use") == {"useful"}
    assert found("inte") == {"internals"}
    assert found("any") == {"any", "anyone"}
    assert found("paymentgateway") == {"PaymentGatewayClient"}


def test_other_word_form_ranks_low_beside_prefix_matches(build: FtsBuild, reader: FtsReader) -> None:
    often, once = (
        family("often", ["install, install and install"]),
        family("once", ["one installation of " + "it " * 50]),
    )
    build.replace([often, once, *(family(f"d{number}", ["something else"]) for number in range(20))])
    assert [hit.parent_id for hit in reader.search("installa")] == [once.parent_id, often.parent_id]
    build.replace([family("once", ["nothing of it"])])
    assert [hit.parent_id for hit in reader.search("installa")] == [often.parent_id], "nothing has it"


@pytest.mark.parametrize(
    ("typed", "title", "longer"),
    [
        ("Component", "Component", "ComponentsConf: talks, ComponentsConf 2018 in Melbourne, ComponentsConf workshops"),
        ("PowerShell remoting", "Remoting", "PowerShell has a RemotingJob; each RemotingJob has a RemotingJob"),
        ("cmdlet", "Cmdlet", "A CmdletSet is one more: CmdletSet, CmdletSet, CmdletSet"),
    ],
)
def test_rare_longer_words_do_not_rank_above_the_word_itself(
    build: FtsBuild, reader: FtsReader, typed: str, title: str, longer: str
) -> None:
    """The stem of `component` is `compon`, so only `componentsconf` is searched as a longer word."""
    titled = family("titled", [f"How PowerShell and others use a {title.lower()}, in a few words"], title=title)
    rare = family("rare", [longer])
    some = [family(f"s{number}", [f"PowerShell has one {title.lower()} for {number}"]) for number in range(30)]
    build.replace([titled, rare, *some, *(family(f"d{number}", ["something else"]) for number in range(90))])
    found = [hit.parent_id for hit in reader.search(typed, 100)]
    assert found[0] == titled.parent_id
    assert found.index(rare.parent_id) > len(some), "it has more words and the wrong one"
    for half in (typed[:-2], typed[:-3]):
        assert rare.parent_id in [hit.parent_id for hit in reader.search(half, 100)], "it is still being typed"


def test_prefix_matches_are_counted_and_marked(build: FtsBuild, reader: FtsReader) -> None:
    one = family("one", ["how the installation goes on"], metadata={"tags": ["x"]})
    build.replace([one, *(family(f"d{number}", ["something else"]) for number in range(20))])
    id = one.documents[0].id
    assert [piece.text for piece in reader.snippets("installa", [id])[id] if piece.match] == ["installation"]
    assert [value.families for value in reader.facets("installa", ["tags"])["tags"]] == [1]
    (hit,) = reader.search("goes installatio")
    (whole,) = reader.search("goes installation ")
    assert hit.score > 0.5 * whole.score


@pytest.mark.parametrize("typed", ["gateway", "inference", "resources", "running", "harbour"])
def test_whole_word_is_its_own_prefix(build: FtsBuild, reader: FtsReader, typed: str) -> None:
    """If a document has all the words, no better match is expected. With few documents, all are meant."""
    one, other = family("one", [f"the {typed} and a boat"]), family("other", ["a boat"])
    build.replace([one, other, *(family(f"d{number}", ["something else"]) for number in range(20))])
    assert reader.max_score(typed) is None
    assert reader.max_score(f"boat {typed}") is None
    both = reader.search(f"boat {typed}")
    assert both == reader.search(f"boat {typed} ")
    assert [hit.parent_id for hit in both] == [one.parent_id, other.parent_id]


def test_prefix_search_reads_only_the_best(build: FtsBuild, reader: FtsReader, monkeypatch: pytest.MonkeyPatch) -> None:
    build.replace([family(f"d{number}", [f"operate {number}"]) for number in range(9)])
    looked: list[int] = []
    standing = Search._rows_matching

    def watched(search: Search, rows: set[int], pattern: str) -> set[int]:
        looked.append(len(rows))
        return standing(search, rows, pattern)

    monkeypatch.setattr(Search, "_rows_matching", watched)
    monkeypatch.setattr("chunksink.sinks.fts.search._READ_TEXTS", 4)
    assert len(reader.search("operatio", 20)) == 9
    assert len(reader.search("operatio", 2)) == 2
    assert looked == [4, 4]


# --- misspelled words ------------------------------------------------------------------------------------------


TEXTS = (
    "The calibration of a sensor, and the structure of its housing",
    "Travel and other expenses: hotels, a Straße",
    "In the kitchen. Universities received packages",
    "All kitchens are closed",
    "手机iPhone 设置",
    "Eine Übersetzung; l'éclairage",
    "Köln, Kouen, Größe, Łódź",
)


@pytest.fixture
def filled(build: FtsBuild, reader: FtsReader) -> FtsReader:
    build.replace([family(f"{number}.md", [text], source_type=f"t{number}") for number, text in enumerate(TEXTS)])
    build.flush()
    return reader


@pytest.mark.parametrize(
    ("typed", "near"),
    [
        ("calibraton ", "calibration"),  # the error is in an ending, which the index does not have
        ("strcture ", "structure"),
        ("travle ", "travel"),
        ("expences ", "expenses"),  # `expens` is a stem, but no word has it
        ("kichen ", "kitchen"),  # the nearer one of two forms
        ("KICHEN ", "kitchen"),
        ("koeln ", "köln"),  # `kouen` has nearer letters
        ("uebersetzung ", "übersetzung"),
        ("groesse ", "grösse"),
        ("lodsz ", "łódź"),
        ("strase", "straße"),
        ("Übersetzng ", "übersetzung"),
        ("éclairrage ", "éclairage"),
        ("senzor", "sensor"),  # also if the last word may be incomplete
    ],
)
def test_misspelled_word_is_corrected(filled: FtsReader, typed: str, near: str) -> None:
    assert list(filled.corrections(typed).values()) == [near]


@pytest.mark.parametrize(
    "typed",
    [
        "calibration ",
        "calib",  # the beginning of a word
        "universities received",
        "xylophone ",
        "hotl ",  # so short that many words are near
        "手几iPhone",
        "E-4711",
        "\u0640\u0640\u0640\u0640\u0640",  # elongation alone
        "",
    ],
)
def test_correct_word_is_not_corrected(filled: FtsReader, typed: str) -> None:
    assert filled.corrections(typed) == {}


def test_corrections_respect_the_filters(filled: FtsReader) -> None:
    theirs = [Filter("source_type", any_of=("t1",))]
    assert filled.corrections("kichen travle ", theirs) == {"travle": "travel"}
    assert filled.corrections("kitchen ", theirs) == {}, "a word of another tenant is not suggested"


def test_first_of_many_words_is_corrected(filled: FtsReader) -> None:
    assert filled.corrections("strcture " * 3 + "kichen ") == {"strcture": "structure", "kichen": "kitchen"}
    assert filled.corrections("x" * 5000 + " ") == {}
