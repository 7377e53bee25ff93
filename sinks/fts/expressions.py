"""A query as FTS5 expressions. All typed text is quoted, so none of it is syntax."""

from collections.abc import Sequence

from chunksink.sinks.fts.letters import fold
from chunksink.sinks.fts.query import Query
from chunksink.sinks.fts.word_forms import prefix_terms, spellings


def quoted(term: str) -> str:
    return '"' + term.replace('"', '""') + '"'


def any_of(terms: Sequence[str]) -> str:
    return " OR ".join(map(quoted, terms))


def candidates(tokens: Sequence[str]) -> str:
    """Rows of the trigram index that may have all tokens. Empty if none has three characters."""
    return " AND ".join(quoted(token) for token in tokens if len(token) > 2)


def word(term: str, *, as_prefix: bool = False) -> str:
    """A word or phrase; with `as_prefix` also the words that begin with it."""
    terms = [quoted(spelling) for spelling in spellings(term)]
    if as_prefix:
        terms += _prefixes(term)
    return terms[0] if len(terms) == 1 else f"({' OR '.join(terms)})"


def _prefixes(term: str) -> list[str]:
    return [*_stem_prefixes(term), *map(quoted, prefix_terms(fold(term)).guessed)]


def _stem_prefixes(term: str) -> list[str]:
    return [f"{quoted(prefix_terms(spelling).main)} *" for spelling in spellings(term)]


def words(terms: Sequence[str]) -> str:
    """Any of these words and phrases, in all their spellings."""
    return " OR ".join(map(word, terms))


def any_word(query: Query) -> str:
    """Any of the words and compounds, the last word also as the beginning of a longer one. Empty without words."""
    expressions = (words(query.words), words(query.compounds), beginning(query) if query.prefix else "")
    return " OR ".join(filter(None, expressions))


def every_word(query: Query) -> str:
    """All of the words, the last one also as the beginning of a longer word. A compound counts as both of its words."""
    return " AND ".join(_word_or_compound(query, one) for one in query.words)


def _word_or_compound(query: Query, term: str) -> str:
    formed = {form for other in query.words for form in (term + other, other + term)}
    compounds = [one for one in query.compounds if one in formed]
    alone = word(term, as_prefix=term == query.prefix)
    return f"({alone} OR {words(compounds)})" if compounds else alone


def beginning(query: Query) -> str:
    """Words that begin with the last word, including itself."""
    return word(query.prefix, as_prefix=True)


def prefix_without_word(query: Query) -> str:
    """As `beginning`, without a term for the word itself. Rows with the word may still match, if its stem begins with
    the prefix."""
    return " OR ".join(_prefixes(query.prefix))


def longer(query: Query) -> str:
    """As `beginning`, without rows that have the word itself."""
    return f"{beginning(query)} NOT {word(query.prefix)}"


def guessed(query: Query) -> str:
    """The uncertain part of `longer`: rows that match only the stem of a guessed word (`PrefixTerms.guessed`). Their
    word may have that stem and yet not begin with the typed text. Empty without guesses."""
    if not (guesses := prefix_terms(fold(query.prefix)).guessed):
        return ""
    return f"({any_of(guesses)}) NOT ({' OR '.join([word(query.prefix), *_stem_prefixes(query.prefix)])})"
