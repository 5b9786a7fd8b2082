"""The store in etcd: several processes may use it at once.

Job: the contract over etcd's transactions, leases and one watch of everything.
Invariant: `revision` is how far that watch has come; a write is answered when the watch has brought
    it, so that watchers of this process have it first, as in the other stores.
Invariant: the watch covers every key of etcd, ours or not: so each revision is heard of, and "has
    everything up to this revision arrived?" needs no progress requests, whose answers may run ahead
    of events in older etcds.
Invariant: a lost connection costs no change and repeats none: the watch goes on after the last
    revision that was heard of, on another endpoint if need be.
Owner: whoever opened it; one event loop.
"""

import asyncio
import heapq
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count

from sampan.core.backoff import Backoff
from sampan.core.clock import Clock
from sampan.core.digits import is_digits
from sampan.core.log import get_logger
from sampan.core.tasks import Tasks
from sampan.store.contract import (
    Change,
    Compacted,
    Entry,
    FutureRevision,
    KeyExists,
    Page,
    RevisionMismatch,
    StoreClosed,
    StoreError,
    Unavailable,
    Watch,
)
from sampan.store.etcd_client import (
    REQUEST_SECONDS,
    EtcdClient,
    EtcdWatch,
    HistoryGone,
    LeaseNotFound,
    Message,
)
from sampan.store.etcd_gen import sampan_etcd_pb2 as pb
from sampan.store.etcd_leases import Leases
from sampan.store.etcd_url import EtcdAddress
from sampan.store.fanout import Fanout
from sampan.store.keys import prefix_end

OLDEST_ETCD = (3, 4)  # the first to split large watch answers
EMPTY_REVISION = 1
READ_CHANGES = 500  # for a watcher that reads the log; more, where etcd sends more at once
READ_KEYS = 1000  # per message
CLOSED = "the store is closed"
RECONNECT = Backoff(first_seconds=0.02, cap_seconds=1.0)
_ALL = b"\0"  # as a range's end: without end

log = get_logger(__name__)


class CannotConnect(StoreError):
    """No etcd that can be used is there."""


