"""`make campaign-nodes`: faults on many simulated nodes while many pods are on their way.

Job: start `sampan up --processes`, create Deployments, let nodes vanish and come back in hundreds,
    kill the API server's process (and others') with -9, wait until all is well, judge the story.
Invariant: nothing lost, nothing twice: each pod is bound once, no name has two pods at a time, and
    every Deployment ends with as many pods as it asks for.
"""

import argparse
import asyncio
import json
import os
import resource
import signal
import sys
import tempfile
from collections import Counter
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path

from sampan.api.errors import AlreadyExists, ApiError, Expired
from sampan.api.objects import is_deleted
from sampan.api.resources import DEPLOYMENTS, NODES, PODS
from sampan.client import kubeconfig, rest
from sampan.client.contract import Page
from sampan.core.clock import SystemClock
from sampan.core.tasks import Tasks, all_of
from tests.support.parts.sampan_process import SampanProcess

NAMESPACE = "default"
APP = "campaign"
AT_ONCE = 16
PAGE = 2000
LOOK_SECONDS = 0.25


@dataclass(frozen=True)
class Plan:
    """How large, and what happens when."""

    nodes: int
    deployments: int
    replicas: int  # of each
    groups: tuple[tuple[int, int, int], ...]  # so many nodes vanish, at, for so many seconds
    kills: tuple[tuple[str, float], ...]  # a part, and the share of all pods that there are by then
    seconds: float  # for all of it, at most

    @property
    def pods(self) -> int:
        return self.deployments * self.replicas


LARGE = Plan(
    1000, 100, 100,
    groups=((100, 20, 90), (200, 40, 90), (100, 60, 20)),
    kills=(("apiserver", 0.3), ("scheduler", 0.5), ("apiserver", 0.7), ("controllers", 0.8)),
    seconds=1200.0,
)  # fmt: skip
SMALL = Plan(
    30, 10, 20,
    groups=((10, 2, 5),),
    kills=(("apiserver", 0.1), ("controllers", 0.4), ("nodes", 0.6), ("scheduler", 0.8)),
    seconds=150.0,
)  # fmt: skip


class PodBook:
    """What was seen of every pod, and what must never be seen."""

    def __init__(self):
        self.faults: list[str] = []
        self.bound: dict[str, tuple[str, str]] = {}  # by uid, for ever: name and node
        self.living: dict[str, str] = {}  # by name, now: uid
        self.running: set[str] = set()  # uids, now

    def listed(self, pods):
        """Everything that there is; the past is what was seen of it."""
        names = Counter(pod["metadata"]["name"] for pod in pods)
        uids = Counter(pod["metadata"]["uid"] for pod in pods)
        self.faults += [f"{times} pods {what}" for found in (names, uids)
                        for what, times in found.items() if times > 1]  # fmt: skip
        self.living.clear()
        self.running.clear()
        for pod in pods:
            self.seen("ADDED", pod)

    def seen(self, kind, pod):
        name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
        if kind == "DELETED":
            self.living.pop(name, None)
            self.running.discard(uid)
            return
        other = self.living.get(name)
        if other not in (None, uid):
            self.faults.append(f"{name} is {uid} while it is {other}")
        self.living[name] = uid
        self._bind(name, uid, pod["spec"].get("nodeName", ""))
        phase = pod.get("status", {}).get("phase")
        (self.running.add if phase == "Running" else self.running.discard)(uid)

    def _bind(self, name, uid, node):
        if not node:
            if uid in self.bound:
                self.faults.append(f"{name} {uid} is bound no more")
            return
        before = self.bound.setdefault(uid, (name, node))
        if before != (name, node):
            self.faults.append(f"{uid} was {before}, and is {(name, node)}")


