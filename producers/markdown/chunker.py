"""Markdown to canonical chunks, from bytes to checked records: the one call that an ingest makes for a source."""

from dataclasses import dataclass, field

from chunkbus.chunk import Record
from producers.errors import CHUNKING_FAILED, SourceFailed
from producers.markdown.checklist import find_problems
from producers.markdown.document import Document
from producers.markdown.normalise import decode
from producers.markdown.passages import cut
from producers.markdown.policy import CANONICALIZER_NAME, PARSER_NAME, PARSER_VERSION, Policy
from producers.markdown.records import MARKDOWN, Form, SourceVersion, build_records
from producers.markdown.structure import parse
from producers.markdown.tokens import Tokenizer, WordTokenizer


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

    def chunks(self, data: bytes, source: SourceVersion, *, created_at: str, producer: Record) -> list[Record]:
        """The source's chunks, none where it has no text. Raises SourceFailed where it breaks the specification."""
        return self.cut(parse(decode(data)), source, MARKDOWN, created_at=created_at, producer=producer)

    def cut(
        self, document: Document, source: SourceVersion, form: Form, *, created_at: str, producer: Record
    ) -> list[Record]:
        """The same for what another reader has made of a source."""
        records = build_records(
            document,
            list(cut(document, self.policy, self.tokenizer)),
            source,
            policy_id=self.policy_id,
            tokenizer_version=self.tokenizer.version,
            created_at=created_at,
            producer=producer,
            form=form,
        )
        problems = find_problems(records, self.policy, self.tokenizer)
        if problems:
            more = f" and {len(problems) - 1} more" if len(problems) > 1 else ""
            raise SourceFailed(CHUNKING_FAILED, f"the chunks break the chunking checklist: {problems[0]}{more}")
        return records
