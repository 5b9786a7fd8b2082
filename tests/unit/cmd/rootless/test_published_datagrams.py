"""Datagrams between clients of the machine and who listens inside."""

import asyncio
import contextlib
import socket

from sampan.cmd.rootless import published_datagrams
from sampan.cmd.rootless.published_datagrams import IDLE_SECONDS, PublishedDatagrams
from tests.support import virtual_time
from tests.support.virtual_time import LoopClock


def bound(address):
    opened = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
    opened.bind((address, 0))
    return opened


def story(told):
    """`told` gets the port, who listens inside, and a way to new clients."""

    async def tell():
        with contextlib.ExitStack() as undo:
            inside = undo.enter_context(bound("127.0.0.2"))
            listening = bound("127.0.0.1")
            place = listening.getsockname()
            port = PublishedDatagrams(listening, inside.getsockname(), LoopClock())
            undo.callback(port.close)

            def client():
                opened = undo.enter_context(bound("127.0.0.1"))
                opened.connect(place)
                return opened

            await told(port, inside, client)

    virtual_time.run(tell())


async def heard(opened):
    return await asyncio.get_running_loop().sock_recvfrom(opened, 1 << 16)


def test_each_client_gets_his_own_answers():
    async def told(port, inside, client):
        first, second = client(), client()
        first.send(b"one")
        said, one = await heard(inside)
        assert said == b"one"
        second.send(b"two")
        said, two = await heard(inside)
        assert said == b"two"
        assert one != two
        inside.sendto(b"for two", two)
        inside.sendto(b"for one", one)
        assert (await heard(first))[0] == b"for one"
        assert (await heard(second))[0] == b"for two"
        first.send(b"again")
        assert await heard(inside) == (b"again", one)
        assert port.clients == 2

    story(told)


def test_who_is_silent_is_forgotten_and_may_come_back():
    async def told(port, inside, client):
        first, second = client(), client()
        first.send(b"one")
        await heard(inside)
        await asyncio.sleep(IDLE_SECONDS + 1)
        second.send(b"two")
        await heard(inside)
        assert port.clients == 1
        first.send(b"one again")
        assert (await heard(inside))[0] == b"one again"
        assert port.clients == 2

    story(told)


def test_clients_are_bounded(monkeypatch):
    monkeypatch.setattr(published_datagrams, "MOST_CLIENTS", 3)

    async def told(port, inside, client):
        clients = [client() for _ in range(8)]
        for number, each in enumerate(clients):
            each.send(str(number).encode())
            _, last = await heard(inside)
        assert port.clients == 3
        inside.sendto(b"last", last)
        assert (await heard(clients[-1]))[0] == b"last"

    story(told)


def test_where_nobody_listens_inside_nothing_breaks():
    async def told(port, inside, client):
        place = inside.getsockname()
        inside.close()
        asker = client()
        for _ in range(3):
            asker.send(b"anybody?")
            await asyncio.sleep(1)
        with bound("127.0.0.2") as other:
            assert other.getsockname() != place
        assert port.clients == 1

    story(told)
