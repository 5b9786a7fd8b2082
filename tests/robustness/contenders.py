"""Clients that fight for the same few keys, and what each was answered.

Job: read, create, update, patch and delete under and without conditions, by seed; write down when
    it was asked and what came; list in every way that there is.
Invariant: each write has a number of its own, so that whoever sees it knows whose it is.
Invariant: a key is given up for a new one before its history is too long to be judged.
"""

import asyncio
import itertools
import random
from collections import Counter, defaultdict
from dataclasses import dataclass, field

from sampan.api.errors import AlreadyExists, ApiError, Conflict, NotFound, TooManyRequests
from sampan.api.resources import CONFIG_MAPS
from sampan.client.contract import Page, Preconditions
from sampan.core.clock import SystemClock
from tests.robustness.followers import AWAY_SECONDS, NAMESPACE, Audience, value_of, values_of
from tests.support.history import Answered, Listed, Value, whole
from tests.support.linearizability import (
    Create,
    Delete,
    Done,
    Found,
    Missing,
    Operation,
    Read,
    Refused,
    Undecided,
    Update,
    violation,
)

SLOTS, LONGEST, MOST_SILENT = 4, 120, 5
ANSWER_SECONDS = 6.0
PAGE = 3
SIZES = (10, 1000, 5000)
WISHES = {"read": 8, "create": 4, "update if": 5, "update": 2, "patch": 2, "delete if": 2,
          "delete": 1}  # fmt: skip


@dataclass
class Arena(Audience):
    """The keys, and everything that was asked and answered about each."""

    clock: SystemClock = field(default_factory=SystemClock)
    numbers: itertools.count = field(default_factory=lambda: itertools.count(1))
    generations: list[int] = field(default_factory=lambda: [0] * SLOTS)
    operations: dict[str, list[Operation]] = field(default_factory=lambda: defaultdict(list))
    answered: list[Answered] = field(default_factory=list)
    lists: list[Listed] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    undecided: int = 0

    def name(self, slot):
        return f"k{slot}-{self.generations[slot]}"

    def is_worn(self, name):
        known = self.operations[name]
        silent = sum(one.answer is None for one in known)
        return len(known) >= LONGEST or silent >= MOST_SILENT

    def found_at_last(self, final):
        """A read of every key that there ever was: no answered write may be lost."""
        now = self.clock.monotonic()
        for name, known in self.operations.items():
            value = final.values.get(name)
            there = Found(value.number, value.revision) if value else Missing()
            known.append(Operation(now, Read(), now + 1, there))

    def judge(self):
        for name, known in self.operations.items():
            try:
                found = violation(known)
            except Undecided:
                self.undecided += 1
                continue
            if found:
                self.faults.append(f"{name}: {found}")

    def kinds(self):
        counted = Counter()
        for known in self.operations.values():
            for one in known:
                outcome = "no answer" if one.answer is None else type(one.answer).__name__
                counted[f"{type(one.asked).__name__} {outcome}"] += 1
        return counted


