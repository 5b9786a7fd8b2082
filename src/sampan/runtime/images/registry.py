"""Images from registries.

Job: a name → its manifest and blobs in the content store, several layers at once; what was cut off
    goes on where it was.
Invariant: every byte is checked against its digest before it counts.
Invariant: a layer of any size needs little memory, and no longer of the event loop than its chunks.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar
from urllib.parse import quote

from sampan.core.clock import Clock
from sampan.core.fast_dataclass import dataclass
from sampan.core.http.client import ClientStream
from sampan.core.http.errors import HttpError
from sampan.core.http.failure_words import failure_words
from sampan.core.tasks import all_of, finish
from sampan.runtime.images import manifests
from sampan.runtime.images.claims import Claim
from sampan.runtime.images.content import Descriptor, ImageError, Incoming, digest_of
from sampan.runtime.images.hosts import PULL, RESOLVE, Host
from sampan.runtime.images.image_store import ImageStore
from sampan.runtime.images.registry_client import (
    ImageMissing,
    Login,
    RegistryBusy,
    RegistryClient,
    contexts_of,
    refusal,
    refusal_of,
)

_ACCEPT = ", ".join((*manifests.INDEXES, *manifests.MANIFESTS))
_AT_ONCE = 3  # layers, as containerd
_TRIES = 5
_FIRST_WAIT_SECONDS = 0.5  # between two tries; twice as long each time
# So much has to come within so long; else nothing is coming, or nothing that will ever end.
_STEP_BYTES, _LEAST_BYTES, STALL_SECONDS = 1 << 18, 1 << 15, 60.0
_OTHER_SECONDS = 0.1  # until it is looked again whether somebody else has fetched it


@dataclass(frozen=True, slots=True)
class Wanted:
    name: str  # as it is shown
    registry: str
    repository: str
    reference: str  # a tag or a digest


Found = TypeVar("Found")
Progress = Callable[[int], None]  # how many bytes came


class _BrokenOff(ImageError):
    """The rest of it does not come."""


class Puller:
    """One pull."""

    def __init__(
        self,
        store: ImageStore,
        architecture: str,
        claim: Claim,
        clock: Clock,
        progress: Progress,
    ) -> None:
        """`claim`: gets the digests of everything that comes, before it comes."""
        self._store, self._architecture, self._claim = store, architecture, claim
        self._clock, self._progress = clock, progress
        self._slots = asyncio.Semaphore(_AT_ONCE)

    async def pull(self, wanted: Wanted, hosts: Sequence[Host], login: Login | None) -> Descriptor:
        """The manifest; all of the image is in the store then. Raises ImageError."""
        clients: list[RegistryClient] = []
        try:
            for host in hosts:
                contexts = await asyncio.to_thread(contexts_of, host.encryption)
                place = wanted.registry, wanted.repository
                clients.append(RegistryClient(host, contexts, *place, login))
            found, data = await self._resolve(clients, wanted)
            return await self._first_of(
                [client for client in clients if client.host.may(PULL)],
                lambda client: self._pull_from(client, found, data, wanted.name),
            )
        except ImageError as error:
            kind = ImageMissing if isinstance(error, ImageMissing) else ImageError
            raise kind(f'failed to pull and unpack image "{wanted.name}": {error}') from error
        except OSError as error:
            raise ImageError(f'failed to pull and unpack image "{wanted.name}": {error}') from error
        finally:
            for client in clients:
                await client.close()

    async def _resolve(
        self, clients: Sequence[RegistryClient], wanted: Wanted
    ) -> tuple[Descriptor, bytes]:
        """What the name means now; a digest means itself, so whoever has it may say."""
        by_digest = wanted.reference.startswith("sha256:")
        asked = [
            client
            for client in clients
            if client.host.may(RESOLVE) or (by_digest and client.host.may(PULL))
        ]
        try:
            return await self._first_of(
                asked, lambda client: self._manifest(client, wanted.reference, wanted.name)
            )
        except ImageError as error:
            text = f'failed to resolve reference "{wanted.name}": {error}'
            raise (ImageMissing if isinstance(error, ImageMissing) else ImageError)(text) from error

    async def _first_of(
        self,
        clients: Sequence[RegistryClient],
        ask: Callable[[RegistryClient], Awaitable[Found]],
    ) -> Found:
        """The answer of the first host that has one. Raises ImageError, the last host's."""
        last = ImageError("no host is there that could be asked for it")
        for client in clients:
            try:
                return await ask(client)
            except HttpError as error:
                last = ImageError(f"failed to do request: {failure_words(error)}")
            except ImageError as error:
                last = error
        raise last

    async def _pull_from(
        self, client: RegistryClient, found: Descriptor, data: bytes, name: str
    ) -> Descriptor:
        document = manifests.document(data, "manifest")
        if manifests.media_type_of(document, found.media_type) in manifests.INDEXES:
            chosen = manifests.manifest_for(document, self._architecture)
            found, data = await self._manifest(client, chosen.digest, name)
            document = manifests.document(data, "manifest")
        parts = manifests.manifest(document)
        wanted = [parts.config, *{layer.digest: layer for layer in parts.layers}.values()]
        self._claim.add(found.digest, *(part.digest for part in wanted))
        await asyncio.to_thread(self._store.content.write, found, [data])
        await all_of(self._blob(client, part) for part in wanted)
        return found

    async def _manifest(
        self, client: RegistryClient, reference: str, name: str
    ) -> tuple[Descriptor, bytes]:
        path = f"manifests/{quote(reference, safe=':')}"
        try:
            answer = await client.get(path, _ACCEPT)
        except HttpError as error:
            why = f'Get "{client.url(path)}": {failure_words(error)}'
            raise ImageError(f"failed to do request: {why}") from error
        if answer.status != 200:
            raise refusal_of(answer.status, answer.headers, answer.body, name)
        if len(answer.body) > manifests.MOST_JSON_BYTES:
            raise ImageError("the manifest is too large")
        digest = digest_of(answer.body)
        if reference.startswith("sha256:") and digest != reference:
            raise ImageError(f"failed digest verification: {digest} came, not {reference}")
        kind = answer.headers.get("content-type", "").partition(";")[0]
        return Descriptor(kind, digest, len(answer.body)), answer.body

    async def _blob(self, client: RegistryClient, part: Descriptor) -> None:
        """Once it is there; whoever fetches it, also in another cluster, does so for all."""
        content = self._store.content
        async with self._slots:
            while not content.has(part):
                incoming = content.begin(part)
                if incoming is None:
                    await self._clock.sleep(_OTHER_SECONDS)
                    continue
                try:
                    if not content.has(part):  # else another has just finished it
                        await self._fetch(client, part, incoming)
                finally:
                    # Also who is cancelled just now leaves nothing behind that has not begun.
                    await finish(asyncio.to_thread(incoming.close))

    async def _fetch(self, client: RegistryClient, part: Descriptor, incoming: Incoming) -> None:
        left = await asyncio.to_thread(incoming.go_on)
        try:
            await self._receive(client, part, incoming)
            await asyncio.to_thread(incoming.finish)
        except (_BrokenOff, ImageMissing):
            raise  # what came stays, for the next try
        except ImageError:
            incoming.start_over()
            if not left:
                raise
            # What an earlier process left may be damaged.
            await self._receive(client, part, incoming)
            await asyncio.to_thread(incoming.finish)

    async def _receive(self, client: RegistryClient, part: Descriptor, incoming: Incoming) -> None:
        """Again and again from where it was cut off. Raises ImageError."""
        tries = 0  # without a byte more
        while incoming.received < part.size:
            had = incoming.received
            try:
                await self._receive_once(client, part, incoming)
                return
            except (HttpError, TimeoutError, RegistryBusy) as error:
                tries = tries + 1 if incoming.received == had else 1
                if tries == _TRIES:
                    raise _BrokenOff(
                        f"{part.digest}: the registry broke off after {incoming.received} of "
                        f"{part.size} bytes: {str(error) or 'nothing comes any more'}"
                    ) from error
            await self._clock.sleep(_FIRST_WAIT_SECONDS * 2**tries)

    async def _receive_once(
        self, client: RegistryClient, part: Descriptor, incoming: Incoming
    ) -> None:
        have = incoming.received
        headers = (("range", f"bytes={have}-"),) if have else ()
        answer = await client.stream(f"blobs/{part.digest}", headers)
        if answer.status not in (200, 206):
            raise await refusal(answer, part.digest)
        try:
            skip = have if answer.status == 200 else 0
            while True:
                step, failure = await _step(answer)
                self._progress(len(step))
                rest = step[skip:]
                skip = max(0, skip - len(step))
                if rest:
                    await asyncio.to_thread(incoming.add, rest)
                if failure is not None:
                    raise failure
                if not step:
                    break
        finally:
            await answer.aclose()
        if incoming.received < part.size:
            raise ImageError(
                f"{part.digest} has {incoming.received} bytes, its manifest says {part.size}"
            )


async def _step(answer: ClientStream) -> tuple[bytes, Exception | None]:
    """Some more of it, empty at the end; and what ended it, if something did."""
    found: list[bytes] = []
    size = 0
    failure: Exception | None = None
    try:
        async with asyncio.timeout(STALL_SECONDS):
            while size < _STEP_BYTES and (chunk := await anext(answer, b"")):
                found.append(chunk)
                size += len(chunk)
    except HttpError as error:
        failure = error
    except TimeoutError as error:
        failure = error if size < _LEAST_BYTES else None
    return b"".join(found), failure
