"""One host that has images: requests, logins, redirects, refusals.

Job: a path of the distribution API (version 2) → the answer, as a stream or whole.
Invariant: credentials go to the host and to whom it names for tokens, never to where it redirects.
Invariant: what a host answers is a value, an ImageError or an HttpError, within bounds of size and
    time.
"""

import asyncio
import base64
import json
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import field
from urllib.parse import quote, urljoin, urlsplit

from sampan.core.fast_dataclass import dataclass
from sampan.core.http.client import ClientResponse, ClientStream, HttpClient
from sampan.core.http.errors import HttpError
from sampan.core.patterns import lazy_pattern
from sampan.core.tls import client_context
from sampan.runtime.images import manifests
from sampan.runtime.images.content import ImageError
from sampan.runtime.images.hosts import Encryption, Host

ANSWER_SECONDS = 60.0  # for a small answer as a whole
_MOST_REDIRECTS = 5
_MOST_COMPLAINT = 1 << 16
_CHALLENGE = lazy_pattern(r'([a-zA-Z_]+)="([^"]*)"')


class ImageMissing(ImageError):
    """The registry does not have it, or will not say."""


class RegistryBusy(ImageError):
    """It has too much to do, or does not work just now."""


@dataclass(frozen=True, slots=True)
class Login:
    username: str = ""
    password: str = field(default="", repr=False)
    token: str = field(default="", repr=False)  # for the registry itself

    def basic(self) -> str:
        pair = f"{self.username}:{self.password}".encode()
        return "Basic " + base64.b64encode(pair).decode()


class RegistryClient:
    """For one repository, as the images of `registry` are called."""

    def __init__(self, host: Host, registry: str, repository: str, login: Login | None) -> None:
        """Raises ImageError where its certificates cannot be used."""
        self.host = host
        self._repository, self._login = repository, login
        self._question = f"?ns={quote(registry)}" if host.is_mirror_of(registry) else ""
        self._http = HttpClient(
            ssl_context=_context(host.encryption), connect_seconds=host.connect_seconds
        )
        self._authorization = ""

    async def close(self) -> None:
        await self._http.close()

    def url(self, path: str) -> str:
        """`path`: below the repository."""
        return f"{self.host.api}/{self._repository}/{path}{self._question}"

    async def get(self, path: str, accept: str) -> ClientResponse:
        """A small answer, whole. Raises HttpError, ImageError."""
        answer = await self.stream(path, (("accept", accept),))
        body = await _body(answer, manifests.MOST_JSON_BYTES + 1)
        return ClientResponse(answer.status, answer.headers, body)

    async def stream(self, path: str, headers: Sequence[tuple[str, str]] = ()) -> ClientStream:
        """`path`: below the repository. Redirects are followed; a challenge is answered once."""
        url = self.url(path)
        challenged = False
        for _ in range(_MOST_REDIRECTS + 1):
            own = self._own_headers() if _origin(url) == _origin(self.host.api) else []
            answer = await self._http.stream("GET", url, headers=[*headers, *own])
            if answer.status == 401 and not challenged and own is not None:
                challenged = True
                said = answer.headers.get("www-authenticate", "")
                await answer.aclose()
                self._authorization = await self._answer_challenge(said)
                continue
            if answer.status in (301, 302, 303, 307, 308) and "location" in answer.headers:
                await answer.aclose()
                url = urljoin(url, answer.headers["location"])
                if urlsplit(url).scheme not in ("https", "http"):
                    raise ImageError("the registry leads nowhere")
                continue
            return answer
        raise ImageError("the registry redirects again and again")

    def _own_headers(self) -> list[tuple[str, str]]:
        found = list(self.host.headers)
        if self._authorization:
            found.append(("authorization", self._authorization))
        return found

    async def _answer_challenge(self, said: str) -> str:
        scheme = said.split(" ", 1)[0].lower()
        login = self._login
        if login is not None and login.token:
            return f"Bearer {login.token}"
        if scheme == "basic":
            return login.basic() if login is not None else ""
        if scheme != "bearer":
            raise ImageError(f"the registry asks for a login of an unknown kind: {scheme[:40]!r}")
        fields = dict(_CHALLENGE.findall(said))
        realm = fields.get("realm", "")
        if urlsplit(realm).scheme not in ("https", "http"):
            raise ImageError("the registry does not say where tokens are")
        scope = fields.get("scope") or f"repository:{self._repository}:pull"
        url = f"{realm}{'&' if '?' in realm else '?'}scope={quote(scope)}"
        if "service" in fields:
            url += f"&service={quote(fields['service'])}"
        headers = [("authorization", login.basic())] if login is not None else []
        answer = await self._http.stream("GET", url, headers=headers)
        if answer.status != 200:
            raise await refusal(answer, "the registry's token")
        found = manifests.document(
            await _body(answer, manifests.MOST_JSON_BYTES), "registry's token"
        )
        token = found.get("token") or found.get("access_token")
        if not isinstance(token, str):
            raise ImageError("the registry gave no token")
        return f"Bearer {token}"


async def _body(answer: ClientStream, most_bytes: int) -> bytes:
    """At most so much of it. Raises HttpError."""
    body = b""
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            async for chunk in answer:
                body += chunk
                if len(body) >= most_bytes:
                    break
    except TimeoutError:
        raise HttpError("the registry's answer does not end") from None
    finally:
        await answer.aclose()
    return body[:most_bytes]


def _context(encryption: Encryption) -> ssl.SSLContext:
    try:
        context = client_context(verify=not encryption.skip_verify)
        for file in encryption.authorities:  # beside the system's
            context.load_verify_locations(cafile=file)
        for certificate, key in encryption.clients:
            context.load_cert_chain(certificate, key or None)
    except (OSError, ssl.SSLError) as error:
        files = [*encryption.authorities, *(name for pair in encryption.clients for name in pair)]
        raise ImageError(f"the certificates {', '.join(files)} cannot be used: {error}") from error
    return context


def _origin(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.netloc


async def refusal(answer: ClientStream, what: str) -> ImageError:
    """In the words that people search for. Raises HttpError."""
    return refusal_of(answer.status, answer.headers, await _body(answer, _MOST_COMPLAINT), what)


def refusal_of(status: int, headers: Mapping[str, str], body: bytes, what: str) -> ImageError:
    said = _reason_in(body)
    if status == 404:
        return ImageMissing(f"{what}: not found")
    if status in (401, 403):
        return ImageMissing(
            f"{what}: pull access denied, repository does not exist or may require "
            f"authorization: {said or 'authorization failed'}"
        )
    if status == 429:
        wait = headers.get("retry-after", "")
        more = f"; it says: try again in {wait} s" if wait else ""
        return RegistryBusy(
            f"{what}: 429 Too Many Requests: {said or 'toomanyrequests'}: the registry limits how "
            f"often anybody may pull; log in, or use a mirror (--registry-mirror){more}"
        )
    text = f"{what}: unexpected status from the registry: {status} {said}".strip()
    return RegistryBusy(text) if status >= 500 else ImageError(text)


def _reason_in(body: bytes) -> str:
    try:
        errors = json.loads(body)["errors"]
        return "; ".join(f"{entry['code']}: {entry['message']}".lower() for entry in errors)[:300]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return ""
