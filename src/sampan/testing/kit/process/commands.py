"""What a test can ask of the process that holds its cluster, besides the API.

Job: a table of commands: time, nodes, containers.
"""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path

from sampan.api.objects import uid_of
from sampan.api.resources import PODS
from sampan.api.rules.pods import node_name
from sampan.cmd.verbs.why import lines_about
from sampan.core.virtual_time.loop import AT_ONCE_SECONDS, SteppedLoop
from sampan.core.virtual_time.outside import told
from sampan.kubelet.contracts.runtime import ContainerState
from sampan.testing.kit.process.control_end import Action, Message
from sampan.testing.kit.process.fault_plan import choices_of
from sampan.testing.kit.process.held_cluster import Failure, HeldCluster
from sampan.testing.kit.process.severed import SeveredBackend
from sampan.testing.kit.process.write_log import WriteLog


async def settle(held: HeldCluster, loop: SteppedLoop, request: Message) -> Message:
    await loop.settle(AT_ONCE_SECONDS, outside=request.get("outside", False))
    return _arrived(held)


async def advance(held: HeldCluster, loop: SteppedLoop, request: Message) -> Message:
    await loop.advance(request["duration"])
    return _arrived(held)


async def step(held: HeldCluster, loop: SteppedLoop, request: Message) -> Message:
    """From timer to timer until something is written, at most so far."""
    before = held.store.revision
    seconds = await loop.step(lambda: held.store.revision != before, request["most"])
    return {"seconds": seconds, **_arrived(held)}


async def expect(held: HeldCluster, _loop: SteppedLoop, request: Message) -> Message:
    """A client."""
    held.outside.expect(request["name"], request["within"])
    return {}


async def outside(held: HeldCluster, _loop: SteppedLoop, request: Message) -> Message:
    """Who is there."""
    found = held.outside
    if (patience := request.get("patience")) is not None:
        found.patience_seconds = patience
    return {
        "known": found.is_known,
        "watches": found.watches,
        "waited": told(found.report()),
        "patience": found.patience_seconds,
    }


async def now(held: HeldCluster, _loop: SteppedLoop, _request: Message) -> Message:
    return {"now": held.clock.now()}


async def guard(held: HeldCluster, _loop: SteppedLoop, request: Message) -> Message:
    """A process that is to end with the test, whatever happens to that."""
    held.guarded.add(request["pid"])
    return {}


async def release(held: HeldCluster, _loop: SteppedLoop, request: Message) -> Message:
    """It has ended."""
    held.guarded.remove(request["pid"])
    return {}


async def fail_pod(held: HeldCluster, _loop: SteppedLoop, request: Message) -> Message:
    client = held.admin()
    pod = await client.get(PODS, request["namespace"], request["name"])
    runtime = held.runtime_of(node_name(pod))
    observed = None if runtime is None else await runtime.pod(uid_of(pod))
    running = [
        container.id
        for container in (observed.containers if observed is not None else ())
        if container.state == ContainerState.RUNNING
        and request["container"] in ("", container.name)
    ]
    if not running:
        raise ValueError(f"pod {request['name']} has no running container {request['container']}")
    failure = Failure(request["exit_code"], request["reason"])
    for container_id in running:
        await held.end_container(node_name(pod), container_id, failure)
    return {}


async def cut_node(held: HeldCluster, _loop: SteppedLoop, request: Message) -> Message:
    way = _way(held, request)
    if not way.is_cut:
        way.cut()
        await held.note_silence(request["name"])
    return {}


async def mend_node(held: HeldCluster, _loop: SteppedLoop, request: Message) -> Message:
    _way(held, request).mend()
    return {}


async def kill_node(held: HeldCluster, _loop: SteppedLoop, request: Message) -> Message:
    way = _way(held, request)
    await held.kill_node(request["name"])
    way.cut()
    return {}


async def why(held: HeldCluster, _loop: SteppedLoop, request: Message) -> Message:
    client = held.admin()
    pod = await client.get(PODS, request["namespace"], request["name"])
    return {"lines": await lines_about(client, pod)}


async def record(held: HeldCluster, _loop: SteppedLoop, _request: Message) -> Message:
    held.writes = WriteLog(held.store)
    return {}


async def writes(held: HeldCluster, loop: SteppedLoop, request: Message) -> Message:
    if held.writes is None:
        raise ValueError("nothing was recorded: call record() first")
    await loop.idle()  # it has heard of all that was written
    held.writes.save(Path(request["file"]))
    return {}


async def faults(held: HeldCluster, _loop: SteppedLoop, request: Message) -> Message:
    chosen = request["chosen"]
    held.edge.choose(None if chosen is None else choices_of(chosen))
    return {}


async def injected(held: HeldCluster, _loop: SteppedLoop, _request: Message) -> Message:
    return {"injected": dict(held.edge.injected), "last": [*held.edge.last]}


def _arrived(held: HeldCluster) -> Message:
    """Who of those who were expected is still missing."""
    missing, held.outside.missing = held.outside.missing, []
    return {"missing": missing} if missing else {}


def _way(held: HeldCluster, request: Message) -> SeveredBackend:
    found = held.ways.get(request["name"])
    if found is None:
        raise ValueError(f"there is no node {request['name']}: {', '.join(sorted(held.ways))}")
    return found


Command = Callable[[HeldCluster, SteppedLoop, Message], Awaitable[Message]]
COMMANDS: dict[str, Command] = {
    "settle": settle,
    "advance": advance,
    "step": step,
    "now": now,
    "expect": expect,
    "guard": guard,
    "release": release,
    "outside": outside,
    "fail_pod": fail_pod,
    "cut_node": cut_node,
    "mend_node": mend_node,
    "kill_node": kill_node,
    "why": why,
    "record": record,
    "writes": writes,
    "faults": faults,
    "injected": injected,
}


def actions_of(held: HeldCluster, loop: SteppedLoop) -> Mapping[str, Action]:
    return {name: partial(command, held, loop) for name, command in COMMANDS.items()}
