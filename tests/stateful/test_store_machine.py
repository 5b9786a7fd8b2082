"""SQLite and etcd against the memory store: same calls, same answers, errors and watches. [E1]"""

import asyncio
import tempfile
from contextlib import ExitStack

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from sampan.store.contract import Compacted, RevisionMismatch, StoreError
from sampan.store.open import open_store
from tests.support.manual_clock import ManualClock
from tests.support.parts.etcd_server import etcd_url

KEYS = st.sampled_from(["/a", "/a/", "/a/b", "/a/c", "/a0", "/b/é", "/b/\U0010ffff"])
PREFIXES = st.sampled_from(["", "/", "/a", "/a/", "/b/", "/none"])
VALUES = st.binary(max_size=20)
SHARES = st.floats(0, 1)  # a revision, as a share of what has been written


async def outcome(call):
    """What a call came to, in a form that two stores can be compared by."""
    try:
        return await call
    except RevisionMismatch as error:
        return RevisionMismatch, error.current
    except Compacted as error:
        return Compacted, error.revision, error.oldest
    except StoreError as error:
        return type(error)


class StoreMachine(RuleBasedStateMachine):
    """What every store is put through; `new` gives the URL of an empty one."""

    @initialize()
    def open(self):
        self.runner = asyncio.Runner()
        self.undo = ExitStack()
        self.clock = ManualClock()
        self.url = self.new(self.undo)
        self.memory = self.run(open_store("memory:", self.clock))
        self.other = self.run(open_store(self.url, self.clock))
        self.compacted = 1

    def run(self, call):
        return self.runner.run(call)

    def both(self, call):
        """Make one call to both stores and compare; the answer."""
        expected = self.run(outcome(call(self.memory)))
        assert self.run(outcome(call(self.other))) == expected
        return expected

    def revision(self, share):
        """Mostly a revision that was written, sometimes one that was not yet."""
        return round(share * (self.memory.revision + 2))

    def expected(self, key, right, share):
        current = self.run(self.memory.get(key))
        return current.revision if right and current else self.revision(share)

    @rule(key=KEYS, value=VALUES)
    def create(self, key, value):
        self.both(lambda store: store.create(key, value))

    @rule(key=KEYS, value=VALUES, right=st.booleans(), share=SHARES)
    def update(self, key, value, right, share):
        revision = self.expected(key, right, share)
        self.both(lambda store: store.update(key, value, revision))

    @rule(key=KEYS, right=st.booleans(), share=SHARES)
    def delete(self, key, right, share):
        revision = self.expected(key, right, share)
        self.both(lambda store: store.delete(key, revision))

    @rule(
        prefix=PREFIXES, start=KEYS | st.just(""), limit=st.integers(0, 4), share=SHARES | st.none()
    )
    def range(self, prefix, start, limit, share):
        revision = 0 if share is None else self.revision(share)
        self.both(lambda store: store.range(prefix, start=start, limit=limit, revision=revision))

    @rule(prefix=PREFIXES, share=SHARES)
    def watch(self, prefix, share):
        after = self.revision(share)
        assert self.changes(self.other, prefix, after) == self.changes(self.memory, prefix, after)

    def changes(self, store, prefix, after):
        """What a watch from there delivers until it would have to wait."""

        async def read():
            watch, found = store.watch(prefix, after), []
            there = {change.revision for change in await self.written(prefix, after)}
            try:
                while {change.revision for change in found} < there or after < self.compacted:
                    found += await anext(watch)
            except Compacted as error:
                return Compacted, error.revision, error.oldest
            finally:
                watch.close()
            return found

        return self.run(read())

    async def written(self, prefix, after):
        if after < self.compacted:
            return []
        return (await self.memory._read_log(prefix, after, self.memory.revision))[0]

    @rule(share=SHARES)
    def compact(self, share):
        revision = self.revision(share)
        if self.both(lambda store: store.compact(revision)) is None:
            self.compacted = max(self.compacted, revision)

    @precondition(lambda self: self.memory.revision > 1)
    @rule()
    def reopen(self):
        self.run(self.other.close())
        self.other = self.run(open_store(self.url, self.clock))

    @invariant()
    def same_now(self):
        if hasattr(self, "other"):
            assert self.other.revision == self.memory.revision
            self.both(lambda store: store.range(""))

    def teardown(self):
        if hasattr(self, "other"):
            self.run(self.other.close())
            self.run(self.memory.close())
            self.runner.close()
            self.undo.close()


class SqliteMachine(StoreMachine):
    def new(self, undo):
        directory = undo.enter_context(tempfile.TemporaryDirectory())
        return f"sqlite:///{directory}/store.db"

    @rule(writes=st.lists(st.tuples(KEYS, VALUES), max_size=5))
    def create_at_once(self, writes):
        """Queued together in SQLite, one after the other in memory."""

        async def create_all():
            async with asyncio.TaskGroup() as group:
                return [
                    group.create_task(outcome(self.other.create(key, value)))
                    for key, value in writes
                ]

        answers = [task.result() for task in self.run(create_all())]
        assert answers == [self.run(outcome(self.memory.create(*write))) for write in writes]

    @rule(key=KEYS, value=VALUES, ttl=st.integers(1, 5))
    def create_for_a_while(self, key, value, ttl):
        self.both(lambda store: store.create(key, value, ttl_seconds=ttl))

    @rule(seconds=st.integers(1, 5))
    def advance(self, seconds):
        self.run(self.clock.advance(seconds))
        self.catch_up()

    def catch_up(self):
        """SQLite expires in its own thread: wait until it has, by its watch."""

        async def until_same():
            while self.other.revision < self.memory.revision:
                watch = self.other.watch("", self.other.revision)
                await anext(watch)
                watch.close()

        self.run(asyncio.wait_for(until_same(), 60))


class EtcdMachine(StoreMachine):
    """Without time, which etcd has of its own, and without writes at once, which it may reorder."""

    def new(self, undo):
        return undo.enter_context(etcd_url())


TestEtcdMachine = pytest.mark.slow(pytest.mark.etcd(EtcdMachine.TestCase))
TestEtcdMachine.settings = settings(
    max_examples=15, stateful_step_count=30, deadline=None,
    # Each example starts an etcd: shrinking would take minutes.
    phases=(Phase.explicit, Phase.generate),
)  # fmt: skip
TestStoreMachine = pytest.mark.slow(SqliteMachine.TestCase)
TestStoreMachine.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
