"""NetworkPolicies in the real kernel: nine pods, every pair, against a naive judge.

Job: network namespaces as pods on a bridge of ours, the real enforcer on a small API, connections
    between all of them; print what differs. Run as a program in a network namespace of its own.
"""

import asyncio
import random
import select
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

from sampan.api.objects import Obj, key_of
from sampan.api.resources import NAMESPACES, PODS
from sampan.client.informer import Informers
from sampan.core.clock import SystemClock
from sampan.core.metrics import Metrics
from sampan.core.tasks import Tasks
from sampan.network import cni
from sampan.network.policies.compiled import compile_policy
from sampan.network.policies.enforcer import POLICIES, EnforcerSettings, PolicyEnforcer
from tests.support.generators import random_policies as generated
from tests.support.parts.pod_places import Place, places
from tests.support.worlds.small_api import SmallApi

ANSWER_SECONDS = 0.3
# Of Services and of pods, as nftables calls the family.
RANGES = {
    "ip": (("10.96.0.0/12",), ("10.244.0.0/16",)),
    "ip6": (("fd00:10:96::/112",), ("fd00:10:244::/56",)),
}
Question = tuple[str, str, str, int]  # from, to, protocol, port


def main() -> int:
    data_dir, family, *seeds = sys.argv[1:]
    return asyncio.run(_run(Path(data_dir), family, [int(seed) for seed in seeds]))


async def _run(data_dir: Path, family: str, seeds: list[int]) -> int:
    network = cni.set_up(data_dir, *RANGES[family])
    subnet = network.subnet
    pods = {key_of(pod): pod for pod in generated.pods(subnet)}
    wanted = {key: [pod["status"]["podIPs"][0]["ip"]] for key, pod in pods.items()}
    with places(network, wanted) as found:
        for place in found.values():
            place.serve(generated.PORTS)
        wrong = denied = 0
        async with asyncio.timeout(200):
            api, tasks = SmallApi(SystemClock()), Tasks("matrix")
            informers = Informers(api, clock=SystemClock())
            settings = EnforcerSettings(cni.nft_table(network), "n1", network.families)
            enforcer = PolicyEnforcer(settings, informers, SystemClock(), Metrics())
            for name, labels in generated.NAMESPACES.items():
                await api.create(NAMESPACES, {"metadata": {"name": name, "labels": labels}})
            for pod in pods.values():
                await api.create(PODS, pod, pod["metadata"]["namespace"])
            informers.start()
            tasks.supervise("enforcer", enforcer.run)
            for seed in seeds:
                policies = generated.random_policies(random.Random(seed), subnet)
                await _enforce(api, enforcer, policies)
                differing, refused = _differences(seed, policies, pods, found)
                wrong, denied = wrong + differing, denied + refused
            await tasks.stop()
            await informers.stop()
    cni.tear_down(data_dir)
    print(f"{len(seeds)} sets of policies, {denied} denied, {wrong} differences")
    return 1 if wrong else 0


async def _enforce(api: SmallApi, enforcer: PolicyEnforcer, policies: list[Obj]) -> None:
    assert POLICIES is not None
    for old in list(api.objects(POLICIES)):
        await api.delete(POLICIES, old["metadata"]["namespace"], old["metadata"]["name"])
    for policy in policies:
        await api.create(POLICIES, policy, policy["metadata"]["namespace"])
    wanted = frozenset(compile_policy(policy).id for policy in policies)
    await enforcer.ready.wait()
    while enforcer.in_force != wanted:  # nobody else waits for it
        await asyncio.sleep(0.002)


def _differences(
    seed: int, policies: list[Obj], pods: dict[str, Obj], there: dict[str, Place]
) -> tuple[int, int]:
    questions = [
        (source, target, protocol, port)
        for source in pods
        for target in pods
        for protocol in generated.PROTOCOLS
        for port in generated.PORTS
        if source != target
    ]
    reached = _reach(questions, pods, there)
    wrong = denied = 0
    for question in questions:
        source, target, protocol, port = question
        may = generated.is_allowed(policies, pods[source], pods[target], protocol, port)
        denied += not may
        if (question in reached) is not may:
            wrong += 1
            print(f"seed {seed}: {question} should be {'allowed' if may else 'denied'}")
    return wrong, denied


def _reach(
    questions: list[Question], pods: dict[str, Obj], there: dict[str, Place]
) -> set[Question]:
    """All at once: what is dropped costs one wait, not one each."""
    waiting: dict[socket.socket, Question] = {}
    by_text = {f"{question}".encode(): question for question in questions}
    senders: list[socket.socket] = []
    for question in questions:
        source, target, protocol, port = question
        address = (pods[target]["status"]["podIPs"][0]["ip"], port)
        with there[source].inside():
            kind = socket.SOCK_STREAM if protocol == "TCP" else socket.SOCK_DGRAM
            family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
            client = socket.socket(family, kind)
        client.setblocking(False)
        if protocol == "TCP":
            client.connect_ex(address)
            waiting[client] = question
        else:
            client.sendto(f"{question}".encode(), address)
            senders.append(client)
    reached = _connect(waiting)
    for place in there.values():
        for (protocol, _), server in place.servers.items():
            reached |= {by_text[text] for text in _take(protocol, server)}
    for client in (*waiting, *senders):
        client.close()
    return reached


def _connect(waiting: dict[socket.socket, Question]) -> set[Question]:
    found: set[Question] = set()
    left = set(waiting)
    while left:
        _, ready, _ = select.select([], list(left), [], ANSWER_SECONDS)
        if not ready:
            break
        for client in ready:
            left.discard(client)
            if client.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0:
                found.add(waiting[client])
    return found


def _take(protocol: str, server: socket.socket) -> Iterator[bytes]:
    while True:
        try:
            if protocol == "TCP":
                server.accept()[0].close()
            else:
                yield server.recv(200)
        except BlockingIOError:
            return


if __name__ == "__main__":
    sys.exit(main())
