"""The plugin manager with plugins that really listen at sockets."""

import asyncio
import contextlib

import pytest

from sampan.core.clock import SystemClock
from sampan.core.grpc.socket_server import SocketServer
from sampan.kubelet.plugin_manager import plugin_manager
from sampan.kubelet.plugin_manager.plugin_manager import PluginManager, PluginRefused
from sampan.plugins.registration import Introduction, registration_methods

pytestmark = pytest.mark.slow


class Handler:
    """Notes what it is told; refuses the versions it was given."""

    def __init__(self, unwanted=()):
        self.unwanted, self.happened = unwanted, []

    def validate(self, plugin):
        if set(plugin.versions) & set(self.unwanted):
            raise PluginRefused(f"version {plugin.versions[0]} is not supported")

    async def register(self, plugin):
        self.happened.append(("registered", plugin.name, plugin.endpoint))

    async def deregister(self, plugin):
        self.happened.append(("deregistered", plugin.name, plugin.endpoint))


class World:
    def __init__(self, directory, handler):
        self.directory, self.handler, self.told = directory, handler, []
        self.manager = PluginManager(str(directory), {"CSIPlugin": handler}, clock=SystemClock())

    @contextlib.asynccontextmanager
    async def running(self):
        task = asyncio.get_running_loop().create_task(self.manager.run())
        try:
            yield self
        finally:
            task.cancel()
            await asyncio.wait([task])

    @contextlib.asynccontextmanager
    async def plugin(self, path, *, kind="CSIPlugin", versions=("1.0.0",), endpoint="/e.sock"):
        async def told(registered, error):
            self.told.append((registered, error))

        path.parent.mkdir(parents=True, exist_ok=True)
        said = Introduction(kind, "a.example.com", endpoint, versions)
        server = SocketServer(str(path), registration_methods(said, told))
        await server.start()
        try:
            yield server
        finally:
            await server.stop()

    async def until(self, condition):
        async with asyncio.timeout(20):
            while not condition():
                await asyncio.sleep(0.005)


@pytest.fixture
def world(tmp_path):
    return World(tmp_path / "r", Handler(unwanted=("0.9",)))


def test_plugins_come_and_go_with_their_sockets_also_in_folders(world):
    async def story():
        async with world.running():
            await world.until(world.directory.is_dir)
            for path in (world.directory / "a.sock", world.directory / "deep" / "er" / "a.sock"):
                before = len(world.handler.happened)
                async with world.plugin(path):
                    await world.until(lambda count=before: len(world.handler.happened) > count)
                    assert world.handler.happened[-1][0] == "registered"
                    # It stays until it was told: who leaves before hears nothing.
                    await world.until(lambda count=before: len(world.told) * 2 > count)
                await world.until(lambda: world.handler.happened[-1][0] == "deregistered")
            assert world.told == [(True, ""), (True, "")]

    asyncio.run(story())


def test_a_plugin_that_is_there_first_and_one_that_restarts_are_registered(world):
    async def story():
        path = world.directory / "a.sock"
        async with world.plugin(path, endpoint=""), world.running():
            await world.until(lambda: world.told)
            assert world.handler.happened == [("registered", "a.example.com", str(path))]
            async with world.plugin(path):  # its socket takes the place of the old one
                await world.until(lambda: len(world.handler.happened) == 3)
                words = [what for what, _, _ in world.handler.happened]
                assert words == ["registered", "deregistered", "registered"]

    asyncio.run(story())


def test_a_refused_plugin_hears_why_and_is_asked_again(world, monkeypatch):
    monkeypatch.setattr(plugin_manager, "RETRY", plugin_manager.Backoff(0.01, 0.01))

    async def story():
        async with world.running(), world.plugin(world.directory / "a.sock", versions=("0.9",)):
            await world.until(lambda: len(world.told) >= 2)
        refused = (
            "RegisterPlugin error -- plugin validation failed with err: version 0.9 is not "
            "supported"
        )
        assert world.told[0] == (False, refused)
        assert world.handler.happened == []

    asyncio.run(story())


def test_a_type_that_nobody_handles_is_refused_by_name(world):
    async def story():
        path = world.directory / "a.sock"
        async with world.running(), world.plugin(path, kind="Odd"):
            await world.until(lambda: world.told)
        assert world.told[0] == (
            False,
            f"RegisterPlugin error -- no handler registered for plugin type: Odd at socket {path}",
        )

    asyncio.run(story())


def test_files_and_hidden_sockets_are_no_plugins(world):
    async def story():
        world.directory.mkdir()
        (world.directory / "readme").write_text("no socket")
        hidden = world.plugin(world.directory / ".hidden.sock")
        async with hidden, world.running(), world.plugin(world.directory / "a.sock"):
            await world.until(lambda: world.told)
            assert world.handler.happened == [("registered", "a.example.com", "/e.sock")]

    asyncio.run(story())
