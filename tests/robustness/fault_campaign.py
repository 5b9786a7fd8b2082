"""`make campaign`: many faults at once, drawn by seed, and a history that is checked.

Job: rounds of a minute or so: start `sampan up --processes`, let clients fight for keys, watch,
    list and scale while faults overlap; heal all of it; judge what everybody was told.
Invariant: no answered write is lost, every key is linearizable, every watcher saw the same log, a
    pod uid is on one node only, a Deployment ends as it was asked for, nothing is left behind.
Invariant: a round is one seed: `make campaign SEED=n ROUNDS=1` is the same faults again.
"""

import argparse
import asyncio
import random
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

from sampan.api.errors import ApiError
from sampan.api.resources import DEPLOYMENTS, PODS
from sampan.client import kubeconfig, rest
from sampan.core.clock import SystemClock
from sampan.core.tasks import Tasks
from sampan.kubelet.cgroups.limits import root_of
from tests.robustness import fault_layer
from tests.robustness.campaign import PodBook, deployment, is_complete
from tests.robustness.contenders import Arena, Contender, Lister
from tests.robustness.faults import Faults
from tests.robustness.followers import NAMESPACE, Follower, all_caught_up, listed
from tests.support.history import revision_faults
from tests.support.parts.etcd_server import EtcdMember, etcd_cluster, url_of
from tests.support.parts.images import busybox_archive
from tests.support.parts.sampan_process import SampanProcess
from tests.support.parts.tcp_relay import Relay
from tests.support.watch_log import log_faults

CONTENDERS, WATCHERS = 6, 3
SELECTOR = "test=campaign"
HEALED_SECONDS = 180.0
IMAGE = "localhost/campaign:1"
TOLERATED = ("--default-not-ready-toleration-seconds", "10",
             "--default-unreachable-toleration-seconds", "10")  # fmt: skip


@dataclass(frozen=True)
class Round:
    seed: int
    seconds: float = 45.0
    store: str = "sqlite"
    runtime: str = "simulated"

    @property
    def replicas(self):
        return 20 if self.runtime == "simulated" else 4


@dataclass
class World:
    """Everything that a fault can be done to."""

    process: SampanProcess
    cgroup: str
    layer: fault_layer.FaultLayer | None
    members: list[EtcdMember]
    runtime: str
    rng: random.Random
    clock: SystemClock = field(default_factory=SystemClock)
    selector: str = SELECTOR
    relay: Relay | None = None  # for those who fight, watch, list and scale
    uncut: Relay | None = None
    client: rest.RestClient | None = None  # through `uncut`

    @property
    def is_real(self):
        return self.runtime != "simulated"

    def connection(self):
        return kubeconfig.load(str(self.process.kubeconfig), {}, "").connection()

    def follow_port(self):
        """A cluster that is started again has another one where somebody has taken its own."""
        for relay in (self.relay, self.uncut):
            relay.lead_to(port_of(self.connection()))


@dataclass
class Judged:
    faults: Counter
    operations: Counter
    keys: int = 0
    events: int = 0
    lists: int = 0
    pods: int = 0
    undecided: int = 0
    healed_seconds: float = 0.0
    violations: list[str] = field(default_factory=list)

    def __add__(self, other):
        return Judged(
            self.faults + other.faults, self.operations + other.operations,
            self.keys + other.keys, self.events + other.events, self.lists + other.lists,
            self.pods + other.pods, self.undecided + other.undecided,
            max(self.healed_seconds, other.healed_seconds), self.violations + other.violations,
        )  # fmt: skip


def played(root, plan):
    """What came of one round."""
    with ExitStack() as undo:
        members = undo.enter_context(etcd_cluster(3)) if plan.store == "etcd" else []
        world = _world(root, plan, members)
        undo.callback(world.process.reset)
        world.process.up()
        if world.is_real:
            archive = busybox_archive(root / "image.tar", IMAGE)
            world.process.run("image", "import", str(archive))
        judged = asyncio.run(_story(world, plan))
        code = world.process.stop()
        if code != 0:
            judged.violations.append(f"the cluster ended with {code}")
    if left := world.process.leftovers():
        judged.violations.append(f"left on the machine: {left}")
    return judged


