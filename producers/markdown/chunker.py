"""Markdown to canonical chunks, from bytes to checked records: the one call that an ingest makes for a source."""

from dataclasses import dataclass, field

import orjson

from chunksink.chunkbus import findings
from chunksink.chunkbus.chunk import Record
from chunksink.chunkbus.errors import NotCanonical
from chunksink.chunkbus.examine import MAX_LINE_BYTES, examine_line
from chunksink.producers.errors import CHUNKING_FAILED, SourceFailed
from chunksink.producers.markdown.checklist import find_problems
from chunksink.producers.markdown.document import Document
from chunksink.producers.markdown.normalise import decode
from chunksink.producers.markdown.odd import find_odd, tell_removed
from chunksink.producers.markdown.passages import cut
from chunksink.producers.markdown.policy import CANONICALIZER_NAME, PARSER_NAME, PARSER_VERSION, Policy
from chunksink.producers.markdown.records import MARKDOWN, Form, SourceVersion, build_records
from chunksink.producers.markdown.structure import parse
from chunksink.producers.markdown.tokens import Tokenizer, WordTokenizer
from chunksink.producers.produced import Tell, untold


@dataclass(frozen=True)
class MarkdownChunker:
    """Cuts Markdown by one policy and one tokenizer. The same bytes, name and tenant always give the same chunks."""

    policy: Policy = field(default_factory=Policy)
    tokenizer: Tokenizer = field(default_factory=WordTokenizer)

    @property
    def parser(self) -> tuple[str, str]:
        return (PARSER_NAME, PARSER_VERSION)

    @property
    def policy_id(self) -> str:
        """Everything but the parser that decides where a text is cut; the canonicaliser's version."""
        return self.policy.policy_id(self.tokenizer.version)

    @property
    def canonicalizer(self) -> tuple[str, str]:
        return (CANONICALIZER_NAME, self.policy_id)

    def chunks(
        self, data: bytes, source: SourceVersion, *, created_at: str, producer: Record, tell: Tell = untold
    ) -> list[Record]:
        """The source's chunks, none where it has no text. Raises SourceFailed where it breaks the specification."""
        tell_removed(data, tell)
        document = parse(decode(data), is_mdx=source.uri.lower().endswith(".mdx"))
        return self.cut(document, source, MARKDOWN, created_at=created_at, producer=producer, tell=tell)

    def cut(
        self,
        document: Document,
        source: SourceVersion,
        form: Form,
        *,
        created_at: str,
        producer: Record,
        tell: Tell = untold,
    ) -> list[Record]:
        """The same for what another reader has made of a source."""
        passages = list(cut(document, self.policy, self.tokenizer))
        for code in find_odd(document, passages, self.policy):
            tell(code)
        try:
            records = build_records(
                document,
                passages,
                source,
                policy_id=self.policy_id,
                tokenizer_version=self.tokenizer.version,
                created_at=created_at,
                producer=producer,
                form=form,
            )
        except NotCanonical as error:
            raise SourceFailed(findings.JSON_PARSE, str(error)) from error
        problems = find_problems(records, self.policy, self.tokenizer)
        if problems:
            more = f" and {len(problems) - 1} more" if len(problems) > 1 else ""
            raise SourceFailed(CHUNKING_FAILED, f"the chunks break the chunking checklist: {problems[0]}{more}")
        for number, record in enumerate(records):
            _refuse_long(orjson.dumps(record), number)
        return records


def _refuse_long(line: bytes, number: int) -> None:
    """What no partition takes: it would end the whole run. All else that is asked of a line holds of these."""
    if len(line) > MAX_LINE_BYTES:
        _, (problem,) = examine_line(line)
        raise SourceFailed(problem.code, f"chunk {number} {problem.detail}")
