"""Small files of every format."""

import zipfile
from collections.abc import Mapping
from io import BytesIO

_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_RELATIONS = "http://schemas.openxmlformats.org/package/2006/relationships"
_WORD = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
_WORD_NAMES = (
    f'{_WORD} xmlns:r="{_OFFICE}" xmlns:v="urn:schemas-microsoft-com:vml" '
    'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006" '
    'xmlns:wps="http://schemas.microsoft.com/office/word/2010/wordprocessingShape"'
)
_SLIDE_NAMES = (
    'xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main" '
    f'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" xmlns:r="{_OFFICE}"'
)
_DUBLIN_CORE = 'xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:dcterms="http://purl.org/dc/terms/"'


def archive(members: Mapping[str, str | bytes]) -> bytes:
    file = BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as target:
        for name, content in members.items():
            target.writestr(name, content)
    return file.getvalue()


def relations(*targets: tuple[str, str, str]) -> str:
    """Of ids, kinds and paths."""
    found = (f'<Relationship Id="{id_}" Type="{_OFFICE}/{kind}" Target="{path}"/>' for id_, kind, path in targets)
    return f'<Relationships xmlns="{_RELATIONS}">{"".join(found)}</Relationships>'


def properties(**values: str) -> dict[str, str]:
    inner = "".join(f"<dc:{name}>{value}</dc:{name}>" for name, value in values.items())
    return {"docProps/core.xml": f"<cp {_DUBLIN_CORE}>{inner}</cp>"}


def docx(body: str, parts: Mapping[str, str] | None = None, styles: str = "") -> bytes:
    return archive(
        {
            "_rels/.rels": relations(("r1", "officeDocument", "word/document.xml")),
            "word/document.xml": f"<w:document {_WORD_NAMES}><w:body>{body}</w:body></w:document>",
            "word/styles.xml": f"<w:styles {_WORD}>{styles}</w:styles>",
            **(parts or {}),
        }
    )


def paragraph(text: str, properties: str = "") -> str:
    return f"<w:p><w:pPr>{properties}</w:pPr>{run(text)}</w:p>"


def run(text: str) -> str:
    return f'<w:r><w:t xml:space="preserve">{text}</w:t></w:r>'


def style(id_: str, name: str, more: str = "") -> str:
    return f'<w:style w:type="paragraph" w:styleId="{id_}"><w:name w:val="{name}"/>{more}</w:style>'


def pptx(*slides: str, parts: Mapping[str, str] | None = None) -> bytes:
    """Slides with these shapes; their relations are in reverse order."""
    names = {f"s{number}": f"slides/slide{number}.xml" for number in range(1, len(slides) + 1)}
    ids = "".join(f'<p:sldId r:id="{name}"/>' for name in names)
    members = {f"ppt/{path}": slide_part(shapes) for path, shapes in zip(names.values(), slides, strict=True)}
    members["ppt/presentation.xml"] = f"<p:main {_SLIDE_NAMES}><p:sldIdLst>{ids}</p:sldIdLst></p:main>"
    targets = [(name, "slide", path) for name, path in reversed(names.items())]
    return archive({"ppt/_rels/presentation.xml.rels": relations(*targets), **members, **(parts or {})})


def slide_part(shapes: str) -> str:
    return f"<p:sld {_SLIDE_NAMES}><p:cSld><p:spTree>{shapes}</p:spTree></p:cSld></p:sld>"


def shape(*lines: str, role: str = "") -> str:
    place = f'<p:nvSpPr><p:nvPr><p:ph type="{role}"/></p:nvPr></p:nvSpPr>' if role else ""
    return f"<p:sp>{place}<p:txBody>{''.join(map(slide_line, lines))}</p:txBody></p:sp>"


def slide_line(text: str) -> str:
    return f"<a:p><a:r><a:t>{text}</a:t></a:r></a:p>"


def slide_table(*rows: tuple[str, ...]) -> str:
    cells = ("".join(f"<a:tc><a:txBody>{slide_line(cell)}</a:txBody></a:tc>" for cell in row) for row in rows)
    return f"<p:graphicFrame><a:tbl>{''.join(f'<a:tr>{row}</a:tr>' for row in cells)}</a:tbl></p:graphicFrame>"


def epub(chapters: Mapping[str, str], parts: Mapping[str, str] | None = None) -> bytes:
    """Chapters by path, in reading order; the archive has them in reverse order."""
    texts = 'media-type="application/xhtml+xml"'
    items = "".join(f'<item id="{path}" href="{path}" {texts}/>' for path in reversed(chapters))
    order = "".join(f'<itemref idref="{path}"/>' for path in chapters)
    creators = "<dc:creator>Ada</dc:creator><dc:creator>Bob</dc:creator>"
    about = f"<metadata {_DUBLIN_CORE}><dc:title>On Bees</dc:title>{creators}</metadata>"
    head = '<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><head><title/></head>'
    pages = {f"O/{path.replace('%20', ' ')}": f"{head}<body>{body}</body></html>" for path, body in chapters.items()}
    root = '<container><rootfiles><rootfile full-path="O/c.opf"/></rootfiles></container>'
    package = f"<package>{about}<manifest>{items}</manifest><spine>{order}</spine></package>"
    return archive({"META-INF/container.xml": root, "O/c.opf": package, **pages, **(parts or {})})


def pdf(*pages: str, more: tuple[str, ...] = (), catalog: str = "", page: str = "", trailer: str = "") -> bytes:
    """Pages of content; `more` are objects from number 4 on. Without a table of objects: readers find them."""
    first = 4 + len(more)
    kids = " ".join(f"{first + 2 * number} 0 R" for number in range(len(pages)))
    objects = [
        f"<< /Type /Catalog /Pages 2 0 R {catalog} >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
        *more,
    ]
    for content in pages:
        resources = f"/Resources << /Font << /F1 3 0 R >> >> /MediaBox [0 0 612 792] {page}"
        objects.append(f"<< /Type /Page /Parent 2 0 R {resources} /Contents {len(objects) + 2} 0 R >>")
        objects.append(f"<< /Length {len(content)} >>\nstream\n{content}\nendstream")
    numbered = "".join(f"{number} 0 obj\n{body}\nendobj\n" for number, body in enumerate(objects, start=1))
    return f"%PDF-1.7\n{numbered}trailer\n<< /Root 1 0 R {trailer} >>\n%%EOF".encode("latin-1")


def lines(*texts: str) -> str:
    """The content of a page with these lines."""
    return " ".join(f"BT /F1 12 Tf 72 {720 - 20 * row} Td ({text}) Tj ET" for row, text in enumerate(texts))