class Contender:
    def __init__(self, arena, seed):
        self.arena, self.rng = arena, random.Random(seed)
        self.seen: dict[str, Value] = {}  # by name: what it was told last

    async def run(self):
        arena = self.arena
        while not arena.stop.is_set():
            slot = self.rng.randrange(SLOTS)
            name = arena.name(slot)
            try:
                async with asyncio.timeout(ANSWER_SECONDS):
                    if arena.is_worn(name):
                        arena.generations[slot] += 1
                        await self.delete(name, 0)
                    else:
                        await self.act(name)
            except (ApiError, TimeoutError):
                await self.until_answered(name)

    async def until_answered(self, name):
        """Each write without an answer makes a history harder to judge: not before somebody is
        there to answer it."""
        answered = False
        while not answered and not self.arena.stop.is_set():
            await asyncio.sleep(AWAY_SECONDS)
            try:
                async with asyncio.timeout(ANSWER_SECONDS):
                    await self.read(name)
                answered = True
            except (ApiError, TimeoutError):
                continue

    async def act(self, name):
        [wish] = self.rng.choices(list(WISHES), list(WISHES.values()))
        expected = self.seen[name].revision if name in self.seen else 0
        match wish:
            case "read":
                await self.read(name)
            case "create":
                await self.create(name)
            case "update" | "update if":
                await self.update(name, expected if wish == "update if" else 0)
            case "patch":
                await self.patch(name)
            case "delete" | "delete if":
                await self.delete(name, expected if wish == "delete if" else 0)

    async def read(self, name):
        await self.ask(name, Read(), self.arena.client.get(CONFIG_MAPS, NAMESPACE, name))

    async def create(self, name):
        asked = Create(next(self.arena.numbers))
        obj = self.object(name, asked.value)
        await self.ask(name, asked, self.arena.client.create(CONFIG_MAPS, obj, NAMESPACE))

    async def update(self, name, expected):
        asked = Update(next(self.arena.numbers), expected)
        obj = self.object(name, asked.value)
        if expected:
            obj["metadata"]["resourceVersion"] = str(expected)
        await self.ask(name, asked, self.arena.client.update(CONFIG_MAPS, obj))

    async def patch(self, name):
        """Which the server does as often as others are quicker."""
        asked = Update(next(self.arena.numbers))
        patch = {"data": self.object(name, asked.value)["data"]}
        call = self.arena.client.patch(CONFIG_MAPS, NAMESPACE, name, patch, patch_type="merge")
        await self.ask(name, asked, call)

    async def delete(self, name, expected):
        given = Preconditions(revision=expected)
        call = self.arena.client.delete(CONFIG_MAPS, NAMESPACE, name, preconditions=given)
        await self.ask(name, Delete(expected), call)

    def object(self, name, number):
        key, _, value = self.arena.selector.partition("=")
        return {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": NAMESPACE, "labels": {key: value}},
            "data": whole(number, self.rng.choice(SIZES)),
        }

    async def ask(self, name, asked, call):
        arena, known = self.arena, self.arena.known
        began = arena.clock.monotonic()
        try:
            answer = self.answer(name, asked, await call, known)
        except NotFound:
            answer = Missing()
        except (AlreadyExists, Conflict):
            answer = Refused()
        except TooManyRequests:
            return  # nothing was done
        except BaseException:
            if not isinstance(asked, Read):
                arena.operations[name].append(Operation(began, asked))
            raise
        ended = arena.clock.monotonic()
        arena.operations[name].append(Operation(began, asked, ended, answer))
        if isinstance(answer, Missing):
            self.seen.pop(name, None)

    def answer(self, name, asked, got, known):
        if isinstance(asked, Delete):
            return Done()
        value = value_of(got)
        self.seen[name] = value
        self.arena.told(value.revision)
        if isinstance(asked, Read):
            return Found(value.number, value.revision)
        self.arena.answered.append(Answered(name, value, known))
        if value.number != asked.value:
            self.arena.faults.append(f"{name}: {value} is the answer to {asked}")
        return Done(value.revision)


class Lister:
    """Lists as clients do: the newest state, whatever a cache has, and page by page."""

    def __init__(self, arena, seed):
        self.arena, self.rng = arena, random.Random(seed)

    async def run(self):
        while not self.arena.stop.is_set():
            try:
                async with asyncio.timeout(ANSWER_SECONDS):
                    await self.list()
            except (ApiError, TimeoutError):
                pass
            await asyncio.sleep(self.rng.random() * 0.2)

    async def list(self):
        known = self.arena.known
        is_new = self.rng.random() < 0.7
        found, items = None, []
        limit = self.rng.choice([0, PAGE])
        while found is None or found.continue_token:
            page = Page(limit, found.continue_token if found else "")
            at = None if is_new or found else 0
            found = await self.arena.client.list(
                CONFIG_MAPS, NAMESPACE, label_selector=self.arena.selector, revision=at, page=page
            )
            items += found.items
        if is_new and found.revision < known:
            self.arena.faults.append(f"a list at {found.revision} when {known} was known")
        self.arena.lists.append(Listed(found.revision, values_of(items)))
