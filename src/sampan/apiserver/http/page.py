"""The page at /ui/: its files, and the exchange of a login code for a session.

Job: a path below /ui → a file of the package, or the session that a code stands for.
Invariant: what is served here is the same for everybody; data comes from the API, to whom it may.
Invariant: the page runs no script but its own files, and nobody's page may frame it.
"""

import hashlib
import mimetypes
import zlib
from pathlib import Path

import orjson

import sampan
from sampan.api.errors import ApiError, BadRequest, Forbidden, MethodNotAllowed, Unauthorized
from sampan.api.objects import Obj, time_text
from sampan.apiserver.authn.chain import is_own_page
from sampan.apiserver.authn.page_sessions import PageSessions
from sampan.apiserver.http import replies
from sampan.core.fast_dataclass import dataclass
from sampan.core.http.messages import Headers, Request, Response

ROOT = "/ui"
CODE_PATH = "/sampan/v1/ui/code"  # asked with a credential; the code is exchanged below ROOT
SESSION_PATH = "/ui/session"
FOLDER = Path(sampan.__file__).parent / "dashboard"
_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
_SAFE: Headers = (
    ("content-security-policy", _POLICY),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
)
# What has arrived need not come again when another file was lost and the page is loaded anew.
_KEPT_A_WHILE = "private, max-age=30"
_NOT_KEPT = ("cache-control", "no-store")


@dataclass(frozen=True, slots=True)
class _File:
    media: str
    body: bytes
    packed: bytes
    etag: str


class Page:
    def __init__(self, sessions: PageSessions) -> None:
        self.sessions = sessions
        self._files: dict[str, _File] = {}

    def reply(self, request: Request) -> Response | None:
        """None where the path is none of the page's."""
        if request.path == ROOT:
            return Response(307, (("location", f"{ROOT}/"), *_SAFE))
        if not request.path.startswith(f"{ROOT}/"):
            return None
        try:
            return self._reply(request, request.path)
        except ApiError as error:
            plain = replies.error_reply(error)
            return Response(plain.status, (*plain.headers, *_SAFE), plain.body)

    def _reply(self, request: Request, path: str) -> Response:
        """Raises ApiError."""
        if path == SESSION_PATH:
            return self._session(request)
        if request.method not in ("GET", "HEAD"):
            raise MethodNotAllowed("the page is only read")
        return self._file(request, path.removeprefix(f"{ROOT}/") or "index.html")

    def _file(self, request: Request, name: str) -> Response:
        if not self._files:
            self._files = _read_files()
        file = self._files.get(name)
        if file is None:
            return Response(404, (*_SAFE, ("content-type", "text/plain")), b"404 page not found\n")
        headers = [
            *_SAFE,
            ("content-type", file.media),
            ("etag", file.etag),
            ("cache-control", "no-cache" if name == "index.html" else _KEPT_A_WHILE),
            ("vary", "Accept-Encoding"),
        ]
        if request.headers.get("if-none-match") == file.etag:
            return Response(304, headers)
        if "gzip" in request.headers.get("accept-encoding", ""):
            return Response(200, [*headers, ("content-encoding", "gzip")], file.packed)
        return Response(200, headers, file.body)

    def _session(self, request: Request) -> Response:
        """Raises ApiError."""
        if not is_own_page(request):
            raise Forbidden("another page's request")
        if request.method == "DELETE":
            self.sessions.forget(request.headers.get("authorization", "").partition(" ")[2].strip())
            return Response(204, (*_SAFE, _NOT_KEPT))
        if request.method != "POST":
            raise MethodNotAllowed("a code is exchanged by POST, a session ended by DELETE")
        session = self.sessions.exchange(_code_in(request))
        if session is None:
            raise Unauthorized("the login code was used, or is too old: `sampan ui` makes another")
        answer = {"token": session.token, "expirationTimestamp": time_text(session.ends)}
        headers = (*_SAFE, _NOT_KEPT, ("content-type", "application/json"))
        return Response(201, headers, orjson.dumps(answer))


def code_answer(code: str, seconds: float) -> Obj:
    return {"code": code, "expiresInSeconds": int(seconds), "path": f"{ROOT}/"}


def _code_in(request: Request) -> str:
    """Raises BadRequest."""
    try:
        body = orjson.loads(request.body)
    except orjson.JSONDecodeError as error:
        raise BadRequest("expected a JSON object with a code") from error
    code = body.get("code") if isinstance(body, dict) else None
    if not isinstance(code, str):
        raise BadRequest("expected a JSON object with a code")
    return code


def _read_files() -> dict[str, _File]:
    found = {}
    for path in FOLDER.iterdir():
        body = path.read_bytes()
        media = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
        if media.startswith("text/"):
            media += "; charset=utf-8"
        packer = zlib.compressobj(9, zlib.DEFLATED, 31)
        packed = packer.compress(body) + packer.flush()
        etag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
        found[path.name] = _File(media, body, packed, etag)
    return found