class EtcdStore:
    """Made by `open_etcd`."""

    shared = True

    def __init__(
        self, client: EtcdClient, clock: Clock, revision: int, first_watch: EtcdWatch
    ) -> None:
        self._client, self._prefix = client, client.address.prefix
        self._fanout = Fanout(revision, self._read_log)
        self._compacted = EMPTY_REVISION  # at least
        self._leases = Leases(clock, self._grant)
        self._turns: dict[str, asyncio.Future[None]] = {}  # the last writer of each key
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._ticket = count()
        self._question: asyncio.Task[int | StoreError] | None = None  # not sent yet
        self._last_question: asyncio.Task[int | StoreError] | None = None
        self._calls = 0
        self._idle: asyncio.Future[None] | None = None
        self._closed = False
        self._closing = Tasks("etcd store closing")
        self._close_task: asyncio.Task[None] | None = None
        self._tasks = Tasks("etcd store")
        self._first_watch: EtcdWatch | None = first_watch
        self._tasks.supervise("watch", self._follow)

    @property
    def revision(self) -> int:
        return self._fanout.revision

    async def current_revision(self) -> int:
        """Who asks while a question is under way shares the next one."""
        self._check_open()
        async with self._under_way():
            if self._question is None:
                self._question = self._tasks.start("revision", self._ask(self._last_question))
            found = await asyncio.shield(self._question)
        if isinstance(found, StoreError):
            raise type(found)(*found.args)
        return found

    # Reading.

    async def get(self, key: str) -> Entry | None:
        response = await self._call("KV/Range", pb.RangeRequest(key=self._bytes(key)))
        return self._entry(response.kvs[0]) if response.kvs else None

    async def range(
        self, prefix: str, *, start: str = "", limit: int = 0, revision: int = 0
    ) -> Page:
        self._check_open()
        while True:
            try:
                return await self._range(prefix, max(prefix, start), limit, revision)
            except Compacted as error:
                if revision:
                    raise Compacted(revision, await self._find_compacted()) from error
                # "Now" was compacted between two messages: now is later.

    async def _range(self, prefix: str, start: str, limit: int, revision: int) -> Page:
        end = prefix_end(self._prefix + prefix)
        entries: list[Entry] = []
        at, key, total, read = revision, self._bytes(start) or _ALL, 0, 0
        while True:
            wanted = min(READ_KEYS, limit - len(entries)) if limit else READ_KEYS
            request = pb.RangeRequest(
                key=key, range_end=_ALL if end is None else end.encode(), limit=wanted, revision=at
            )
            response = await self._call("KV/Range", request)
            at = at or response.header.revision
            total = total or response.count
            read += len(response.kvs)
            entries.extend(one for kv in response.kvs if (one := self._entry(kv)))
            if not response.more or len(entries) == limit:
                return Page(entries, at, total - read)
            key = response.kvs[-1].key + b"\0"

    # Writing.

    async def create(self, key: str, value: bytes, *, ttl_seconds: int = 0) -> int:
        absent = pb.Compare(target=pb.Compare.CREATE, key=self._bytes(key), create_revision=0)
        response = await self._put(key, value, [absent], ttl_seconds)
        if not response.succeeded:
            raise KeyExists(key)
        return await self._wait_for_arrival(response)

    async def update(
        self, key: str, value: bytes, expected_revision: int, *, ttl_seconds: int = 0
    ) -> int:
        unchanged = self._if_unchanged(key, expected_revision)
        response = await self._put(key, value, unchanged, ttl_seconds)
        if not response.succeeded:
            raise self._mismatch(key, expected_revision, response)
        return await self._wait_for_arrival(response)

    async def delete(self, key: str, expected_revision: int) -> int:
        gone = pb.RequestOp(request_delete_range=pb.DeleteRangeRequest(key=self._bytes(key)))
        response = await self._txn(key, self._if_unchanged(key, expected_revision), gone)
        if not response.succeeded:
            raise self._mismatch(key, expected_revision, response)
        return await self._wait_for_arrival(response)

    def watch(self, prefix: str, after_revision: int, *, progress: bool = False) -> Watch:
        return self._fanout.watch(prefix, after_revision, progress)

    async def compact(self, revision: int) -> None:
        self._check_open()
        if revision <= self._compacted:
            return
        try:
            await self._call("KV/Compact", pb.CompactionRequest(revision=revision))
        except Compacted:
            pass  # another process was faster
        except FutureRevision as error:
            raise FutureRevision(f"revision {revision} has not been written yet") from error
        self._compacted = max(self._compacted, revision)

    async def close(self) -> None:
        """What is under way is finished first."""
        if self._close_task is None:
            self._closed = True
            self._close_task = self._closing.start("close", self._close())
        await asyncio.shield(self._close_task)

    def _if_unchanged(self, key: str, revision: int) -> list[Message]:
        there = pb.Compare(
            target=pb.Compare.CREATE, result=pb.Compare.GREATER, key=self._bytes(key),
            create_revision=0,
        )  # fmt: skip
        same = pb.Compare(target=pb.Compare.MOD, key=self._bytes(key), mod_revision=revision)
        return [there, same]

    async def _put(
        self, key: str, value: bytes, compare: list[Message], ttl_seconds: int
    ) -> Message:
        put = pb.PutRequest(key=self._bytes(key), value=value)
        if not ttl_seconds:
            return await self._txn(key, compare, pb.RequestOp(request_put=put))
        self._check_open()
        while True:
            put.lease = await self._leases.of(ttl_seconds)
            try:
                return await self._txn(key, compare, pb.RequestOp(request_put=put))
            except LeaseNotFound:
                # This process stood still for longer than the lease.
                self._leases.forget(put.lease)

    async def _txn(self, key: str, compare: list[Message], write: Message) -> Message:
        look = pb.RequestOp(request_range=pb.RangeRequest(key=self._bytes(key)))
        request = pb.TxnRequest(compare=compare, success=[write], failure=[look])
        self._check_open()
        async with self._under_way(), self._turn(key):
            return await self._client.call("KV/Txn", request)

    def _mismatch(self, key: str, expected: int, response: Message) -> RevisionMismatch:
        found = response.responses[0].response_range.kvs
        return RevisionMismatch(key, expected, self._entry(found[0]) if found else None)

    async def _wait_for_arrival(self, response: Message) -> int:
        """The write's revision, once the watch has brought it."""
        revision: int = response.header.revision
        if self._fanout.revision < revision:
            loop = asyncio.get_running_loop()
            arrival = loop.create_future()
            heapq.heappush(self._waiting, (revision, next(self._ticket), arrival))
            # No asyncio.timeout: it would cancel the caller, who may have to hear how it ended.
            timer = loop.call_later(REQUEST_SECONDS, _time_out, arrival, revision)
            try:
                async with self._under_way():
                    await arrival
            finally:
                timer.cancel()
        return revision

    async def _grant(self, seconds: int) -> int:
        response = await self._call("Lease/LeaseGrant", pb.LeaseGrantRequest(TTL=seconds))
        lease: int = response.ID
        return lease

    # The watch of everything.

    async def _follow(self) -> None:
        failures = 0
        while not self._closed or self._calls:
            watch, self._first_watch = self._first_watch, None
            try:
                # From the last revision heard of, not the one after it: etcd would answer that
                # when the last is compacted away, and nobody could tell what is missing.
                watch = watch or await self._client.watch(self._fanout.revision)
                while True:
                    self._take(await watch.events())
                    failures = 0
            except HistoryGone as gone:
                log.warning("watch revision was compacted, relisting", revision=gone.revision)
                self._compacted = max(self._compacted, gone.revision)
                self._fanout.skip(gone.revision)
                self._wake(gone.revision)
            except StoreError as error:
                failures += 1
                if failures == 1:
                    log.warning("etcd's watch is lost, opening it again", error=error)
                await asyncio.sleep(RECONNECT.delay(failures))
            finally:
                if watch is not None:
                    watch.close()

    def _take(self, events: list[Message]) -> None:
        known = self._fanout.revision
        newest = events[-1].kv.mod_revision
        if newest <= known:
            return
        changes = [one for event in events if (one := self._change(event)) and one.revision > known]
        self._fanout.advance(changes, newest)
        self._wake(newest)

    def _wake(self, revision: int) -> None:
        while self._waiting and self._waiting[0][0] <= revision:
            arrival = heapq.heappop(self._waiting)[2]
            if not arrival.done():
                arrival.set_result(None)

    async def _read_log(self, prefix: str, after: int, upto: int) -> tuple[list[Change], int]:
        """By a watch of its own, which etcd fills from its history."""
        if after < self._compacted:
            raise Compacted(after, await self._find_compacted())
        async with self._under_way():
            return await self._read_history(prefix, after, upto)

    async def _read_history(self, prefix: str, after: int, upto: int) -> tuple[list[Change], int]:
        found: list[Change] = []
        reached = after
        watch: EtcdWatch | None = None
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                watch = await self._client.watch(after)
                while reached < upto and len(found) < READ_CHANGES:
                    events = await watch.events()
                    found += [
                        one for event in events
                        if (one := self._change(event)) and one.key.startswith(prefix)
                        and reached < one.revision <= upto
                    ]  # fmt: skip
                    reached = max(reached, min(upto, events[-1].kv.mod_revision))
        except HistoryGone as gone:
            self._compacted = max(self._compacted, gone.revision)
            raise Compacted(after, gone.revision) from gone
        except (Unavailable, TimeoutError) as error:
            # What came is whole up to `reached`; the reader will ask for the rest.
            log.debug("etcd's history was interrupted", after=after, reached=reached, error=error)
            if reached == after:
                await asyncio.sleep(RECONNECT.cap_seconds)
        finally:
            if watch is not None:
                watch.close()
        return found, reached

    async def _find_compacted(self) -> int:
        """etcd tells only by refusing a watch from the beginning."""
        async with self._under_way():
            watch: EtcdWatch | None = None
            try:
                beginning = pb.RangeRequest(key=_ALL, revision=EMPTY_REVISION)
                await self._client.call("KV/Range", beginning)
                return EMPTY_REVISION
            except Compacted:
                pass
            try:
                async with asyncio.timeout(REQUEST_SECONDS):
                    watch = await self._client.watch(EMPTY_REVISION)
                    await watch.events()
            except HistoryGone as gone:
                self._compacted = max(self._compacted, gone.revision)
            except TimeoutError as error:
                raise Unavailable("etcd does not say what it has compacted") from error
            finally:
                if watch is not None:
                    watch.close()
        return self._compacted

    # The rest.

    async def _call(self, method: str, request: Message) -> Message:
        self._check_open()
        async with self._under_way():
            return await self._client.call(method, request)

    async def _ask(self, before: asyncio.Task[int | StoreError] | None) -> int | StoreError:
        if before is not None and not before.done():
            await asyncio.wait([before])
        # From here on it would be too late to share this one.
        self._last_question, self._question = self._question, None
        try:
            response = await self._client.call("KV/Range", pb.RangeRequest(key=_ALL))
        except StoreError as error:
            return error
        revision: int = response.header.revision
        return revision

    @asynccontextmanager
    async def _turn(self, key: str) -> AsyncIterator[None]:
        """Writes of this process to one key go one after the other, in the order of their calls."""
        before, mine = self._turns.get(key), asyncio.get_running_loop().create_future()
        self._turns[key] = mine
        try:
            if before is not None:
                await asyncio.wait([before])
            yield
        finally:
            mine.set_result(None)
            if self._turns[key] is mine:
                del self._turns[key]

    @asynccontextmanager
    async def _under_way(self) -> AsyncIterator[None]:
        self._calls += 1
        try:
            yield
        finally:
            self._calls -= 1
            if not self._calls and self._idle is not None and not self._idle.done():
                self._idle.set_result(None)

    async def _close(self) -> None:
        while self._calls:
            self._idle = asyncio.get_running_loop().create_future()
            await self._idle
        self._fanout.close(CLOSED)
        await self._tasks.stop()
        await self._client.close()

    def _check_open(self) -> None:
        if self._closed:
            raise StoreClosed(CLOSED)

    def _bytes(self, key: str) -> bytes:
        return (self._prefix + key).encode()

    def _key(self, kv: Message) -> str | None:
        """None where it is no key of ours: other users of etcd have any bytes."""
        try:
            key: str = kv.key.decode()
        except UnicodeDecodeError:
            return None
        return key[len(self._prefix) :] if key.startswith(self._prefix) else None

    def _entry(self, kv: Message) -> Entry | None:
        key = self._key(kv)
        return None if key is None else Entry(key, kv.value, kv.create_revision, kv.mod_revision)

    def _change(self, event: Message) -> Change | None:
        key, is_put = self._key(event.kv), event.type == pb.Event.PUT
        if key is None:
            return None
        return Change(event.kv.mod_revision, key, self._entry(event.kv) if is_put else None)


