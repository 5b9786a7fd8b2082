"""The machine's own log files, as the node's proxy shows them: a listing, or a file.

Job: a path below /var/log → the page of a directory in the form of Go's file server, or the file.
Invariant: nothing outside of the directory is shown, whatever links are in it.
"""

import os
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import quote

from sampan.core.http.messages import Headers, Reply, Response, Stream

ROOT = "/var/log"
BLOCK_BYTES = 64 * 1024
_TEXT: Headers = (("content-type", "text/plain; charset=utf-8"),)
_PAGE: Headers = (("content-type", "text/html; charset=utf-8"),)
_HEAD = '<!doctype html>\n<meta name="viewport" content="width=device-width">'
# As Go's file server writes names.
_ESCAPED = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&#34;", "'": "&#39;"})
_NOT_FOUND = Response(404, _TEXT, b"404 page not found\n")


def log_file(parts: list[str], root: str = ROOT) -> Reply:
    """`parts` of the path behind `/logs/`; the last one is empty where it ends in a slash."""
    base = os.path.realpath(root)
    place = os.path.realpath(os.path.join(base, *parts))
    if place != base and not place.startswith(f"{base}/"):
        return _NOT_FOUND
    try:
        if os.path.isdir(place):
            is_named_so = parts[-1:] == [""]
            return _listing(Path(place)) if is_named_so else _moved(f"{parts[-1]}/")
        if parts[-1:] == [""] or not os.path.isfile(place):
            return _NOT_FOUND
        return Stream(200, _headers(place), _blocks(os.open(place, os.O_RDONLY | os.O_NONBLOCK)))
    except PermissionError:
        return Response(403, _TEXT, b"403 Forbidden\n")
    except OSError:
        return _NOT_FOUND


def is_below(name: str, root: str) -> bool:
    """Wherever the links on the way to it lead."""
    base = os.path.realpath(root)
    place = os.path.realpath(os.path.join(base, name))
    return place == base or place.startswith(f"{base}/")


def _listing(place: Path) -> Response:
    names = sorted(f"{item.name}/" if item.is_dir() else item.name for item in place.iterdir())
    lines = [f'<a href="{quote(name)}">{name.translate(_ESCAPED)}</a>' for name in names]
    page = "\n".join([_HEAD, "<pre>", *lines, "</pre>", ""])
    return Response(200, _PAGE, page.encode())


def _moved(target: str) -> Response:
    return Response(301, (("location", target),), b"")


def _headers(place: str) -> Headers:
    with open(place, "rb") as file:
        is_text = b"\0" not in file.read(512)
    kind = "text/plain; charset=utf-8" if is_text else "application/octet-stream"
    return (("content-type", kind),)


async def _blocks(descriptor: int) -> AsyncIterator[bytes]:
    with os.fdopen(descriptor, "rb") as file:
        while block := file.read(BLOCK_BYTES):
            yield block
