"""`sampan docs`: the documentation of this version, without the internet.

Job: serve the pages of the archive that came with the package to a browser on this machine, or
    unpack them.
Invariant: what is served is what is in the archive, to this machine only.
"""

import mimetypes
import os
import sys
import webbrowser
import zipfile
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from sampan.cmd.errors import CannotStart
from sampan.cmd.verbs.machine.ui import has_screen

ARCHIVE = Path(__file__).parents[3] / "data" / "docs.zip"
FIRST_PAGE = "index.html"


def run(port: int, directory: str, *, opens: bool, archive: Path = ARCHIVE) -> int:
    """Raises CannotStart."""
    pages = _pages(archive)
    if directory:
        return _unpack(pages, Path(directory))
    try:
        server = _Server(port, pages)
    except OSError as error:
        raise CannotStart(f"--port {port}: {error.strerror}; 0 takes any") from error
    with server:
        url = f"http://127.0.0.1:{server.server_address[1]}/"
        print(url, flush=True)
        if opens and has_screen(os.environ, sys.platform):
            webbrowser.open(url)
        print("Ctrl-C ends it", file=sys.stderr)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print(file=sys.stderr)
    return 0


def _pages(archive: Path) -> dict[str, bytes]:
    try:
        with zipfile.ZipFile(archive) as opened:
            return {name: opened.read(name) for name in opened.namelist()}
    except FileNotFoundError:
        raise CannotStart("there is no documentation in this installation: `make docs`") from None


def _unpack(pages: dict[str, bytes], directory: Path) -> int:
    """Raises CannotStart: what somebody keeps there is not mixed with it."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        if any(directory.iterdir()):
            raise CannotStart(f"--to {directory}: it is not empty")
        for name, content in pages.items():
            place = directory / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
    except OSError as error:
        raise CannotStart(f"--to {directory}: {error.strerror}") from error
    print(directory / FIRST_PAGE)
    return 0


class _Server(ThreadingHTTPServer):
    def __init__(self, port: int, pages: dict[str, bytes]) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.pages = pages


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:
        name = self.path.partition("?")[0].lstrip("/") or FIRST_PAGE
        content = self.server.pages.get(name)
        if content is None:
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        self.send_response(HTTPStatus.OK)
        kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
        self.send_header("Content-Type", f"{kind}; charset=utf-8" if "text" in kind else kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Nobody asks who has read what."""
