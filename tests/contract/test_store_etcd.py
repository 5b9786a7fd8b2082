"""What only a store in etcd has: other processes, several members, lost connections. [E1, E3]"""

import asyncio
from contextlib import asynccontextmanager

import pytest

from sampan.core.clock import SystemClock
from sampan.core.tasks import Tasks, all_of
from sampan.store.contract import (
    Change,
    Compacted,
    Entry,
    RevisionMismatch,
    StoreError,
    Unavailable,
)
from sampan.store.etcd_gen import sampan_etcd_pb2 as pb
from sampan.store.open import open_store
from tests.support.parts.certificates import Authority
from tests.support.parts.etcd_server import etcd_cluster, etcd_url, tls_flags, url_of
from tests.support.parts.tcp_relay import Relay

pytestmark = [pytest.mark.etcd, pytest.mark.slow]


@asynccontextmanager
async def opened(*urls):
    stores = [await open_store(url, SystemClock()) for url in urls]
    try:
        async with asyncio.timeout(40):
            yield stores
    finally:
        for store in stores:
            await store.close()


async def seen(watch, count):
    changes = []
    while len(changes) < count:
        changes += await anext(watch)
    return changes


async def insist(write):
    """As a client that tries again until it is answered; whether a doubtful write was kept is left
    to the reader of the history."""
    while True:
        try:
            return await write()
        except Unavailable:
            await asyncio.sleep(0.02)


def test_two_processes_see_each_others_writes_in_one_order():
    async def story(url):
        async with opened(url, url) as (one, two):
            watches = [one.watch("/", 1), two.watch("/", 1)]
            await all_of(
                store.create(f"/{name}/{number}", b"")
                for number in range(100)
                for name, store in (("one", one), ("two", two))
            )
            first, second = [await seen(watch, 200) for watch in watches]
            assert first == second
            assert [change.revision for change in first] == list(range(2, 202))
            assert await two.current_revision() == 201

    with etcd_url() as url:
        asyncio.run(story(url))


def test_the_current_revision_is_never_behind_what_another_process_was_answered():
    async def story(url):
        async with opened(url, url) as (one, two):
            for number in range(50):
                revision = await one.create(f"/{number}", b"")
                assert await two.current_revision() >= revision
                assert (await two.get(f"/{number}")).revision == revision

    with etcd_url() as url:
        asyncio.run(story(url))


def test_of_writers_in_two_processes_exactly_one_wins():
    async def story(url):
        async with opened(url, url) as (one, two):
            revision = await one.create("/a", b"")

            async def attempt(store, value):
                try:
                    return await store.update("/a", value, revision)
                except RevisionMismatch as mismatch:
                    return mismatch.current.revision, mismatch.current.value

            both = [attempt(one, b"1"), attempt(two, b"2")]
            outcomes = await all_of(both)
            won = [outcome for outcome in outcomes if isinstance(outcome, int)]
            assert won == [revision + 1]
            winner = await one.get("/a")
            assert (revision + 1, winner.value) in outcomes

    with etcd_url() as url:
        asyncio.run(story(url))


def test_stores_under_different_prefixes_do_not_see_each_other():
    async def story(url):
        async with opened(f"{url}/one", f"{url}/two") as (one, two):
            watch = two.watch("", 1)
            await one.create("/a", b"1")
            await two.create("/a", b"2")
            await one.create("/b", b"1")
            assert [entry.value for entry in (await two.range("")).entries] == [b"2"]
            assert await seen(watch, 1) == [Change(3, "/a", Entry("/a", b"2", 3, 3))]
            # Their writes count all the same: whoever waits for a revision is not left waiting.
            assert await two.current_revision() == 4
            await two.create("/c", b"")
            assert two.revision == 5

    with etcd_url() as url:
        asyncio.run(story(url))