@dataclass
class Campaign:
    process: SampanProcess
    plan: Plan
    client: rest.RestClient
    clock: SystemClock = field(default_factory=SystemClock)
    book: PodBook = field(default_factory=PodBook)
    figures: dict[str, float] = field(default_factory=dict)
    expired: int = 0
    wrong: str = "it has not begun"

    async def run(self):
        """Raises AssertionError, TimeoutError."""
        tasks = Tasks("campaign")
        try:
            async with asyncio.timeout(self.plan.seconds):
                tasks.start("follower", self.follow())
                creating = tasks.start("load", self.create())
                began = self.clock.monotonic()
                for part, share in self.plan.kills:
                    await self.until(lambda share=share: self.has(share))
                    await self.kill(part)
                await asyncio.wait([creating])
                creating.result()
                while True:
                    self.wrong = await self.what_is_wrong()
                    if not self.wrong:
                        break
                    await self.clock.sleep(LOOK_SECONDS)
                self.figures["all replicas ready, s"] = self.clock.monotonic() - began
        except TimeoutError:
            raise AssertionError(f"not well in time: {self.wrong}") from None
        finally:
            await tasks.stop()
            await self.client.close()
        assert self.book.faults == []

    def has(self, share):
        return len(self.book.living) >= share * self.plan.pods

    async def until(self, is_true):
        while not is_true():
            await self.clock.sleep(0.02)

    async def follow(self):
        """Lists, watches, resumes where it was, and lists again where it must."""
        at = None
        while True:
            try:
                if at is None:
                    pods, at = await self.all_pods()
                    self.book.listed(pods)
                watch = self.client.watch(PODS, NAMESPACE, revision=at)
                async with aclosing(watch) as events:
                    async for event in events:
                        at = int(event.object["metadata"]["resourceVersion"])
                        if event.type != "BOOKMARK":
                            self.book.seen(event.type, event.object)
            except Expired:
                self.expired += 1
                at = None
            except ApiError:
                await self.clock.sleep(0.05)  # it is away

    async def all_pods(self):
        pods, token = [], ""
        while True:
            found = await self.client.list(PODS, NAMESPACE, page=Page(PAGE, token))
            pods += found.items
            token = found.continue_token
            if not token:
                return pods, found.revision

    async def create(self):
        numbers = iter(range(self.plan.deployments))

        async def some():
            for number in numbers:
                await self.insist(deployment(number, self.plan.replicas))

        await all_of(some() for _ in range(AT_ONCE))

    async def insist(self, obj):
        """As a client that retries: where there was no answer, it may have been done."""
        while True:
            try:
                return await self.client.create(DEPLOYMENTS, obj, NAMESPACE)
            except AlreadyExists:
                return None
            except ApiError:
                await self.clock.sleep(0.05)

    async def kill(self, part):
        """As `kill -9`; returns when the next process does the work."""
        noted = self.process.data_dir / "processes.json"
        before = json.loads(noted.read_text())[part]["pid"]
        under_way = len(self.book.living) - len(self.book.running)
        os.kill(before, signal.SIGKILL)
        began = self.clock.monotonic()
        await self.until(lambda: json.loads(noted.read_text())[part]["pid"] != before)
        if part == "apiserver":
            await self.answered()
        away = self.clock.monotonic() - began
        print(
            f"  {part} killed, {under_way} pods on their way: back after {away:.1f} s", flush=True
        )
        key = f"{part} back after, s"
        self.figures[key] = max(away, self.figures.get(key, 0.0))

    async def answered(self):
        while True:
            try:
                return await self.client.list(NODES, page=Page(1))
            except ApiError:
                await self.clock.sleep(0.02)

    async def what_is_wrong(self):
        """One sentence; empty when all is as it was asked for."""
        try:
            nodes = (await self.client.list(NODES)).items
            deployments = (await self.client.list(DEPLOYMENTS, NAMESPACE)).items
            pods, _ = await self.all_pods()
        except ApiError as error:
            return str(error)
        ready = {node["metadata"]["name"] for node in nodes if is_ready(node)}
        if len(ready) != self.plan.nodes:
            return f"{len(ready)} of {self.plan.nodes} nodes are ready"
        if len(deployments) != self.plan.deployments:
            return f"{len(deployments)} of {self.plan.deployments} Deployments are there"
        short = [one for one in deployments if not is_complete(one)]
        if short:
            return f"{len(short)} Deployments are not complete: {short[0].get('status')}"
        owners = Counter(pod["metadata"]["labels"]["number"] for pod in pods)
        wanted = {str(number): self.plan.replicas for number in range(self.plan.deployments)}
        if owners != wanted or any(is_deleted(pod) for pod in pods):
            return f"{len(pods)} pods of {self.plan.pods}"
        if {pod["spec"]["nodeName"] for pod in pods} - ready:
            return "pods on nodes that are not ready"
        # What the follower knows must come to the same: it missed nothing.
        if set(self.book.living.values()) != {pod["metadata"]["uid"] for pod in pods}:
            return "the watch has not told everything yet"
        return ""


def is_ready(node):
    conditions = node.get("status", {}).get("conditions", [])
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def is_complete(obj):
    status, wanted = obj.get("status", {}), obj["spec"]["replicas"]
    counts = [status.get(name, 0) for name in ("replicas", "readyReplicas", "updatedReplicas")]
    return (
        counts == [wanted] * 3 and status.get("observedGeneration") == obj["metadata"]["generation"]
    )


def deployment(number, replicas):
    labels = {"app": APP, "number": str(number)}
    container = {"name": "main", "image": "registry.example/app:1"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": f"{APP}-{number:03d}", "labels": labels},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


def nodes_file(plan, path):
    """Those that stay, and a type of node for each group that vanishes."""
    types = [{"name": "steady", "count": plan.nodes - sum(group[0] for group in plan.groups)}]
    for number, (count, at, seconds) in enumerate(plan.groups):
        failures = [{"at": f"{at}s", "for": f"{seconds}s"}]
        types.append({"name": f"group-{number}", "count": count, "failures": failures})
    written = {"apiVersion": "simulated.sampan.dev/v1", "kind": "Nodes", "types": types}
    path.write_text(json.dumps(written))
    return path


def campaign(root, plan):
    """The figures of one; raises AssertionError."""
    tolerated = ("--default-not-ready-toleration-seconds", "10",
                 "--default-unreachable-toleration-seconds", "10")  # fmt: skip
    process = SampanProcess(
        root, "--processes", "--runtime", "simulated", *tolerated,
        "--nodes-file", str(nodes_file(plan, root / "nodes.json")),
    )  # fmt: skip
    try:
        process.up(seconds=300.0)
        connection = kubeconfig.load(str(process.kubeconfig), {}, "").connection()

        async def main():
            found = Campaign(process, plan, rest.connect(connection, clock=SystemClock()))
            await found.run()
            return found

        done = asyncio.run(main())
        assert process.stop() == 0
    finally:
        process.reset()
    return done


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="as the test does it")
    plan = SMALL if parser.parse_args().small else LARGE
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 65536), hard))
    gone = sum(group[0] for group in plan.groups)
    print(f"{plan.nodes} nodes, of which {gone} vanish; {plan.pods} pods", flush=True)
    with tempfile.TemporaryDirectory(prefix="sampan-campaign-") as folder:
        done = campaign(Path(folder), plan)
    for name, value in done.figures.items():
        print(f"  {name:<28} {value:8.1f}")
    print(f"  {len(done.book.bound)} pods were bound in all, each once; "
          f"{done.expired} watches had to list again")  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
