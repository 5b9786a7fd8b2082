"""Images from registries: the distribution API, version 2.

Job: a name → its manifest and blobs in the content store, several layers at once.
Invariant: every byte is checked against its digest before it counts; a registry that lies, cuts off
    or never ends leaves nothing behind.
Invariant: credentials go to the registry and to whom it names for tokens, never to where it
    redirects.
"""

import asyncio
import base64
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from urllib.parse import quote, urljoin, urlsplit

from sampan.core.fast_dataclass import dataclass
from sampan.core.http_client import ClientResponse, ClientStream, HttpClient, HttpError
from sampan.core.tasks import all_of
from sampan.core.tls import client_context
from sampan.runtime.images import manifests
from sampan.runtime.images.content import Descriptor, ImageError, checked_digest, digest_of
from sampan.runtime.images.image_store import ImageStore

_ACCEPT = ", ".join((*manifests.INDEXES, *manifests.MANIFESTS))
_AT_ONCE = 3  # layers, as containerd
_TRIES = 5
_STALL_SECONDS = 60.0  # without a byte
_MOST_REDIRECTS = 5
_CHALLENGE = re.compile(r'([a-zA-Z_]+)="([^"]*)"')
_LOCAL = ("localhost", "127.", "[::1]")


class ImageMissing(ImageError):
    """The registry does not have it, or will not say."""


@dataclass(frozen=True, slots=True)
class Login:
    username: str = ""
    password: str = field(default="", repr=False)
    token: str = field(default="", repr=False)  # for the registry itself

    def basic(self) -> str:
        pair = f"{self.username}:{self.password}".encode()
        return "Basic " + base64.b64encode(pair).decode()


@dataclass(frozen=True, slots=True)
class Place:
    """Where an image is asked for: the registry's own host, or a mirror's."""

    url: str  # https://registry-1.docker.io
    repository: str


@dataclass(frozen=True, slots=True)
class Wanted:
    name: str  # as it is shown
    registry: str
    repository: str
    reference: str  # a tag or a digest


Progress = Callable[[int], None]  # how many bytes came


def places(wanted: Wanted, mirrors: Mapping[str, Sequence[str]]) -> list[Place]:
    """Mirrors first. Plain HTTP only where the registry is this machine, or a mirror says so."""
    host = "registry-1.docker.io" if wanted.registry == "docker.io" else wanted.registry
    scheme = "http" if host.startswith(_LOCAL) else "https"
    urls = [*mirrors.get(wanted.registry, ()), f"{scheme}://{host}"]
    return [Place(url.rstrip("/"), wanted.repository) for url in urls]