def test_keys_that_are_no_text_end_neither_a_range_nor_a_watch():
    async def story(url):
        async with opened(url) as (store,):
            watch = store.watch("/", 1)
            for key in (b"/a\xff", b"/b", b"/\xff\xfe", b"/z\x80"):
                put = pb.RequestOp(request_put=pb.PutRequest(key=key, value=b"x"))
                await store._client.call("KV/Txn", pb.TxnRequest(success=[put]))
            await store.create("/c", b"")
            assert [change.key for change in await seen(watch, 2)] == ["/b", "/c"]
            assert [entry.key for entry in (await store.range("/")).entries] == ["/b", "/c"]
            first = await store.range("/", limit=1)
            rest = await store.range("/", start="/b\0", limit=1)
            assert ([entry.key for entry in first.entries], bool(first.remaining)) == (["/b"], True)
            assert [entry.key for entry in rest.entries] == ["/c"]
            last = await store.range("/", start="/c\0", limit=1)
            assert (last.entries, last.remaining) == ([], 0)

    with etcd_url() as url:
        asyncio.run(story(url))


def test_keys_with_a_ttl_go_by_themselves_unless_written_again():
    async def story(url):
        async with opened(url) as (store,):
            watch = store.watch("/", 4)
            await store.create("/a", b"x", ttl_seconds=1)
            await store.create("/b", b"x", ttl_seconds=1)
            await store.update("/b", b"stays", 3)
            assert await seen(watch, 1) == [Change(5, "/a", None)]
            assert [entry.key for entry in (await store.range("/")).entries] == ["/b"]

    with etcd_url() as url:
        asyncio.run(story(url))


def test_changes_of_one_revision_come_together():
    """As when a lease expires that several keys share."""

    async def story(url):
        async with opened(url) as (store,):
            await all_of(store.create(f"/{name}", b"") for name in "abc")
            watch = store.watch("/", 4)
            gone = [
                pb.RequestOp(request_delete_range=pb.DeleteRangeRequest(key=key))
                for key in (b"/a", b"/b")
            ]
            await store._client.call("KV/Txn", pb.TxnRequest(success=gone))
            changes = await anext(watch)
            assert [(change.revision, change.key) for change in changes] == [(5, "/a"), (5, "/b")]
            await store.create("/d", b"")
            late = store.watch("/", 4)
            assert [change.revision for change in await seen(late, 3)] == [5, 5, 6]

    with etcd_url() as url:
        asyncio.run(story(url))


def test_ranges_and_histories_larger_than_one_message_are_whole():
    async def story(url):
        async with opened(url) as (store,):
            await all_of(store.create(f"/k/{number:04}", b"") for number in range(2100))
            page = await store.range("/k/")
            assert len(page.entries) == 2100
            assert page.entries == sorted(page.entries, key=lambda entry: entry.key)
            most = await store.range("/k/", limit=2050)
            assert (len(most.entries), most.remaining) == (2050, 50)
            value = bytes(1_000_000)
            first = store.revision
            for number in range(12):
                await store.create(f"/big/{number}", value)
            changes = await seen(store.watch("/big/", first), 12)
            assert [change.revision for change in changes] == list(range(first + 1, first + 13))
            with pytest.raises(StoreError, match="too large"):
                await store.create("/too-big", bytes(2_000_000))

    with etcd_url() as url:
        asyncio.run(story(url))


def test_a_watch_goes_on_by_itself_when_the_connection_is_lost():
    """Nothing is lost, nothing is repeated. [E1]"""

    async def story(url, port):
        async with Relay(port) as relay, opened(url, f"etcd://127.0.0.1:{relay.port}") as stores:
            direct, cut = stores
            watch, behind = cut.watch("/", 1), cut.watch("/7", 1)
            for number in range(30):
                await direct.create(f"/{number}", b"")
                if number % 10 == 5:
                    relay.cut()
                if number % 10 == 9:
                    relay.mend()
            changes = await seen(watch, 30)
            assert [change.revision for change in changes] == list(range(2, 32))
            assert [change.key for change in await seen(behind, 1)] == ["/7"]
            revision = await insist(lambda: cut.create("/end", b""))
            assert [change.revision for change in await seen(watch, 1)] == [revision]

    with etcd_cluster(1) as members:
        asyncio.run(story(url_of(members), members[0].port))


