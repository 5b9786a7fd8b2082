"""Drawn objects at the limits of validation, and over: whoever meets them later holds nobody.

A whole cluster has each of them: API server, controllers, scheduler and nodes, which see it, act on
it and forget it. OBJECTS= and SEED= of `make attack` choose how many and which, then with a network
and names beside them; what is measured there is how long another client waits, in
processor time of the server.
"""

import asyncio
import http.client
import io
import json
import os
import random
import shutil
from collections import Counter
from itertools import count, islice
from urllib.parse import urlsplit

import pytest

from sampan.client import kubeconfig
from sampan.cmd.cluster.all_in_one import AllInOne
from sampan.cmd.cluster.data_dir import open_data_dir
from sampan.cmd.cluster.progress import Progress
from sampan.cmd.settings import UpSettings
from sampan.core import tls
from sampan.core.clock import SystemClock
from tests.support.generators.heavy_objects import SHAPES, drawn
from tests.support.parts.another_client import another_client
from tests.support.parts.loop_holds import loop_holds
from tests.support.parts.sampan_process import SampanProcess
from tests.support.seed import SEED

pytestmark = [pytest.mark.usefixtures("settled_memory"), pytest.mark.slow, pytest.mark.timeout(300)]

OBJECTS = int(os.environ.get("SAMPAN_OBJECTS", "0"))
FEW = 20
PART = 4
MOST_SECONDS = 0.05
# What a hold may be where the machine is shared: five times as long as one may be on a quiet one.
MOST_PROCESSOR_SECONDS = 5 * MOST_SECONDS
AT_ONCE = 20  # in one namespace, until it is deleted
MERGE = "application/merge-patch+json"
BACKGROUND = "propagationPolicy=Background&gracePeriodSeconds=0"


class Tenant:
    """Sends objects, waits for each answer, and takes all of them back after some."""

    def __init__(self, kubeconfig_path, seed):
        connection = kubeconfig.load(str(kubeconfig_path), {}, "").connection()
        where = urlsplit(connection.server)
        context = tls.client_context(ca_data=connection.ca, pair_data=connection.pair)
        self.server = http.client.HTTPSConnection(
            where.hostname, where.port, context=context, timeout=120
        )
        self.rng, self.rounds = random.Random(seed), count()
        self.seen = Counter()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.close()

    def call(self, method, path, body=None, kind="application/json"):
        text = None if body is None else json.dumps(body)
        self.server.request(method, path, body=text, headers={"content-type": kind})
        answer = self.server.getresponse()
        return answer.status, answer.read()

    def send(self, objects):
        while objects > 0:
            self.send_to(f"heavy-{next(self.rounds)}", min(objects, AT_ONCE))
            objects -= AT_ONCE

    def send_largest(self):
        """One of each fourth shape, by the seed; in `make attack` of all."""
        each = islice(SHAPES.items(), *((None,) if OBJECTS else (SEED % PART, None, PART)))
        while some := list(islice(each, AT_ONCE)):
            made = [(name, shape, shape.make(shape.most)) for name, shape in some]
            self.send_all(f"heavy-{next(self.rounds)}", made)

    def send_to(self, namespace, objects):
        self.send_all(namespace, (drawn(self.rng) for _ in range(objects)))

    def send_all(self, namespace, objects):
        there = self.call("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
        assert there[0] == 201, there
        awaited = []
        for number, (name, shape, made) in enumerate(objects):
            made["metadata"]["name"] = f"x{number}"
            path = shape.path.format(namespace=namespace)
            status, said = self.call("POST", path, made)
            if status == 201 and made["metadata"].get("finalizers"):
                awaited.append(f"{path}/x{number}")
            # etcd's words for what is too large are upstream's, and so is their number.
            assert status < 500 or b"too large" in said, (name, status, said[:300])
            self.seen[status] += 1
        for path in awaited:  # by nobody else: their namespace would stay, with all that is in it
            self.call("PATCH", path, {"metadata": {"finalizers": None}}, MERGE)
        self.call("DELETE", f"/api/v1/namespaces/{namespace}?{BACKGROUND}")


async def held_by(folder, seed, send):
    data, clock = open_data_dir(str(folder)), SystemClock()
    settings = UpSettings(data_dir=str(folder), port=0, runtime="simulated", nodes=3)
    cluster = AllInOne(settings, data, Progress(io.StringIO(), clock), clock)
    await cluster.start()
    try:
        with Tenant(data.kubeconfig, seed) as tenant:
            await asyncio.to_thread(tenant.send, 4)  # what is loaded with the first of its kind
            async with loop_holds() as holds:
                await asyncio.to_thread(send, tenant)
    finally:
        await cluster.stop()
    return holds, tenant.seen


def test_a_few_drawn_objects_hold_no_loop(tmp_path):
    """What is too long three times in a row fails: the machine is shared."""
    held = []
    for attempt in range(3):
        work = held_by(tmp_path / str(attempt), SEED, lambda tenant: tenant.send(FEW))
        holds, seen = asyncio.run(work)
        assert seen[201] > FEW / 2, seen
        held.append(holds.longest_seconds)
        print(f"seed {SEED}: {dict(seen)}, held {holds}")
        if holds.longest_seconds < MOST_PROCESSOR_SECONDS:
            return
    raise AssertionError(f"held for {', '.join(f'{each * 1000:.0f} ms' for each in held)}")


@pytest.mark.timeout(1200)
def test_the_largest_objects_leave_the_loop_its_turns(tmp_path):
    """99 of 100 turns take less than 50 ms of the loop's own processor time, 999 of 1 000 less than
    twice as much, and none five times. What others wait besides is the machine's, and of threads
    beside the loop."""
    holds, seen = asyncio.run(held_by(tmp_path, SEED, Tenant.send_largest))
    print(f"{dict(seen)}, held {holds}")
    assert seen[201] > seen[500] + seen[422], seen
    assert holds.at(0.99) < MOST_SECONDS, str(holds)
    assert holds.at(0.999) < 2 * MOST_SECONDS, str(holds)
    assert holds.longest_seconds < MOST_PROCESSOR_SECONDS, str(holds)


if OBJECTS:  # by `make attack`

    @pytest.mark.timeout(6 * 3600)
    def test_drawn_objects_keep_nobody_waiting(tmp_path_factory):
        native = os.geteuid() == 0 and shutil.which("crun") is not None
        runtime = ("native",) if native else ("simulated", "--nodes", "3")
        cluster = SampanProcess(tmp_path_factory.mktemp("heavy"), "--runtime", *runtime)
        cluster.up()
        try:
            with Tenant(cluster.kubeconfig, SEED) as tenant:
                with another_client(cluster):  # what a start leaves for later is done then
                    tenant.send(AT_ONCE)
                with another_client(cluster) as other:
                    tenant.send(OBJECTS)
        finally:
            cluster.stop()
            cluster.reset()
        print(f"seed {SEED}: {dict(tenant.seen)}; {other.delays}")
        # Of the server's own time: by the clock it is also who else is on the machine.
        assert other.delays.own_p999 <= MOST_SECONDS, other.delays