class Puller:
    """One pull: its connections, its token."""

    def __init__(
        self, store: ImageStore, architecture: str, login: Login | None, reserved: set[str]
    ) -> None:
        """`reserved`: gets the digests of everything that comes, before it comes."""
        self._store, self._architecture, self._login = store, architecture, login
        self._reserved = reserved
        self._http = HttpClient(ssl_context=client_context())
        self._authorization: dict[str, str] = {}  # by host
        self._slots = asyncio.Semaphore(_AT_ONCE)

    async def close(self) -> None:
        await self._http.close()

    async def pull(
        self, wanted: Wanted, mirrors: Mapping[str, Sequence[str]], progress: Progress
    ) -> Descriptor:
        """The manifest; all of the image is in the store then. Raises ImageError."""
        last = ImageError("no registry was asked")
        for place in places(wanted, mirrors):
            try:
                return await self._pull_from(place, wanted, progress)
            except ImageError as error:
                last = error
            except HttpError as error:
                last = ImageError(f'failed to do request to "{place.url}": {error}')
        kind = type(last) if isinstance(last, ImageMissing) else ImageError
        raise kind(f'failed to pull image "{wanted.name}": {last}')

    async def _pull_from(self, place: Place, wanted: Wanted, progress: Progress) -> Descriptor:
        manifest_descriptor, data = await self._manifest(place, wanted.reference, wanted.name)
        found = manifests.document(data, "manifest")
        if manifests.media_type_of(found, manifest_descriptor.media_type) in manifests.INDEXES:
            chosen = manifests.manifest_for(found, self._architecture)
            manifest_descriptor, data = await self._manifest(place, chosen.digest, wanted.name)
            found = manifests.document(data, "manifest")
        parts = manifests.manifest(found)
        self._reserved |= {
            manifest_descriptor.digest, parts.config.digest,
            *(layer.digest for layer in parts.layers),
        }  # fmt: skip
        self._store.content.write(manifest_descriptor, [data])
        await all_of(
            self._blob(place, part, progress) for part in (parts.config, *_distinct(parts.layers))
        )
        return manifest_descriptor

    async def _manifest(self, place: Place, reference: str, name: str) -> tuple[Descriptor, bytes]:
        url = f"{place.url}/v2/{place.repository}/manifests/{quote(reference, safe=':')}"
        answer = await self._get(url, (("accept", _ACCEPT),), place)
        if answer.status != 200:
            raise _refusal(answer.status, answer.headers, answer.body, name)
        if len(answer.body) > manifests.MOST_JSON_BYTES:
            raise ImageError("the manifest is too large")
        digest = digest_of(answer.body)
        if reference.startswith("sha256:") and digest != reference:
            raise ImageError(f"failed digest verification: {digest} came, not {reference}")
        kind = answer.headers.get("content-type", "").partition(";")[0]
        return Descriptor(kind, digest, len(answer.body)), answer.body

    async def _blob(self, place: Place, part: Descriptor, progress: Progress) -> None:
        if self._store.content.has(part):
            return
        async with self._slots:
            incoming = self._store.content.begin(part)
            try:
                for attempt in range(_TRIES):
                    try:
                        await self._fetch(place, part, incoming.received, incoming.add, progress)
                        break
                    except (HttpError, TimeoutError) as error:
                        if attempt == _TRIES - 1:
                            raise ImageError(
                                f"{part.digest}: the registry broke off after "
                                f"{incoming.received} of {part.size} bytes: {error}"
                            ) from error
                incoming.finish()
            finally:
                incoming.close()

    async def _fetch(
        self,
        place: Place,
        part: Descriptor,
        have: int,
        add: Callable[[bytes], None],
        progress: Progress,
    ) -> None:
        """From where an earlier try was cut off, if the registry can."""
        url = f"{place.url}/v2/{place.repository}/blobs/{checked_digest(part.digest)}"
        headers = (("range", f"bytes={have}-"),) if have else ()
        answer = await self._stream(url, headers, place)
        try:
            if answer.status not in (200, 206):
                raise _refusal(answer.status, answer.headers, b"", part.digest)
            skip = have if answer.status == 200 else 0
            while True:
                async with asyncio.timeout(_STALL_SECONDS):
                    chunk = await anext(answer, b"")
                if not chunk:
                    break
                progress(len(chunk))
                rest = chunk[skip:] if skip < len(chunk) else b""
                skip = max(0, skip - len(chunk))
                if rest:
                    add(rest)
        finally:
            await answer.aclose()

    # ---- requests

    async def _get(
        self, url: str, headers: Sequence[tuple[str, str]], place: Place
    ) -> ClientResponse:
        answer = await self._stream(url, headers, place)
        body = b""
        try:
            async with asyncio.timeout(_STALL_SECONDS):
                async for chunk in answer:
                    body += chunk
                    if len(body) > manifests.MOST_JSON_BYTES:
                        break
        except TimeoutError:
            raise HttpError("the registry's answer does not end") from None
        finally:
            await answer.aclose()
        return ClientResponse(answer.status, answer.headers, body)

    async def _stream(
        self, url: str, headers: Sequence[tuple[str, str]], place: Place
    ) -> ClientStream:
        """Redirects are followed; a challenge is answered once."""
        challenged = False
        for _ in range(_MOST_REDIRECTS + 1):
            answer = await self._http.stream(
                "GET", url, headers=[*headers, *self._known(url, place)]
            )
            if answer.status == 401 and not challenged:
                challenged = True
                said = answer.headers.get("www-authenticate", "")
                await answer.aclose()
                self._authorization[_host(url)] = await self._answer_challenge(said, place)
                continue
            if answer.status in (301, 302, 303, 307, 308) and "location" in answer.headers:
                await answer.aclose()
                url = urljoin(url, answer.headers["location"])
                if urlsplit(url).scheme not in ("https", "http"):
                    raise ImageError("the registry leads nowhere")
                continue
            return answer
        raise ImageError("the registry redirects again and again")

    def _known(self, url: str, place: Place) -> list[tuple[str, str]]:
        host = _host(url)
        if host != _host(place.url):
            return []
        found = self._authorization.get(host, "")
        return [("authorization", found)] if found else []

    async def _answer_challenge(self, said: str, place: Place) -> str:
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
        scope = fields.get("scope") or f"repository:{place.repository}:pull"
        url = f"{realm}{'&' if '?' in realm else '?'}scope={quote(scope)}"
        if "service" in fields:
            url += f"&service={quote(fields['service'])}"
        headers = [("authorization", login.basic())] if login is not None else []
        answer = await self._http.request("GET", url, headers=headers)
        if answer.status != 200:
            raise _refusal(answer.status, answer.headers, answer.body, "the registry's token")
        found = manifests.document(answer.body, "registry's token")
        token = found.get("token") or found.get("access_token")
        if not isinstance(token, str):
            raise ImageError("the registry gave no token")
        return f"Bearer {token}"


def _distinct(parts: Sequence[Descriptor]) -> list[Descriptor]:
    return list({part.digest: part for part in parts}.values())


def _host(url: str) -> str:
    return urlsplit(url).netloc


def _refusal(status: int, headers: Mapping[str, str], body: bytes, what: str) -> ImageError:
    """In the words that people search for."""
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
        return ImageError(
            f"{what}: 429 Too Many Requests: {said or 'toomanyrequests'}: the registry limits how "
            f"often anybody may pull; log in, or use a mirror (--registry-mirror){more}"
        )
    return ImageError(f"{what}: unexpected status from the registry: {status} {said}".strip())


def _reason_in(body: bytes) -> str:
    try:
        errors = json.loads(body)["errors"]
        return "; ".join(f"{entry['code']}: {entry['message']}".lower() for entry in errors)[:300]
    except (ValueError, KeyError, TypeError, AttributeError):
        return ""
