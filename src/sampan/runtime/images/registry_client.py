"""One host that has images: requests, logins, redirects, refusals.

Job: a path of the distribution API (version 2) → the answer, as a stream or whole.
Invariant: credentials go to the host itself and, encrypted if it is, to whom it names for tokens:
    never to where it redirects, nor to whom a host asks for who was redirected there.
Invariant: an address of the node itself or of its link is asked only where it was named for it: a
    host that is elsewhere cannot send anybody there, by redirect, by token or by the name it has.
Invariant: what a host answers is a value, an ImageError or an HttpError, within bounds of size and
    time.
"""

import asyncio
import base64
import json
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from urllib.parse import quote, urljoin, urlsplit

from sampan.core.fast_dataclass import dataclass
from sampan.core.http.client import ClientResponse, ClientStream, HttpClient
from sampan.core.http.errors import AddressNotAllowed, HttpError
from sampan.core.ip_addresses import is_proxyable
from sampan.core.patterns import lazy_pattern
from sampan.core.tls import client_context
from sampan.runtime.images import manifests
from sampan.runtime.images.content import ImageError
from sampan.runtime.images.hosts import Encryption, Host

ANSWER_SECONDS = 60.0  # for a small answer as a whole
_MOST_REDIRECTS = 5
_MOST_COMPLAINT = 1 << 16
_SHOWN = 100  # characters of what a registry says, to who reads it
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


@dataclass(frozen=True, slots=True)
class Contexts:
    own: ssl.SSLContext
    elsewhere: ssl.SSLContext  # where the host sends somebody: its certificate is not for others


def contexts_of(encryption: Encryption) -> Contexts:
    """To be called beside the loop: the system's authorities alone take 50 ms. Raises ImageError
    where its certificates cannot be used."""
    elsewhere = _context(replace(encryption, clients=()))
    return Contexts(_context(encryption) if encryption.clients else elsewhere, elsewhere)


class RegistryClient:
    """For one repository, as the images of `registry` are called."""

    def __init__(
        self, host: Host, contexts: "Contexts", registry: str, repository: str, login: Login | None
    ) -> None:
        self.host = host
        self._repository, self._login = repository, login
        self._question = f"?ns={quote(registry)}" if host.is_mirror_of(registry) else ""
        wait = host.connect_seconds
        self._http = HttpClient(
            ssl_context=contexts.own,
            connect_seconds=wait,
            allows=None if host.named else is_proxyable,
        )
        self._elsewhere = HttpClient(
            ssl_context=contexts.elsewhere,
            connect_seconds=wait,
            allows=None if host.is_near else is_proxyable,
        )
        self._authorization = ""

    async def close(self) -> None:
        await self._http.close()
        await self._elsewhere.close()

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
            own = _origin(url) == _origin(self.host.api)
            more = self._own_headers() if own else []
            answer = await self._ask(url, [*headers, *more], own=own)
            if answer.status == 401 and own and not challenged:
                challenged = True
                message = answer.headers.get("www-authenticate", "")
                await answer.aclose()
                self._authorization = await self._answer_challenge(message)
                continue
            if answer.status in (301, 302, 303, 307, 308) and "location" in answer.headers:
                await answer.aclose()
                url = _joined(url, answer.headers["location"])
                continue
            return answer
        raise ImageError("the registry redirects again and again")

    async def _ask(
        self, url: str, headers: Sequence[tuple[str, str]], *, own: bool
    ) -> ClientStream:
        """Raises HttpError, ImageError."""
        try:
            client = self._http if own else self._elsewhere
            return await client.stream("GET", url, headers=headers)
        except AddressNotAllowed:
            where = urlsplit(url).netloc[:_SHOWN]
            raise ImageError(
                f"{where} is an address of the node itself or of its link, where images come from "
                "only if --registry-mirror or certs.d names it"
            ) from None
        except ValueError as error:  # no URL that could be asked for
            raise ImageError(f"the registry leads to no place: {url[:_SHOWN]!r}") from error

    def _own_headers(self) -> list[tuple[str, str]]:
        found = list(self.host.headers)
        if self._authorization:
            found.append(("authorization", self._authorization))
        return found

    async def _answer_challenge(self, message: str) -> str:
        scheme = message.split(" ", 1)[0].lower()
        login = self._login
        if login is not None and login.token:
            return f"Bearer {login.token}"
        if scheme == "basic":
            return login.basic() if login is not None else ""
        if scheme != "bearer":
            raise ImageError(f"the registry asks for a login of an unknown kind: {scheme[:40]!r}")
        fields = dict(_CHALLENGE.findall(message))
        realm = fields.get("realm", "")
        own = urlsplit(self.host.api).scheme
        if _scheme(realm) not in ("https", own):
            raise ImageError(f"the registry does not say where tokens are: {realm[:_SHOWN]!r}")
        scope = fields.get("scope") or f"repository:{self._repository}:pull"
        url = f"{realm}{'&' if '?' in realm else '?'}scope={quote(scope)}"
        if "service" in fields:
            url += f"&service={quote(fields['service'])}"
        headers = [("authorization", login.basic())] if login is not None else []
        same = _origin(realm) == _origin(self.host.api)
        answer = await self._ask(url, headers, own=same)
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
    """Raises ImageError."""
    return _scheme(url), urlsplit(url).netloc.lower()


def _scheme(url: str) -> str:
    try:
        return urlsplit(url).scheme
    except ValueError as error:
        raise ImageError(f"the registry leads to no place: {url[:_SHOWN]!r}") from error


def _joined(url: str, location: str) -> str:
    """Raises ImageError."""
    try:
        found = urljoin(url, location)
    except ValueError:
        found = ""
    if _scheme(found) not in ("https", "http"):
        raise ImageError("the registry leads nowhere")
    return found


async def refusal(answer: ClientStream, what: str) -> ImageError:
    """In the words that people search for. Raises HttpError."""
    return refusal_of(answer.status, answer.headers, await _body(answer, _MOST_COMPLAINT), what)


def refusal_of(status: int, headers: Mapping[str, str], body: bytes, what: str) -> ImageError:
    message = _reason_in(body)
    if status == 404:
        return ImageMissing(f"{what}: not found")
    if status in (401, 403):
        return ImageMissing(
            f"{what}: pull access denied, repository does not exist or may require "
            f"authorization: {message or 'authorization failed'}"
        )
    if status == 429:
        wait = headers.get("retry-after", "")
        more = f"; it says: try again in {wait} s" if wait else ""
        return RegistryBusy(
            f"{what}: 429 Too Many Requests: {message or 'toomanyrequests'}: the registry limits "
            f"how often anybody may pull; log in, or use a mirror (--registry-mirror){more}"
        )
    text = f"{what}: unexpected status from the registry: {status} {message}".strip()
    return RegistryBusy(text) if status >= 500 else ImageError(text)


def _reason_in(body: bytes) -> str:
    try:
        errors = json.loads(body)["errors"]
        return "; ".join(f"{entry['code']}: {entry['message']}".lower() for entry in errors)[:300]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return ""
