"""Links of a proxied page, rewritten to go through the proxy.

Job: in redirects and HTML, put the proxy's own path before paths that start at the root. Pure.
Invariant: links to other hosts and relative ones stay as they are; so does everything that is no
    link.
"""

import re
from collections.abc import AsyncIterator
from functools import cache
from urllib.parse import urlsplit

from sampan.core.patterns import lazy_pattern

HELD_BYTES = 64 * 1024  # of a tag that has not ended yet; a longer one is none
# As apimachinery's proxy transport: the attributes that hold an address.
_LINKS = {
    b"a": b"href", b"applet": b"codebase", b"area": b"href", b"audio": b"src", b"base": b"href",
    b"blockquote": b"cite", b"body": b"background", b"button": b"formaction", b"command": b"icon",
    b"del": b"cite", b"embed": b"src", b"form": b"action", b"frame": b"longdesc|src",
    b"head": b"profile", b"html": b"manifest", b"iframe": b"longdesc|src",
    b"img": b"longdesc|src|usemap", b"input": b"src|usemap|formaction", b"ins": b"cite",
    b"link": b"href", b"object": b"classid|codebase|data|usemap", b"q": b"cite", b"script": b"src",
    b"source": b"src", b"video": b"poster|src",
}  # fmt: skip
_TAG = lazy_pattern(rb"<([a-zA-Z]+)(\s[^<>]*)>")


@cache  # one for each of the few texts in _LINKS
def _attributes(names: bytes) -> re.Pattern[bytes]:
    return re.compile(rb"""(\s(?:%b)\s*=\s*)(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""" % names, re.I)


def link_through(prefix: str, link: str, host: str) -> str:
    """`link` as the client must ask for it; `host` is the proxied server's own."""
    try:
        parts = urlsplit(link)
    except ValueError:
        return link
    if (parts.netloc and parts.netloc != host) or not parts.path.startswith("/"):
        return link
    if parts.path == prefix or parts.path.startswith(f"{prefix}/"):
        return parts._replace(scheme="", netloc="").geturl()
    return parts._replace(scheme="", netloc="", path=prefix + parts.path).geturl()


def page_through(prefix: str, page: bytes, host: str) -> bytes:
    """A page, or a part of one that ends between two tags."""

    def tag(found: re.Match[bytes]) -> bytes:
        names = _LINKS.get(found[1].lower())
        if names is None:
            return found[0]
        return b"<%b%b>" % (found[1], _attributes(names).sub(attribute, found[2]))

    def attribute(found: re.Match[bytes]) -> bytes:
        link = next(group for group in found.groups()[1:] if group is not None)
        try:
            changed = link_through(prefix, link.decode(), host).encode()
        except UnicodeError:
            return found[0]
        if changed == link:
            return found[0]
        return b'%b"%b"' % (found[1], changed.replace(b'"', b"%22"))

    return _TAG.sub(tag, page)


async def pages_through(
    prefix: str, chunks: AsyncIterator[bytes], host: str
) -> AsyncIterator[bytes]:
    """The same, of a page as it comes."""
    held = b""
    async for chunk in chunks:
        held += chunk
        start = held.rfind(b"<")
        if start >= 0 and b">" not in held[start:] and len(held) - start < HELD_BYTES:
            whole, held = held[:start], held[start:]
        else:
            whole, held = held, b""
        if whole:
            yield page_through(prefix, whole, host)
    if held:
        yield page_through(prefix, held, host)
