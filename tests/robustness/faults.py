"""What is done to a cluster while it works: drawn by seed, several at a time, healed again.

Job: `drawn` decides what comes next; `Faults` does it and undoes it.
Invariant: whatever is stopped, cut, filled or hung is let go again when its time is over.
Invariant: nobody is signalled but processes of this cluster, known by its data directory.
"""

import asyncio
import json
import os
import signal
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from sampan.core.tasks import Tasks
from tests.robustness.neighbours import aggregate, flood, hang_webhook
from tests.robustness.power_loss import lose_power

PARTS = ("apiserver", "scheduler", "controllers", "nodes")
WORLD = "everything"
UP_SECONDS = 180.0
# Ahead of the machine's clock: forward and back, longer than a lease lasts without being renewed;
# never to before the cluster's certificates, which nobody would take then.
JUMPS = (0, 20, 90, 3600)
# What runs containers, by the names of the processes.
PROGRAMS = {"native": ("conmon", "crun"), "cri": ("containerd", "containerd-shim", "runc")}
BULK, BULKY = 60, "x" * 900_000  # more than any part may be behind by: 48 MiB


@dataclass(frozen=True)
class Fault:
    kind: str
    target: str
    seconds: float = 0.0
    amount: int = 0


def kinds_of(world):
    """By kind: to whom it can be done there, and how often beside the others."""
    found = {
        "kill": ((*PARTS, "apiserver", WORLD), 6),
        "pause": ((*PARTS, "apiserver", "supervisor"), 5),
        "cut": (("clients",), 3),
        "drop": (("clients",), 4),
        "webhook": (("Fail", "Ignore"), 2),
        "aggregated": (("silent", "false"), 2),
        "behind": (("scheduler", "controllers", "nodes"), 1),
    }
    if world.layer is not None:
        found |= {"clock": ((WORLD,), 2)}
        if not world.members:
            found |= {"sync errors": (("disk",), 2), "full": (("disk",), 2), "slow": (("disk",), 2)}
    members = tuple(member.name for member in world.members)
    if members:
        found |= {"kill member": (members, 3), "pause member": (members, 3)}
    if world.is_real:
        found |= {"kill container": (("main",), 3), "power": (("machine",), 1)}
        found |= {"kill program": (PROGRAMS[world.runtime], 4)}
    return found


def drawn(rng, kinds):
    """The next one, and how long it is until then."""
    [kind] = rng.choices(list(kinds), [weight for _, weight in kinds.values()])
    target = rng.choice(kinds[kind][0])
    amount = rng.choice(JUMPS) if kind == "clock" else rng.choice((5, 50, 300))
    fault = Fault(kind, target, round(rng.uniform(0.1, 2.5), 2), amount)
    return fault, round(rng.expovariate(1.2), 2)


