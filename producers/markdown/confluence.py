"""Which addresses are of a Confluence: told by the host, else by paths that nothing else has."""

import re

_ADDRESS = re.compile(r"(?:https?:)?//([^/?#\s]+)(.*)", re.I | re.S)
# Cloud: Jira has the same host. What is called Confluence may be a MediaWiki by now, whose paths are known.
_CLOUD = re.compile(r"(?:.*[@.])?[\w-]+\.atlassian\.net(?::\d+)?", re.I)
_JIRA = re.compile(r"/(?:browse|jira|projects|issues|secure|servicedesk|rest)(?:[/?#]|$)")
_OWN_HOST = re.compile(r".*\bconfluence\b", re.I)
_WIKI_HOST = re.compile(r"(?:.*[@.])?wiki\.", re.I)
_OF_A_WIKI = re.compile(r"/(?:[\w-]+/)?(?:display|pages|x|spaces)/")
_MEDIAWIKI = re.compile(r"/(?:w|title|wiki(?!/(?:spaces|display|pages|x)/)|index\.php)(?:[/?#]|$)")
# Below the context path, as `/wiki` or `/confluence`, if there is one.
_ANYWHERE = re.compile(
    r"/(?:[\w-]+/)?"
    r"(?:pages/\w+\.action"
    r"|spaces/[^/?#]+/(?:pages/\d|blog/\d|overview(?:[?#]|$))"
    r"|plugins/servlet/mobile"
    r"|download/attachments/\d)"
)
# Of a local address these could be folders. Keys of spaces are upper-case, `~name` is a person's; short links are
# base64 of a number, which without a capital or a digit is a word (`golang.org/x/net`).
_ABSOLUTE = re.compile(
    r"/(?:[\w-]+/)?"
    r"(?:display/(?:[A-Z][A-Z0-9]*|~[^/?#]+)(?:[/?#]|$)"
    r"|x/(?=[\w-]*[A-Z0-9])[\w-]+(?:[?#]|$)"
    r"|l/cp/)"
)


def is_confluence(url: str) -> bool:
    address = _ADDRESS.match(url)
    if address is None:
        return _ANYWHERE.match(url) is not None
    host, path = address.groups()
    if _CLOUD.fullmatch(host):
        return _JIRA.match(path) is None
    is_own = _OWN_HOST.match(host) or (_WIKI_HOST.match(host) and _OF_A_WIKI.match(path))
    if is_own and not _MEDIAWIKI.match(path):
        return True
    return _ANYWHERE.match(path) is not None or _ABSOLUTE.match(path) is not None
