"""Two processes of `sampan apiserver` on one etcd, under load, and then one of them. [E3]"""

import asyncio
import re
import shutil
from collections import Counter
from contextlib import aclosing, contextmanager
from dataclasses import replace

import pytest

from sampan.api.errors import AlreadyExists, ApiError, Conflict
from sampan.api.resources import CONFIG_MAPS, LEASES, SERVICES
from sampan.client import kubeconfig, rest
from sampan.cmd.settings import CertsSettings
from sampan.cmd.verbs import certs
from sampan.core.clock import SystemClock
from sampan.core.tasks import Tasks, all_of
from tests.support.parts.etcd_server import etcd_url
from tests.support.parts.processes import Program
from tests.support.parts.sampan_process import environment, sampan_command

pytestmark = [pytest.mark.etcd, pytest.mark.slow, pytest.mark.timeout(240)]
NAMESPACE = "default"
INCREMENTS, SERVICES_EACH, ROUNDS, CONTENDERS, LATER = 60, 30, 8, 8, 60


class ServerProcess:
    def __init__(self, root, url, address):
        ready, output = root / "ready", root / "out"
        self.program = Program(
            [
                *sampan_command("apiserver"), "--store", url, "--cert-dir", str(root / "pki"),
                "--secure-port", "0", "--advertise-address", address, "--ready-file", str(ready),
            ],
            output,
            environment(),
        )  # fmt: skip
        self._root, self._ready, self._output, self._address = root, ready, output, address

    def wait(self):
        self.program.wait_until(self._ready.exists, 90.0)
        found = re.search(rf"https://{re.escape(self._address)}:(\d+)", self._output.read_text())
        admin = kubeconfig.load(str(self._root / "pki" / "admin.conf"), {}, "").connection()
        return replace(admin, server=f"https://127.0.0.1:{found.group(1)}")


@contextmanager
def two_servers(root):
    """As on two machines that share the authorities."""
    certs.make(CertsSettings(str(root / "pki"), "https://127.0.0.1:1"), SystemClock())
    with etcd_url() as url:
        processes = []
        for number in (1, 2):
            own = root / f"server-{number}"
            own.mkdir()
            shutil.copytree(root / "pki", own / "pki")
            processes.append(ServerProcess(own, f"{url}/cluster", f"192.0.2.{number}"))
        try:
            yield processes, [process.wait() for process in processes]
        finally:
            for process in processes:
                process.program.kill()


def config(name, **data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


async def count_up(client, times):
    """Read, add one, write; whoever loses a race tries again."""
    for _ in range(times):
        while True:
            found = await client.get(CONFIG_MAPS, NAMESPACE, "counter")
            changed = {**found, "data": {"value": str(int(found["data"]["value"]) + 1)}}
            try:
                await client.update(CONFIG_MAPS, changed)
                break
            except Conflict:
                continue


async def make_services(client, prefix):
    made = []
    for number in range(SERVICES_EACH):
        spec = {"type": "NodePort", "ports": [{"port": 80}]}
        obj = {"apiVersion": "v1", "kind": "Service",
               "metadata": {"name": f"{prefix}-{number}"}, "spec": spec}  # fmt: skip
        made.append((await client.create(SERVICES, obj, NAMESPACE))["spec"])
    return made


async def contend(clients):
    """Of all who take one lease as they have seen it, one gets it."""
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
             "metadata": {"name": "one"}, "spec": {"holderIdentity": "nobody"}}  # fmt: skip
    seen = await clients[0].create(LEASES, lease, NAMESPACE)
    for turn in range(ROUNDS):

        async def take(number, seen=seen, turn=turn):
            # A name of this turn: to write what is there already is no change, and no conflict.
            mine = {**seen, "spec": {"holderIdentity": f"contender-{number}-{turn}"}}
            try:
                return await clients[number % 2].update(LEASES, mine)
            except Conflict:
                return None

        answers = await all_of(take(number) for number in range(CONTENDERS))
        [seen] = [answer for answer in answers if answer is not None]


class Follower:
    """Hears of ConfigMaps, at another server where one is gone."""

    def __init__(self, clients, revision):
        self._clients, self._at = list(clients), revision
        self.story = []

    async def run(self):
        while True:
            try:
                watch = self._clients[0].watch(CONFIG_MAPS, NAMESPACE, revision=self._at)
                async with aclosing(watch) as events:
                    async for event in events:
                        meta = event.object["metadata"]
                        self._at = int(meta["resourceVersion"])
                        if event.type != "BOOKMARK":
                            self.story.append((event.type, meta["name"], self._at))
            except ApiError:
                self._clients.append(self._clients.pop(0))
                await asyncio.sleep(0.02)


async def insist(clients, obj):
    """As a client behind a balancer: where one server does not answer, another may have."""
    while True:
        for client in clients:
            try:
                return await client.create(CONFIG_MAPS, obj, NAMESPACE)
            except AlreadyExists:
                return None
            except ApiError:
                await asyncio.sleep(0.02)


async def until_equal(followers, revision):
    async with asyncio.timeout(60):
        while any(not one.story or one.story[-1][2] < revision for one in followers):
            await asyncio.sleep(0.02)
    assert followers[0].story == followers[1].story
    revisions = [told[2] for told in followers[0].story]
    assert revisions == sorted(set(revisions)), "in order, each once"


async def story(processes, connections):
    one, two = clients = [rest.connect(item, clock=SystemClock()) for item in connections]
    tasks = Tasks("test")
    try:
        made = await one.create(CONFIG_MAPS, config("counter", value="0"), NAMESPACE)
        since = int(made["metadata"]["resourceVersion"])
        followers = [Follower([one, two], since), Follower([two, one], since)]
        for follower in followers:
            tasks.start("follower", follower.run())
        *_, of_one, of_two, _ = await all_of(
            [
                *(count_up(clients[number % 2], INCREMENTS // 4) for number in range(4)),
                make_services(one, "one"), make_services(two, "two"), contend(clients),
            ]
        )  # fmt: skip
        for server in clients:
            found = await server.get(CONFIG_MAPS, NAMESPACE, "counter")
            assert found["data"]["value"] == str(INCREMENTS), "no increment is lost"
        for given in ([spec["clusterIP"] for spec in (*of_one, *of_two)],
                      [spec["ports"][0]["nodePort"] for spec in (*of_one, *of_two)]):  # fmt: skip
            assert Counter(given).most_common(1)[0][1] == 1, "nothing is given twice"
        await until_equal(followers, int(found["metadata"]["resourceVersion"]))
        writing = tasks.start(
            "later", all_of(insist([one, two], config(f"later-{n}")) for n in range(LATER))
        )
        processes[0].program.kill()
        await writing
        listed = await two.list(CONFIG_MAPS, NAMESPACE)
        there = {item["metadata"]["name"] for item in listed.items}
        assert {f"later-{number}" for number in range(LATER)} <= there
        newest = max(int(item["metadata"]["resourceVersion"]) for item in listed.items)
        await until_equal(followers, newest)
    finally:
        await tasks.stop()
        for client in clients:
            await client.close()


def test_two_processes_are_one_api_under_load_and_one_of_them_is_enough(tmp_path):
    with two_servers(tmp_path) as (processes, connections):
        asyncio.run(story(processes, connections))