class Faults:
    def __init__(self, world):
        self.world, self.counted = world, Counter()
        self._tasks = Tasks("faults")
        self._held: set[tuple[str, str]] = set()  # what lasts
        self._paused: set[int] = set()  # by pid
        self._is_starting = False  # the whole cluster
        self._all = asyncio.Lock()  # who ends and starts it

    async def inflict(self, rng, seconds):
        """Until the time is over and all is healed."""
        clock, kinds = self.world.clock, kinds_of(self.world)
        ends = clock.monotonic() + seconds
        under_way = []
        while clock.monotonic() < ends:
            fault, pause = drawn(rng, kinds)
            what = (fault.kind, fault.target)
            if what not in self._held:
                self._held.add(what)
                under_way.append(self._tasks.start(f"{fault}", self._once(fault)))
            await clock.sleep(pause)
        for task in under_way:
            await asyncio.wait([task])
            task.result()

    async def stop(self):
        for pid in list(self._paused):
            self._resume(pid)
        await self._tasks.stop()

    async def _once(self, fault):
        try:
            if await self._done(fault):
                self.counted[f"{fault.kind} {fault.target}"] += 1
        finally:
            self._held.discard((fault.kind, fault.target))

    async def _done(self, fault):
        """Whether it hit anybody."""
        world, layer = self.world, self.world.layer
        match fault.kind:
            case "kill" if fault.target == WORLD:
                return await self._kill_all(world.process.kill)
            case "kill":
                return self._signal(self._pid(fault.target), signal.SIGKILL)
            case "pause":
                return await self._pause(self._pid(fault.target), fault)
            case "kill container":
                return self._signal(self._container(), signal.SIGKILL)
            case "kill member" | "pause member":
                return await self._member(fault)
            case "kill program":
                return self._signal(self._program(fault.target), signal.SIGKILL)
            case "power":
                return await self._kill_all(lambda: lose_power(world.process, layer))
            case "behind":
                return await self._leave_behind(fault)
            case "webhook":
                return await hang_webhook(world, fault)
            case "aggregated":
                return await aggregate(world, fault)
            case "clock":
                layer.jump(fault.amount)
            case "cut":
                await self._while(fault, lambda on: (world.relay.mend, world.relay.cut)[on]())
            case "drop":
                world.relay.cut()
                if ("cut", fault.target) not in self._held:
                    world.relay.mend()
            case "sync errors":
                await self._while(fault, layer.fail_syncs)
            case "full":
                await self._while(fault, layer.fill)
            case "slow":
                await self._while(fault, lambda on: layer.delay_syncs(fault.amount * on))
        return True

    async def _while(self, fault, switch):
        switch(True)
        try:
            await self.world.clock.sleep(fault.seconds)
        finally:
            switch(False)

    # Processes.

    def _pid(self, part):
        if part == "supervisor":
            return self.world.process.pid
        try:
            noted = json.loads((self.world.process.data_dir / "processes.json").read_text())
            return noted[part]["pid"]
        except (OSError, ValueError, KeyError):
            return 0

    def _signal(self, pid, number):
        if not pid or not self._is_ours(pid):
            return False
        with suppress(ProcessLookupError):
            os.kill(pid, number)
            return True
        return False

    def _is_ours(self, pid):
        try:
            line = Path(f"/proc/{pid}/cmdline").read_bytes()
            group = Path(f"/proc/{pid}/cgroup").read_text()
        except OSError:
            return False
        return os.fsencode(self.world.process.root) in line or self.world.cgroup in group

    def _container(self):
        """Any process of any of its pods."""
        found = [int(one.name) for one in Path("/proc").glob("[0-9]*") if self._is_in_pod(one)]
        return self.world.rng.choice(found) if found else 0

    def _program(self, name):
        """Any process of that name; those of the runtime are told by their own command line."""
        found = []
        for one in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if (one / "comm").read_text().strip() == name[:15] and self._is_ours(int(one.name)):
                    found.append(int(one.name))
        return self.world.rng.choice(sorted(found)) if found else 0

    def _is_in_pod(self, process):
        try:
            return f"{self.world.cgroup}/" in (process / "cgroup").read_text()
        except OSError:
            return False

    async def _pause(self, pid, fault):
        if self._is_starting or pid in self._paused or not self._signal(pid, signal.SIGSTOP):
            return False
        self._paused.add(pid)
        await self.world.clock.sleep(fault.seconds)
        self._resume(pid)
        return True

    def _resume(self, pid):
        self._paused.discard(pid)
        self._signal(pid, signal.SIGCONT)

    async def _kill_all(self, kill):
        """A stopped process neither ends with its parent nor lets another one begin: nobody is
        stopped meanwhile."""
        async with self._all:
            self._is_starting = True
            try:
                for pid in list(self._paused):
                    self._resume(pid)
                await asyncio.to_thread(kill)
                await self.started()
            finally:
                self._is_starting = False
        return True

    async def started(self):
        """A start that meets a fault may fail, and says why; then it is tried again."""
        async with asyncio.timeout(UP_SECONDS):
            while True:
                try:
                    await asyncio.to_thread(self.world.process.up, seconds=UP_SECONDS)
                    return self.world.follow_port()
                except AssertionError:
                    self.counted["starts that failed"] += 1
                    self.world.process.kill()

    async def _member(self, fault):
        member = next(one for one in self.world.members if one.name == fault.target)
        process = member.program.process
        if fault.kind == "pause member":
            process.send_signal(signal.SIGSTOP)
            await self.world.clock.sleep(fault.seconds)
            process.send_signal(signal.SIGCONT)
            return True
        member.kill()
        await self.world.clock.sleep(fault.seconds)
        member.start()
        return True

    async def _leave_behind(self, fault):
        """A part that stands still while more is written than anybody may be behind by."""
        pid = self._pid(fault.target)
        if self._is_starting or pid in self._paused or not self._signal(pid, signal.SIGSTOP):
            return False
        self._paused.add(pid)
        try:
            await flood(self.world, BULK, BULKY)
        finally:
            self._resume(pid)
        return True
