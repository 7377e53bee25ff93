"""The interface of a format, and the registry of all formats.

A format reads one kind of file. Importing its module must be cheap: libraries are imported inside `read`. Other
packages add formats through the entry point group `chunksink.formats`; the entry's name is the one for `--as`
(docs/writing-a-format.md).
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping
from enum import IntEnum
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, ClassVar, Self

from chunksink.chunkbus.chunk import Record
from chunksink.ingest.errors import IngestRefused
from chunksink.ingest.model import Item, Source

if TYPE_CHECKING:
    from chunksink.ingest.formats.markdown.policy import Policy

GROUP = "chunksink.formats"


class Match(IntEnum):
    """How confidently a format recognises a JSON record as its own. The format with the best match reads the file."""

    NO = 0
    POSSIBLE = 1
    """It has the right fields, but many other records have them too."""
    LIKELY = 2
    """It has fields that hardly any other record has."""
    DECLARED = 3
    """It names the schema."""


class Format(ABC):
    """Reads one kind of file into families of chunks. Instances are small and can be pickled."""

    name: ClassVar[str]
    suffixes: ClassVar[tuple[str, ...]]
    """Files in folders with these suffixes are read. If formats share one, `taken_suffixes` and `match` decide."""
    suffixes_if_asked: ClassVar[tuple[str, ...]] = ()
    """Further suffixes to read if the format is named with `--as`; "" means files without a suffix."""
    mime_type: ClassVar[str] = "text/plain"
    """`metadata.mime_type` of the chunks of a file that is one document."""
    may_grow: ClassVar[bool] = False
    """Whether a file may grow while it is read; only the first `Source.size` bytes are read."""
    parser: tuple[str, str]
    """Name and version of the parser. A plain attribute: over a property, pyright would refuse `parser = (...)`."""
    canonicalizer: tuple[str, str]
    """Name and version of the chunking, with every option that changes a boundary or a field.

    If it changes, files are read again.
    """

    @property
    def source_type(self) -> str:
        """`source.source_type` of its chunks, unless a record names its own."""
        return self.name

    @abstractmethod
    def read(self, source: Source) -> Iterator[Item]:
        """The families of a file. A file of many records is read in constant memory. Raises SourceFailed."""

    def with_policy(self, policy: "Policy") -> Self:
        """The format with this chunking policy; itself if it does not cut texts by one (see `CutByPolicy`)."""
        return self

    def match(self, record: Record, *, is_alone: bool = False) -> Match:
        """How well a JSON record matches this format. `is_alone`: it is the only value in its file."""
        return Match.NO


_BUILT_IN = {
    "markdown": "chunksink.ingest.formats.markdown:MarkdownFormat",
    "text": "chunksink.ingest.formats.text:TextFormat",
    "html": "chunksink.ingest.formats.html:HtmlFormat",
    "pdf": "chunksink.ingest.formats.pdf:PdfFormat",
    "docx": "chunksink.ingest.formats.office:DocxFormat",
    "pptx": "chunksink.ingest.formats.office:PptxFormat",
    "xlsx": "chunksink.ingest.formats.office:XlsxFormat",
    "epub": "chunksink.ingest.formats.office:EpubFormat",
    "chunks": "chunksink.ingest.formats.chunks:ChunksFormat",
    "ir": "chunksink.ingest.formats.ir:IrFormat",
    "parsed": "chunksink.ingest.formats.parsed:ParsedFormat",
    "recorder": "chunksink.ingest.formats.recorder:RecorderFormat",
    "rows": "chunksink.ingest.formats.rows:RowsFormat",
}
"""If several formats match equally well, the first one reads the file."""

NAMES = tuple(_BUILT_IN)


@cache
def all_formats() -> Mapping[str, Format]:
    """Every format by name: the built-in ones, then those of other packages.

    Raises IngestRefused for a format that cannot be loaded, and for two that claim the same name or suffix.
    """
    formats: dict[str, Format] = {}
    for name, place in _BUILT_IN.items():
        module, _, attribute = place.partition(":")
        formats[name] = getattr(import_module(module), attribute)()
    packages = dict.fromkeys(formats, "chunksink")
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name):
        package = entry.dist.name if entry.dist else "an unnamed package"
        if other := packages.get(entry.name):
            raise IngestRefused(
                f"the packages {other} and {package} both have a format {entry.name}; nothing was written. Uninstall "
                f"{package}, or rename the format in its entry points ({GROUP})"
            )
        try:
            formats[entry.name] = _load(entry)
        except Exception as error:  # a module of another package may raise anything
            raise IngestRefused(
                f"the format {entry.name} ({entry.value}) of the package {package} cannot be loaded: "
                f"{type(error).__name__}: {error}; nothing was written. Update or uninstall the package"
            ) from error
        packages[entry.name] = package
    taken = taken_suffixes(formats)
    for name, one in formats.items():
        for suffix in one.suffixes if name not in _BUILT_IN else ():
            if (other := taken.get(suffix, name)) != name:
                raise IngestRefused(
                    f"the packages {packages[name]} and {packages[other]} both read {suffix}, as {name} and {other}; "
                    "nothing was written. Uninstall one of them, or, for JSON records, define `match` in both"
                )
    return formats


def _load(entry: EntryPoint) -> Format:
    one = entry.load()()
    if not isinstance(one, Format):
        raise TypeError("it is not a subclass of Format")
    if missing := [member for member in ("name", "suffixes", "parser", "canonicalizer") if member not in dir(one)]:
        raise TypeError(f"it has no `{missing[0]}`")
    if one.name != entry.name:
        raise ValueError(f"its `name` is {one.name!r}, not {entry.name!r}")
    if wrong := [suffix for suffix in one.suffixes if suffix.rfind(".") != 0 or suffix != suffix.lower()]:
        raise ValueError(f"the suffix {wrong[0]!r} must be lower-case, with a single dot, at its beginning")
    return one


def taken_suffixes(formats: Mapping[str, Format]) -> dict[str, str]:
    """Maps suffixes to the names of formats of other packages that read all files with them.

    Such a format replaces the built-in one. If several built-in formats share the suffix, as for JSON records, and the
    format defines `match`, then `match` decides instead.
    """
    built_in = Counter(
        suffix for name in _BUILT_IN for suffix in formats[name].suffixes + formats[name].suffixes_if_asked
    )
    return {
        suffix: name
        for name, one in formats.items()
        for suffix in one.suffixes
        if name not in _BUILT_IN and (built_in[suffix] == 1 or type(one).match is Format.match)
    }