def test_a_watcher_whose_missing_changes_were_compacted_meanwhile_is_told_so():
    async def story(url, port):
        async with Relay(port) as relay, opened(url, f"etcd://127.0.0.1:{relay.port}") as stores:
            direct, cut = stores
            await direct.create("/a", b"")
            watch = cut.watch("/", 1)
            assert len(await seen(watch, 1)) == 1
            relay.cut()
            for number in range(5):
                await direct.create(f"/b/{number}", b"")
            await direct.compact(6)
            relay.mend()
            with pytest.raises(Compacted):
                await seen(watch, 1)
            page = await cut.range("/")
            assert len(page.entries) == 6
            again = cut.watch("/", page.revision)
            await direct.create("/c", b"")
            assert [change.key for change in await seen(again, 1)] == ["/c"]

    with etcd_cluster(1) as members:
        asyncio.run(story(url_of(members), members[0].port))


def test_an_etcd_killed_and_started_again_is_found_again_with_every_answered_write():
    """[E2]"""

    async def story(member):
        async with opened(url_of([member])) as (store,):
            watch = store.watch("/", 1)
            await store.create("/before", b"")
            member.kill()
            with pytest.raises(Unavailable):
                async with asyncio.timeout(20):
                    # Never sent, so it is tried until its deadline; then the answer is clear.
                    await store._client.call(
                        "KV/Range", pb.RangeRequest(key=b"/"), patience_seconds=0.3
                    )
            member.start()
            await insist(lambda: store.create("/after", b""))
            assert [change.key for change in await seen(watch, 2)] == ["/before", "/after"]

    with etcd_cluster(1) as members:
        asyncio.run(story(members[0]))


def test_the_loss_of_one_member_of_three_is_survived():
    """The one that we talk to, perhaps the leader: writes go on, the watch loses nothing. [E3]"""

    async def story(members):
        async with opened(url_of(members)) as (store,):
            watch, tasks, answered = store.watch("/", 1), Tasks("test"), {}
            stop = asyncio.Event()

            async def write(writer):
                number = 0
                while not stop.is_set():
                    key = f"/{writer}/{number}"
                    try:
                        answered[key] = await store.create(key, b"")
                    except Unavailable:
                        await asyncio.sleep(0.02)
                    number += 1

            writers = [tasks.start("writer", write(number)) for number in range(4)]

            async def more_answers():
                enough = len(answered) + 100
                while len(answered) < enough:
                    await asyncio.sleep(0.02)

            await more_answers()
            members[0].kill()
            await more_answers()
            stop.set()
            await asyncio.wait(writers)
            last = max(answered.values())
            changes = []
            while not changes or changes[-1].revision < last:
                changes += await anext(watch)
            revisions = [change.revision for change in changes]
            assert revisions == sorted(set(revisions))
            brought = {change.key: change.revision for change in changes}
            assert {key: brought.get(key) for key in answered} == answered

    with etcd_cluster(3) as members:
        asyncio.run(story(members))


def test_etcd_is_used_over_tls_with_a_client_certificate(tmp_path):
    authority = Authority(tmp_path)
    ours, theirs = authority.issue("sampan"), authority.issue("etcd")
    (tmp_path / "other").mkdir()
    stranger = Authority(tmp_path / "other")
    client = f"cert={ours.cert_path}&key={ours.key_path}"

    async def story(members):
        trusted = url_of(members, f"?cacert={authority.ca_path}")
        async with opened(f"{trusted}&{client}") as (store,):
            await store.create("/a", b"secret")
            assert (await store.get("/a")).value == b"secret"
        with pytest.raises(StoreError, match="shows a certificate that cacert= does not vouch for"):
            await open_store(url_of(members, f"?cacert={stranger.ca_path}&{client}"), SystemClock())
        with pytest.raises(StoreError, match="does it accept cert= and key="):
            await open_store(trusted, SystemClock())
        with pytest.raises(StoreError, match="with TLS, use etcds"):
            await open_store(url_of(members), SystemClock())

    with etcd_cluster(1, *tls_flags(authority, theirs)) as members:
        asyncio.run(story(members))
