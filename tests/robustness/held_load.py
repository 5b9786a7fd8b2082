"""`make load`: connections by the thousand on one API server, and what another client has of it.

Job: 10 000 watches that all hear of an event; 5 000 watchers that do not read while large objects
    change; 1 000 connections that send a byte a minute; noted are the server's memory, and how
    long another client waits for small answers meanwhile.
Invariant: memory is bounded, the other client is answered each time, and when they are gone the
    server has as many descriptors as before.
"""

import argparse
import asyncio
import json
import sys
import tempfile
import time
from pathlib import Path

import uvloop

from sampan.client.blocking import BlockingClient
from sampan.client.kubeconfig import load
from sampan.core.tasks import all_of
from sampan.core.tls import client_context
from tests.support.parts.sampan_process import SampanProcess

AT_ONCE, BY_ADDRESS = 50, 4000
WATCH = "/api/v1/namespaces/default/configmaps?watch=1&resourceVersion=0"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
LARGE_BYTES, CHANGES = 100_000, 40
MOST_MIB = 1500  # of the server, with all of them
GONE_SECONDS = 120.0


class Server:
    def __init__(self, process):
        self.process = process
        self.connection = load(str(process.kubeconfig), {}, "").connection()
        self.host, _, port = self.connection.server.removeprefix("https://").rpartition(":")
        self.port = int(port)
        pair = (self.connection.certificate, self.connection.key)
        self.tls = client_context(ca_data=self.connection.ca, pair_data=pair)
        self.strange = client_context(ca_data=self.connection.ca)
        self.most_mib = 0

    def mib(self):
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        [line] = [one for one in lines if one.startswith("VmRSS:")]
        found = int(line.split()[1]) // 1024
        self.most_mib = max(self.most_mib, found)
        return found

    def descriptors(self):
        return len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))

    async def opened(self, count, line, context):
        """So many connections from several addresses, each of which has sent `line`."""
        streams = []

        async def one(number):
            address = f"127.0.0.{2 + number // BY_ADDRESS}"
            reader, writer = await asyncio.open_connection(
                self.host, self.port, ssl=context, local_addr=(address, 0), limit=2**12
            )
            writer.write(line)
            return reader, writer

        while len(streams) < count:
            first = len(streams)
            some = range(first, min(first + AT_ONCE, count))
            streams += await all_of(one(number) for number in some)
            self.mib()
        return streams


class Other:
    """Asks for something small again and again, from a thread of its own."""

    def __init__(self, server):
        self.api = BlockingClient(server.connection, timeout_seconds=60)
        self.server, self.waits, self.over = server, [], asyncio.Event()

    async def run(self):
        while not self.over.is_set():
            began = time.monotonic()
            await asyncio.to_thread(self.api.json, "GET", "/api/v1/namespaces/default")
            self.waits.append(time.monotonic() - began)
            self.server.mib()
            await asyncio.sleep(0.05)

    def said(self):
        waits = sorted(self.waits)
        middle, longest = (round(waits[at] * 1000) for at in (len(waits) // 2, -1))
        return f"{len(waits)} answers, median {middle} ms, longest {longest} ms"


async def beside(server, story):
    """What the other client had while the story lasted."""
    other = Other(server)
    asking = asyncio.get_running_loop().create_task(other.run())
    try:
        await story
    finally:
        other.over.set()
        await asking
        other.api.close()
    return other.said()


def request(path):
    return f"GET {path} HTTP/1.1\r\nhost: a\r\n\r\n".encode()


async def watches(server, count):
    api = BlockingClient(server.connection, timeout_seconds=60)
    before, began = server.mib(), time.monotonic()
    streams = await server.opened(count, request(WATCH), server.tls)
    for reader, _ in streams:
        assert b" 200 " in await reader.readuntil(b"\r\n\r\n")
    print(f"{count} watches are open after {time.monotonic() - began:.0f} s: "
          f"{(server.mib() - before) / count * 1024:.0f} KiB each")  # fmt: skip
    began = time.monotonic()
    await asyncio.to_thread(api.json, "POST", CONFIG_MAPS, body={"metadata": {"name": "news"}})

    async def heard(reader):
        while b'"news"' not in await reader.readline():
            pass

    await all_of(heard(reader) for reader, _ in streams)
    print(f"all have heard of an event after {time.monotonic() - began:.1f} s")
    await closed(streams)
    api.close()


async def slow_readers(server, count):
    """They watch, and read nothing; what they are sent is more than the kernel keeps for them."""
    api = BlockingClient(server.connection, timeout_seconds=60)
    made = await asyncio.to_thread(
        api.json, "POST", CONFIG_MAPS, body={"metadata": {"name": "large"}}
    )
    streams = await server.opened(count, request(WATCH), server.tls)
    for _, writer in streams:
        writer.transport.pause_reading()
    for number in range(CHANGES):
        made["data"] = {"x": f"{number}" + "x" * LARGE_BYTES}
        body = json.dumps(made).encode()
        made = await asyncio.to_thread(api.json, "PUT", f"{CONFIG_MAPS}/large", body=body)
        server.mib()
    print(f"{count} who do not read: {server.mib()} MiB after {CHANGES} changes of "
          f"{LARGE_BYTES // 1000} KB each, {server.descriptors()} descriptors")  # fmt: skip
    await closed(streams)
    api.close()


async def drips(server, count):
    """Strangers that say nothing, or a byte: each is closed when its time is over, or for room."""
    streams = await server.opened(count, b"G", server.strange)
    began = time.monotonic()

    async def ended(reader):
        while await reader.read(1000):
            pass

    async with asyncio.timeout(GONE_SECONDS):
        await all_of(ended(reader) for reader, _ in streams)
    print(f"{count} who send a byte a minute: closed after {time.monotonic() - began:.0f} s")
    await closed(streams)


async def closed(streams):
    for _, writer in streams:
        writer.transport.abort()
    await asyncio.sleep(0)


async def story(process, given):
    server, wrong = Server(process), []
    before = server.descriptors()
    for work, count in ((watches, given.watches), (slow_readers, given.slow), (drips, given.drips)):
        print("  another client meanwhile: " + await beside(server, work(server, count)))
        ends = time.monotonic() + GONE_SECONDS
        while server.descriptors() > before + 20:
            if time.monotonic() > ends:
                wrong.append(
                    f"{work.__name__}: {server.descriptors()} descriptors, {before} before"
                )
                break
            await asyncio.sleep(0.5)
    print(f"most memory of the server: {server.most_mib} MiB; now {server.mib()}")
    if server.most_mib > MOST_MIB:
        wrong.append(f"{server.most_mib} MiB")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--watches", type=int, default=10_000)
    parser.add_argument("--slow", type=int, default=5_000)
    parser.add_argument("--drips", type=int, default=1_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sampan-load-") as folder:
        process = SampanProcess(Path(folder), "--runtime", "none")
        try:
            process.up()
            wrong = uvloop.run(story(process, given))
            assert process.stop() == 0
        finally:
            process.reset()
    for one in wrong:
        print(f"WRONG {one}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
