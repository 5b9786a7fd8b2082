"""Plugin manager: registers the plugins whose sockets are in plugins_registry.

Job: watch the directory, ask each new socket who it is, hand it to the handler of its type, tell
    it the outcome; try again what failed.
Invariant: one thing is done at a time about one socket.
Invariant: a plugin is handed to its handler once, and taken back before another takes its place.
Invariant: gRPC is not even loaded before there is a socket.
Owner: Kubelet runs it.
"""

import asyncio
import itertools
import os
import stat
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Protocol

from sampan.core.backoff import Backoff
from sampan.core.clock import Clock
from sampan.core.file_events import FileEvents
from sampan.core.grpc.status_codes import GrpcFailure
from sampan.core.log import get_logger
from sampan.core.tasks import Tasks
from sampan.kubelet.plugin_manager.plugin_state import (
    Deregister,
    Plugin,
    Register,
    Stamp,
    next_steps,
)

if TYPE_CHECKING:
    from sampan.plugins.registration import RegistrationClient

log = get_logger(__name__)

# As upstream's back-off of an operation that failed.
RETRY = Backoff(first_seconds=0.5, cap_seconds=122.0)
RESCAN_SECONDS = 300.0  # in case an event was lost
MOST_DIRECTORIES = 1000  # that are watched below plugins_registry


class PluginRefused(Exception):
    """The message is the plugin's to hear."""


class PluginHandler(Protocol):
    """Who has use for the plugins of one type."""

    def validate(self, plugin: Plugin) -> None:
        """Raises PluginRefused."""

    async def register(self, plugin: Plugin) -> None:
        """Raises PluginRefused."""

    async def deregister(self, plugin: Plugin) -> None: ...


class PluginManager:
    def __init__(
        self, directory: str, handlers: Mapping[str, PluginHandler], *, clock: Clock
    ) -> None:
        """`handlers` by the type of plugin."""
        self._directory, self._handlers, self._clock = directory, handlers, clock
        self._tasks = Tasks("plugins")
        self._found: dict[str, Stamp] = {}
        self._registered: dict[str, Plugin] = {}
        self._busy: set[str] = set()
        self._failures: dict[str, int] = {}
        self._held_back: dict[str, Stamp] = {}

    async def run(self) -> None:
        """Until cancelled; plugins stay registered."""
        os.makedirs(self._directory, 0o755, exist_ok=True)
        events = FileEvents()
        try:
            while True:
                await self._watch_once(events)
        finally:
            events.close()
            await self._tasks.stop()

    async def _watch_once(self, events: FileEvents) -> None:
        """Until something changes. Directories are watched before they are read: nothing that
        comes in between is missed."""
        directories = list(self._directories())
        with events.watch(*directories) as changes:
            found = [_sockets_in(directory) for directory in directories]
            self._found = dict(itertools.chain.from_iterable(found))
            self._look()
            if list(self._directories()) == directories:
                await changes.wait(RESCAN_SECONDS)

    def _directories(self) -> Iterator[str]:
        waiting, count = [self._directory], 0
        while waiting and count < MOST_DIRECTORIES:
            directory = waiting.pop()
            count += 1
            yield directory
            waiting += _directories_in(directory)

    def _look(self) -> None:
        for path in self._failures.keys() - self._found.keys():
            del self._failures[path]
        for step in next_steps(self._found, self._registered, self._busy, self._held_back):
            match step:
                case Deregister(plugin):
                    self._busy.add(plugin.socket)
                    self._tasks.start(f"deregister {plugin.name}", self._deregister(plugin))
                case Register(path, stamp):
                    self._busy.add(path)
                    self._tasks.start(f"register {path}", self._register(path, stamp))

    async def _deregister(self, plugin: Plugin) -> None:
        del self._registered[plugin.socket]
        await self._handlers[plugin.type].deregister(plugin)
        log.info("plugin deregistered", name=plugin.name, type=plugin.type)
        self._busy.discard(plugin.socket)
        self._look()

    async def _register(self, path: str, stamp: Stamp) -> None:
        why = await self._try(path, stamp)
        if why:
            failures = self._failures[path] = self._failures.get(path, 0) + 1
            log.warning("plugin was not registered", socket=path, why=why, failures=failures)
            self._held_back[path] = stamp
            self._tasks.start(f"retry {path}", self._retry(path, stamp, RETRY.delay(failures)))
        else:
            self._failures.pop(path, None)
        self._busy.discard(path)
        self._look()

    async def _retry(self, path: str, stamp: Stamp, seconds: float) -> None:
        await self._clock.sleep(seconds)
        if self._held_back.get(path) == stamp:
            del self._held_back[path]
        self._look()

    async def _try(self, path: str, stamp: Stamp) -> str:
        """Empty, or why not."""
        module = await asyncio.to_thread(import_module, "sampan.plugins.registration")
        client: RegistrationClient = module.RegistrationClient(path)
        try:
            said = await client.info()
            plugin = Plugin(path, stamp, said.type, said.name, said.endpoint or path, said.versions)
            why = await self._hand_over(plugin)
            await client.notify(why)
        except GrpcFailure as error:
            why = f"{error.method} at socket {path}, err: {error}"
        finally:
            await client.close()
        # As upstream: one that was taken stays, though it did not hear of it.
        return "" if path in self._registered else why

    async def _hand_over(self, plugin: Plugin) -> str:
        handler = self._handlers.get(plugin.type)
        if handler is None:
            return (
                "RegisterPlugin error -- no handler registered for plugin type: "
                f"{plugin.type} at socket {plugin.socket}"
            )
        try:
            handler.validate(plugin)
        except PluginRefused as refused:
            return f"RegisterPlugin error -- plugin validation failed with err: {refused}"
        try:
            await handler.register(plugin)
        except PluginRefused as refused:
            return f"RegisterPlugin error -- plugin registration failed with err: {refused}"
        self._registered[plugin.socket] = plugin
        log.info("plugin registered", name=plugin.name, type=plugin.type, endpoint=plugin.endpoint)
        return ""


def _sockets_in(directory: str) -> Iterator[tuple[str, Stamp]]:
    for entry in _entries(directory):
        try:
            found = entry.stat(follow_symlinks=True)
        except OSError:
            continue  # it went meanwhile
        if stat.S_ISSOCK(found.st_mode) and not entry.name.startswith("."):
            yield entry.path, (found.st_ino, found.st_mtime_ns)


def _directories_in(directory: str) -> list[str]:
    return [entry.path for entry in _entries(directory) if entry.is_dir(follow_symlinks=False)]


def _entries(directory: str) -> list["os.DirEntry[str]"]:
    try:
        with os.scandir(directory) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return []
