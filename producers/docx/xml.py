"""The parts of a DOCX as trees."""

from lxml import etree

from chunksink.producers.html.tags import Element


def read_xml(part: bytes) -> Element:
    """Nothing outside of it is looked up, and comments say nothing. Raises etree.XMLSyntaxError."""
    parser = etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=True, remove_comments=True)
    return etree.fromstring(part, parser)
