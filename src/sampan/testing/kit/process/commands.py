"""What a test can ask of the process that holds its cluster, besides the API.

Job: a table of commands: time, nodes, containers.
"""

from sampan.api.objects import uid_of
from sampan.api.resources import PODS
from sampan.api.rules.pods import node_name
from sampan.cmd.verbs.why import lines_about
from sampan.core.virtual_time.loop import AT_ONCE_SECONDS, SteppedLoop
from sampan.kubelet.contracts.runtime import ContainerState
from sampan.testing.kit.process.fault_plan import choices_of
from sampan.testing.kit.process.member import Command, Message
from sampan.testing.kit.process.plane import Plane
from sampan.testing.kit.process.severed import SeveredBackend


async def settle(_plane: Plane, loop: SteppedLoop, request: Message) -> Message:
    await loop.settle(request.get("within", AT_ONCE_SECONDS))
    return {}


async def advance(_plane: Plane, loop: SteppedLoop, request: Message) -> Message:
    await loop.advance(request["duration"])
    return {}


async def step(plane: Plane, loop: SteppedLoop, request: Message) -> Message:
    """From timer to timer until something is written, at most so far."""
    began, before = loop.time(), plane.store.revision
    until = began + request["most"]
    while plane.store.revision == before and loop.time() < until:
        gap = min(await loop.idle(), until - loop.time())
        await loop.advance(gap)
    await loop.settle(0.0)
    return {"seconds": loop.time() - began}


async def now(plane: Plane, _loop: SteppedLoop, _request: Message) -> Message:
    return {"now": plane.clock.now()}


async def fail_pod(plane: Plane, _loop: SteppedLoop, request: Message) -> Message:
    client = plane.admin()
    pod = await client.get(PODS, request["namespace"], request["name"])
    runtime = plane.nodes.runtimes.get(node_name(pod))
    observed = None if runtime is None else await runtime.pod(uid_of(pod))
    running = [
        container
        for container in (observed.containers if observed is not None else ())
        if container.state == ContainerState.RUNNING
        and request["container"] in ("", container.name)
    ]
    if runtime is None or not running:
        raise ValueError(f"pod {request['name']} has no running container {request['container']}")
    for container in running:
        runtime.crash(container.id, request["exit_code"], request["reason"])
    return {}


async def cut_node(plane: Plane, _loop: SteppedLoop, request: Message) -> Message:
    _way(plane, request).cut()
    return {}


async def mend_node(plane: Plane, _loop: SteppedLoop, request: Message) -> Message:
    _way(plane, request).mend()
    return {}


async def kill_node(plane: Plane, _loop: SteppedLoop, request: Message) -> Message:
    _way(plane, request).cut()
    plane.nodes.kill(request["name"])
    return {}


async def why(plane: Plane, _loop: SteppedLoop, request: Message) -> Message:
    client = plane.admin()
    pod = await client.get(PODS, request["namespace"], request["name"])
    return {"lines": await lines_about(client, pod)}


async def faults(plane: Plane, _loop: SteppedLoop, request: Message) -> Message:
    chosen = request["chosen"]
    plane.edge.choose(None if chosen is None else choices_of(chosen))
    return {}


async def injected(plane: Plane, _loop: SteppedLoop, _request: Message) -> Message:
    return {"injected": dict(plane.edge.injected), "last": [*plane.edge.last]}


def _way(plane: Plane, request: Message) -> SeveredBackend:
    found = plane.ways.get(request["name"])
    if found is None:
        raise ValueError(f"there is no node {request['name']}: {', '.join(sorted(plane.ways))}")
    return found


COMMANDS: dict[str, Command] = {
    "settle": settle,
    "advance": advance,
    "step": step,
    "now": now,
    "fail_pod": fail_pod,
    "cut_node": cut_node,
    "mend_node": mend_node,
    "kill_node": kill_node,
    "why": why,
    "faults": faults,
    "injected": injected,
}