async def open_etcd(address: EtcdAddress, clock: Clock) -> EtcdStore:
    """Raises CannotConnect, whose text says what to do."""
    client = EtcdClient(address)
    try:
        status = await client.call("Maintenance/Status", pb.StatusRequest(), patience_seconds=0)
        check_version(address, status.version)
        now = await client.call("KV/Range", pb.RangeRequest(key=_ALL))
        revision: int = now.header.revision
        return EtcdStore(client, clock, revision, await client.watch(revision + 1))
    except CannotConnect:
        await client.close()
        raise
    except StoreError as error:
        await client.close()
        raise CannotConnect(_why_not(address, str(error))) from error


def _time_out(arrival: "asyncio.Future[None]", revision: int) -> None:
    if not arrival.done():
        why = f"revision {revision} was written, but etcd's watch does not bring it"
        arrival.set_exception(Unavailable(why))


def check_version(address: EtcdAddress, version: str) -> None:
    numbers = tuple(int(part) for part in version.split(".")[:2] if is_digits(part))
    if numbers < OLDEST_ETCD:
        needed = ".".join(map(str, OLDEST_ETCD))
        raise CannotConnect(f"etcd at {address} is version {version}: {needed} or newer is needed")


def _why_not(address: EtcdAddress, details: str) -> str:
    if "CERTIFICATE_VERIFY_FAILED" in details or "andshake failed" in details:
        return f"etcd at {address} shows a certificate that cacert= does not vouch for ({details})"
    if address.tls is not None:
        hint = "is it running there, does it speak TLS, and does it accept cert= and key=?"
    else:
        hint = "is it running there? (with TLS, use etcds:// or cacert=)"
    return f"no etcd answers at {address}: {hint} ({details})"