def _world(root, plan, members):
    data_dir = root / "data"
    layer = fault_layer.FaultLayer(root, data_dir) if fault_layer.can_be_built() else None
    store = ("--store", url_of(members, "/campaign")) if members else ()
    nodes = ("--nodes", "5") if plan.runtime == "simulated" else ()
    process = SampanProcess(
        root, "--processes", "--runtime", plan.runtime, *nodes, *store, *TOLERATED,
        where=layer.where if layer else (),
    )  # fmt: skip
    rng = random.Random(f"{plan.seed} faults")
    return World(process, root_of(data_dir), layer, members, plan.runtime, rng)


async def _story(world, plan):
    port = port_of(world.connection())
    async with Relay(port) as world.relay, Relay(port) as world.uncut:
        client, world.client = connected(world, world.relay), connected(world, world.uncut)
        arena = Arena(client, SELECTOR, random.Random(f"{plan.seed} watchers"))
        show = Show(world, plan, arena)
        try:
            await show.run()
        finally:
            await show.stop()
            await client.close()
            await world.client.close()
    return show.judged()


def port_of(connection):
    return int(connection.server.rpartition(":")[2])


def connected(world, relay):
    through = replace(world.connection(), server=f"https://127.0.0.1:{relay.port}")
    return rest.connect(through, clock=world.clock)


