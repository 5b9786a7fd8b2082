"""Clients that watch numbered values, resume, and list again where they must.

Job: what a watcher was told, in order, written down for tests.support.history and watch_log.
"""

import asyncio
import random
from contextlib import aclosing
from dataclasses import dataclass, field

from sampan.api.errors import ApiError, Expired
from sampan.api.resources import CONFIG_MAPS
from sampan.client import rest
from tests.support.history import Bookmark, Listed, Seen, Value, number_of

NAMESPACE = "default"
AWAY_SECONDS = 0.02


@dataclass
class Audience:
    """What all who look at the same objects share."""

    client: rest.RestClient
    selector: str
    rng: random.Random
    known: int = 0  # the newest revision that anybody was told
    expired: int = 0
    stop: asyncio.Event = field(default_factory=asyncio.Event)

    def told(self, revision):
        self.known = max(self.known, revision)


def value_of(obj):
    return Value(number_of(obj["data"]), int(obj["metadata"]["resourceVersion"]))


def values_of(items):
    return {one["metadata"]["name"]: value_of(one) for one in items}


async def listed(audience):
    found = await audience.client.list(CONFIG_MAPS, NAMESPACE, label_selector=audience.selector)
    return Listed(found.revision, values_of(found.items))


class Follower:
    """A client that watches, and resumes, and watches."""

    def __init__(self, audience):
        self.audience, self.story, self.values = audience, [], {}
        self._at = 0

    async def run(self):
        while True:
            try:
                if not self.story:
                    self.told(await listed(self.audience))
                await self.follow()
            except Expired:
                self.audience.expired += 1
                await self.list_again()
            except ApiError:
                await asyncio.sleep(AWAY_SECONDS)  # it is down

    async def list_again(self):
        while True:
            try:
                return self.told(await listed(self.audience))
            except ApiError:
                await asyncio.sleep(AWAY_SECONDS)

    async def follow(self):
        """For a while, then break it off: resuming is what is tested."""
        enough = self.audience.rng.randint(1, 60)
        watch = self.audience.client.watch(
            CONFIG_MAPS, NAMESPACE, revision=self._at, label_selector=self.audience.selector
        )
        async with aclosing(watch) as events:
            async for event in events:
                self.take(event)
                enough -= 1
                if not enough:
                    return

    def take(self, event):
        if event.type == "BOOKMARK":
            self.told(Bookmark(int(event.object["metadata"]["resourceVersion"])))
        else:
            name = event.object["metadata"]["name"]
            self.told(Seen(event.type, name, value_of(event.object)))

    def told(self, told):
        match told:
            case Listed(revision, values):
                self._at, self.values = revision, dict(values)
            case Bookmark(revision):
                self._at = revision
            case Seen(kind, name, value):
                self._at = value.revision
                self.values.pop(name, None)
                if kind != "DELETED":
                    self.values[name] = value
        self.audience.told(self._at)
        self.story.append(told)


async def all_caught_up(followers, following, final, seconds=20.0):
    async with asyncio.timeout(seconds):
        while any(one.values != final.values for one in followers):
            for task in following:
                assert not task.done(), task.result()
            await asyncio.sleep(AWAY_SECONDS)
