"""The Static memory policy: what the original gave to the same pods on the same machines."""

import gzip
import json
from pathlib import Path

import pytest

from sampan.kubelet.resource_managers import memory_policy as policy
from sampan.kubelet.resource_managers.machine_topology import NumaMemory
from sampan.kubelet.resource_managers.memory_manager import initial_nodes
from sampan.kubelet.resource_managers.memory_policy import NotEnoughMemory
from sampan.kubelet.resource_managers.memory_state import MemoryState, checked
from sampan.kubelet.resource_managers.numa import Hint, bits_of, mask_of

RECORDED = Path(__file__).parent / "recorded" / "memory_manager_v1.35.8.jsonl.gz"


def container(said, *, burstable):
    amounts = {"cpu": "1", "memory": said["memory"]}
    if said.get("huge"):
        amounts["hugepages-2Mi"] = said["huge"]
    resources = {"requests": amounts} if burstable else {"requests": amounts, "limits": amounts}
    return {"name": said["name"], "resources": resources} | (
        {"restartPolicy": "Always"} if said.get("sidecar") else {}
    )


def pod_of(said):
    burstable = said.get("burstable", False)
    kinds = {"initContainers": said.get("init"), "containers": said.get("containers")}
    spec = {
        kind: [container(item, burstable=burstable) for item in items]
        for kind, items in kinds.items()
        if items
    }
    return {"metadata": {"uid": said["pod"], "name": said["pod"]}, "spec": spec}


def same_hints(op, found):
    said = {
        name: [(item["mask"], item["preferred"]) for item in items]
        for name, items in (op["hints"] or {}).items()
    }
    assert {
        name: [(bits_of(hint.mask), hint.preferred) for hint in items]
        for name, items in found.items()
    } == said, op


def same_machine(op, nodes):
    assert {
        str(number): {
            "numberOfAssignments": node.assignments,
            "memoryMap": {
                name: {
                    "total": table.total, "systemReserved": table.system_reserved,
                    "allocatable": table.allocatable, "reserved": table.reserved,
                    "free": table.free,
                }
                for name, table in node.tables.items()
            },
            "cells": list(node.cells),
        }
        for number, node in nodes.items()
    } == op["machine"], op  # fmt: skip


@pytest.mark.slow
def test_the_original_gives_memory_of_the_same_nodes():
    """[H5] Random machines and pods: hints, blocks, errors and what is left where."""
    for line in gzip.decompress(RECORDED.read_bytes()).decode().splitlines():
        said = json.loads(line)
        with_pages = "hugepages-2Mi" in line
        state = MemoryState(initial_nodes(
            {
                node["id"]: NumaMemory(
                    node["memory"], {"2Mi": node["pages"] << 21} if with_pages else {}
                )
                for node in said["nodes"]
            },
            {node["id"]: {"memory": node["reserved"]} for node in said["nodes"]},
        ))  # fmt: skip
        initial, pods, reusable = state.nodes, {}, ("", {})
        for op in said["ops"]:
            name = op["pod"]
            mine = reusable[1] if reusable[0] == name else {}
            if op["op"] == "remove":
                state = policy.without_pod(state, name)
            elif op["op"] == "pod":
                pods[name] = pod_of(op)
                same_hints(op, policy.pod_hints(state, pods[name], mine))
                continue
            else:
                pod = pods[name]
                every = [*pod["spec"].get("initContainers", ()), *pod["spec"]["containers"]]
                [wanted] = [item for item in every if item["name"] == op["container"]]
                same_hints(op, policy.container_hints(state, pod, wanted, mine))
                nodes = op.get("affinity")
                hint = Hint(mask_of(nodes) if nodes else None, op.get("preferred", False))
                if "error" in op:
                    with pytest.raises(NotEnoughMemory) as refused:
                        policy.allocated(state, pod, wanted, hint, mine)
                    assert str(refused.value) == op["error"], op
                elif policy.takes_part(pod):
                    given = policy.allocated(state, pod, wanted, hint, mine)
                    state, reusable = given.state, (name, given.reusable)
                blocks = [
                    {"numaAffinity": list(block.nodes), "type": block.resource, "size": block.size}
                    for block in sorted(state.of(name, op["container"]), key=lambda b: b.resource)
                ]
                if "error" not in op:
                    assert blocks == (op.get("blocks") or []), op
            same_machine(op, state.nodes)
            checked(state, initial)