class Show:
    """One round, from the first request to the last."""

    def __init__(self, world, plan, arena):
        self.world, self.plan, self.arena = world, plan, arena
        self.faults, self.book = Faults(world), PodBook()
        self.followers = [Follower(arena) for _ in range(WATCHERS)]
        self.healed_seconds, self.wrong = 0.0, ""
        self._tasks = Tasks("campaign")

    async def run(self):
        seed, start = self.plan.seed, self._tasks.start
        following = [start("follower", one.run()) for one in self.followers]
        following.append(start("pods", self.follow_pods()))
        working = [
            start(f"client {number}", Contender(self.arena, f"{seed} client {number}").run())
            for number in range(CONTENDERS)
        ]
        working.append(start("lister", Lister(self.arena, f"{seed} lister").run()))
        working.append(start("scaler", self.scale(random.Random(f"{seed} scaler"))))
        try:
            async with asyncio.timeout(self.plan.seconds + HEALED_SECONDS):
                await self.faults.inflict(self.world.rng, self.plan.seconds)
        except TimeoutError:
            self.arena.faults.append("what was done could not be undone")
        self.arena.stop.set()
        for task in working:
            await asyncio.wait([task])
            task.result()
        began = self.world.clock.monotonic()
        await self.heal(following)
        self.healed_seconds = self.world.clock.monotonic() - began

    async def heal(self, following):
        try:
            async with asyncio.timeout(HEALED_SECONDS):
                while True:
                    self.wrong = await self.what_is_wrong()
                    if not self.wrong:
                        break
                    await self.world.clock.sleep(0.1)
                final = await listed(self.arena)
                self.wrong = "watchers do not know the last state"
                await all_caught_up(self.followers, following, final, HEALED_SECONDS)
        except TimeoutError:
            self.arena.faults.append(f"not healed in {HEALED_SECONDS} s: {self.wrong}")
            return
        self.arena.found_at_last(final)

    async def stop(self):
        await self.faults.stop()
        await self._tasks.stop()

    async def scale(self, rng):
        """A Deployment that is asked for another number of pods every second or so."""
        obj = deployment(0, self.plan.replicas)
        if self.world.is_real:
            [container] = obj["spec"]["template"]["spec"]["containers"]
            container |= {"image": IMAGE, "command": ["sleep", "1000000"]}
            obj["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = 0
        await self.insist(lambda: self.arena.client.create(DEPLOYMENTS, obj, NAMESPACE))
        while not self.arena.stop.is_set():
            await self.world.clock.sleep(rng.random() * 2)
            wanted = {"spec": {"replicas": rng.randint(0, self.plan.replicas)}}
            await self.insist(
                lambda wanted=wanted: self.arena.client.patch(
                    DEPLOYMENTS, NAMESPACE, obj["metadata"]["name"], wanted, patch_type="merge"
                )
            )

    async def insist(self, call):
        while not self.arena.stop.is_set():
            try:
                async with asyncio.timeout(10):
                    await call()
                    return
            except TimeoutError:
                continue
            except ApiError as error:
                if error.reason == "AlreadyExists":
                    return
                await self.world.clock.sleep(0.1)

    async def follow_pods(self):
        """Lists again after each watch: resuming is the followers' matter."""
        while True:
            try:
                found = await self.arena.client.list(PODS, NAMESPACE)
                self.book.listed(found.items)
                async for event in self.arena.client.watch(
                    PODS, NAMESPACE, revision=found.revision
                ):
                    if event.type != "BOOKMARK":
                        self.book.seen(event.type, event.object)
            except ApiError:
                await self.world.clock.sleep(0.05)

    async def what_is_wrong(self):
        try:
            async with asyncio.timeout(10):
                found = (await self.arena.client.list(DEPLOYMENTS, NAMESPACE)).items
                pods = (await self.arena.client.list(PODS, NAMESPACE)).items
        except (ApiError, TimeoutError) as error:
            return f"no answer: {error!r}"
        for one in found:
            if not is_complete(one):
                return f"a Deployment is not complete: {one['spec']['replicas']}, {one['status']}"
        wanted = sum(one["spec"]["replicas"] for one in found)
        return "" if len(pods) == wanted else f"{len(pods)} pods of {wanted}"

    def judged(self):
        arena, stories = self.arena, [one.story for one in self.followers]
        arena.judge()
        violations = [*arena.faults, *self.book.faults, *revision_faults(arena.answered)]
        violations += log_faults(stories, arena.lists, arena.answered)
        return Judged(
            self.faults.counted, arena.kinds(), len(arena.operations),
            sum(map(len, stories)), len(arena.lists), len(self.book.bound),
            arena.undecided, self.healed_seconds, violations,
        )  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=2.0)
    parser.add_argument("--rounds", type=int, default=0, help="instead of minutes")
    parser.add_argument("--seconds", type=float, default=45.0, help="of faults in a round")
    parser.add_argument("--store", choices=("sqlite", "etcd"), default="sqlite")
    parser.add_argument("--runtime", choices=("simulated", "native", "cri"), default="simulated")
    given = parser.parse_args()
    ends, total, seed = time.monotonic() + given.minutes * 60, None, given.seed
    while (seed < given.seed + given.rounds) if given.rounds else (time.monotonic() < ends):
        plan = Round(seed, given.seconds, given.store, given.runtime)
        with tempfile.TemporaryDirectory(prefix="sampan-campaign-") as folder:
            judged = played(Path(folder), plan)
        total = judged if total is None else total + judged
        print(f"seed {seed}: {_line(judged)}", flush=True)
        for violation in judged.violations:
            print(f"  VIOLATION {violation}", flush=True)
        seed += 1
    print(f"{seed - given.seed} rounds on {given.store}, {given.runtime}: {_line(total)}")
    for name, times in sorted((total.faults + total.operations).items()):
        print(f"  {name:<28} {times:8}")
    return 1 if total.violations else 0


def _line(judged):
    return (
        f"{judged.faults.total()} faults, {judged.operations.total()} operations on {judged.keys} "
        f"keys ({judged.undecided} undecided), {judged.events} events, {judged.lists} lists, "
        f"{judged.pods} pods bound, well after {judged.healed_seconds:.1f} s, "
        f"{len(judged.violations)} violations"
    )


if __name__ == "__main__":
    sys.exit(main())
