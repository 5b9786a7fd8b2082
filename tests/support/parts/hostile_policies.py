"""A tenant whose network policies are as long as they may be, or cannot be written; and another.

Job: the real enforcer in front of the real kernel; policies of the one, then of the other, whose
    pod starts; print what holds. Run as a program in a network namespace of its own.
"""

import asyncio
import json
import resource
import sys
from collections.abc import Callable
from pathlib import Path

from sampan.api.objects import Obj
from sampan.api.resources import NAMESPACES, PODS
from sampan.client.informer import Informers
from sampan.core.clock import SystemClock
from sampan.core.metrics import Metrics
from sampan.core.tasks import Tasks
from sampan.network import cni
from sampan.network.nftables import nft
from sampan.network.nftables.netfilter import Netfilter
from sampan.network.policies import ruleset
from sampan.network.policies.compiled import INGRESS, compile_policy
from sampan.network.policies.enforcer import POLICIES, EnforcerSettings, PolicyEnforcer
from tests.support.worlds.small_api import SmallApi

RANGES = (("10.96.0.0/12",), ("10.244.0.0/16",))
ADDRESSES = {"hostile": "10.244.0.5", "other": "10.244.0.6"}
PODS_PEER: list[Obj] = [{"podSelector": {}}]


def _block(number: int, *excepts: str) -> Obj:
    where = f"{number >> 8 & 255}.{number & 255}"
    more = {"except": [f"10.{where}.{each}" for each in excepts]} if excepts else {}
    return {"ipBlock": {"cidr": f"10.{where}.0/24", **more}}


def _ports(count: int) -> list[Obj]:
    return [{"port": 2 * number + 1} for number in range(count)]


def _each(count: int, make: Callable[[int], Obj]) -> list[Obj]:
    return [make(number) for number in range(count)]


SHAPES: dict[str, Callable[[], Obj]] = {
    "rules by peers and names of ports":
        lambda: {"egress": _each(8_000, lambda k: {
            "to": PODS_PEER, "ports": [{"port": f"n{k}"}]})},
    "rules by peers and ports":
        lambda: {"ingress": _each(15_000, lambda k: {
            "from": PODS_PEER, "ports": [{"port": k + 1}]})},
    "blocks and ports":
        lambda: {"ingress": [{"from": _each(15_000, _block), "ports": _ports(30_000)}]},
    "blocks with exceptions and ports":
        lambda: {"ingress": [{
            "from": _each(5_000, lambda k: _block(k, "4/30", "16/30")), "ports": _ports(30_000)}]},
    "ports": lambda: {"ingress": [{"ports": _ports(32_000)}]},
    "rules by block": lambda: {"ingress": _each(20_000, lambda k: {"from": [_block(k)]})},
    "many policies": lambda: {"ingress": _each(300, lambda k: {"from": PODS_PEER})},
    "one that is refused": lambda: {"ingress": [{"from": PODS_PEER}]},
}  # fmt: skip
COUNTS = {"many policies": 20}


def main() -> int:
    data_dir, shape = sys.argv[1:]
    print(json.dumps(asyncio.run(_run(Path(data_dir), shape))))
    return 0


async def _run(data_dir: Path, shape: str) -> Obj:
    network = cni.set_up(data_dir, *RANGES)
    table = cni.nft_table(network)
    api, tasks = SmallApi(SystemClock()), Tasks("policies")
    informers = Informers(api, clock=SystemClock())
    enforcer = PolicyEnforcer(
        EnforcerSettings(table, "n1", network.families), informers, SystemClock(), Metrics()
    )
    for name in ADDRESSES:
        await api.create(NAMESPACES, {"metadata": {"name": name}})
    informers.start()
    tasks.supervise("enforcer", enforcer.run)
    await enforcer.ready.wait()
    hostile = [
        _policy("hostile", f"p{number}", SHAPES[shape]()) for number in range(COUNTS.get(shape, 1))
    ]
    if shape == "one that is refused":
        # Something else of that name is in its way, as what another version left might be.
        name = ruleset.peers_name(compile_policy(hostile[0]), INGRESS, 0)
        nft.run(f"add set ip {table} {name} {{ type inet_service; }}\n")
    before = _system_seconds()
    for policy in hostile:
        await _create(api, policy)
    await _create(api, _policy("other", "p", {"ingress": [{"from": PODS_PEER}]}))
    admitted = {}
    for name, address in ADDRESSES.items():
        await api.create(PODS, {"metadata": {"name": "p", "namespace": name}, "spec": {
            "nodeName": "n1"}}, name)  # fmt: skip
        async with asyncio.timeout(200):
            while not await enforcer.admit(name, "p", (address,)):
                pass  # it does not start before
        admitted[name] = True
    used = _system_seconds() - before
    for number in range(3):  # others' policies come, and say nothing of these once more
        known = len(enforcer.in_force)
        await _create(api, _policy("other", f"more{number}", {"ingress": []}))
        async with asyncio.timeout(100):
            while len(enforcer.in_force) == known:
                await asyncio.sleep(0.01)
    isolated = {name: _is_isolated(table, address) for name, address in ADDRESSES.items()}
    sets = len(nft_sets(table))
    for policy in hostile:
        assert POLICIES is not None
        await api.delete(POLICIES, "hostile", policy["metadata"]["name"])
    async with asyncio.timeout(100):
        while len(nft_sets(table)) > 1:
            await asyncio.sleep(0.05)
    await tasks.stop()
    await informers.stop()
    cni.tear_down(data_dir)
    return {"admitted": admitted, "isolated": isolated, "sets": sets, "system_seconds": used}


def _policy(namespace: str, name: str, spec: Obj) -> Obj:
    types = ["Ingress", "Egress"] if "egress" in spec else ["Ingress"]
    return {
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"podSelector": {}, "policyTypes": types, **spec},
    }


async def _create(api: SmallApi, policy: Obj) -> None:
    assert POLICIES is not None
    await api.create(POLICIES, policy, policy["metadata"]["namespace"])


def _is_isolated(table: str, address: str) -> bool:
    netfilter = Netfilter("ip", table)
    try:
        shape = ruleset.shape_of("ip", ruleset.MAPS[INGRESS])
        return any(key == (address,) for key, _ in netfilter.elements(shape))
    finally:
        netfilter.close()


def nft_sets(table: str) -> list[str]:
    """Those of policies."""
    netfilter = Netfilter("ip", table)
    try:
        return [
            name
            for name in netfilter.sets()
            if name.startswith(ruleset.PREFIX) and name not in ruleset.VERDICTS
        ]
    finally:
        netfilter.close()


def _system_seconds() -> float:
    """Of the kernel, for us and for `nft`."""
    whose = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(resource.getrusage(each).ru_stime for each in whose)


if __name__ == "__main__":
    sys.exit(main())
