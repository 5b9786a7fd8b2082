"""Pods of odd shapes, from a seed: what may go wrong between a start and a deletion.

Job: init containers, sidecars, commands that fail, hooks, probes, volumes, short graces.
"""

import random

from sampan.api.objects import Obj

_SLEEP, _TRAP = "sleep 1000", "trap exit TERM; while :; do sleep 0.05; done"
_COMMANDS = (
    _SLEEP, _TRAP, "exit 0", "exit 3", "sleep 0.2", "sleep 0.3; exit 1", "trap '' TERM; sleep 1000",
    "(sleep 1000 &) ; exec sleep 1000",
)  # fmt: skip
_HOOKS: tuple[Obj, ...] = (
    {"exec": {"command": ["true"]}},
    {"exec": {"command": ["false"]}},
    {"exec": {"command": ["sleep", "0.3"]}},
    {"httpGet": {"port": 1}},
    {"exec": {"command": ["/no/such/file"]}},
)


def odd_pod(name: str, image: str, rng: random.Random) -> Obj:
    spec: Obj = {
        "terminationGracePeriodSeconds": rng.choice([0, 1, 1, 2]),
        "restartPolicy": rng.choice(["Always", "OnFailure", "Never"]),
        "containers": [_container(f"c{n}", image, rng) for n in range(rng.choice([1, 1, 2]))],
    }
    inits = [_init(f"i{n}", image, rng) for n in range(rng.choice([0, 0, 1, 2]))]
    if inits:
        spec["initContainers"] = inits
    volumes = _volumes(rng)
    if volumes:
        spec["volumes"] = volumes
        mounts = [{"name": volume["name"], "mountPath": f"/{volume['name']}"} for volume in volumes]
        spec["containers"][0]["volumeMounts"] = mounts
    if rng.random() < 0.1:
        spec["hostNetwork"] = True
    if rng.random() < 0.5:
        spec["automountServiceAccountToken"] = False
    return {"metadata": {"name": name}, "spec": spec}


def _container(name: str, image: str, rng: random.Random) -> Obj:
    made = _base(name, image, rng.choice(_COMMANDS), rng)
    if rng.random() < 0.2:
        made["lifecycle"] = {rng.choice(["postStart", "preStop"]): rng.choice(_HOOKS)}
    if rng.random() < 0.1:
        kind = rng.choice(["livenessProbe", "readinessProbe", "startupProbe"])
        command = {"command": [rng.choice(["true", "false"])]}
        made[kind] = {"exec": command, "periodSeconds": 1, "failureThreshold": 1}
    return made


def _init(name: str, image: str, rng: random.Random) -> Obj:
    if rng.random() < 0.5:
        return {**_base(name, image, rng.choice([_SLEEP, _TRAP]), rng), "restartPolicy": "Always"}
    return _base(name, image, rng.choice(["true", "sleep 0.1", "exit 1", _SLEEP]), rng)


def _base(name: str, image: str, command: str, rng: random.Random) -> Obj:
    made: Obj = {"name": name, "image": image, "command": ["sh", "-c", command]}
    if rng.random() < 0.06:
        made["command"] = ["/no/such/file"]
    if rng.random() < 0.2:
        made["resources"] = {"limits": {"memory": "64Mi", "cpu": "200m"}}
    return made


def _volumes(rng: random.Random) -> list[Obj]:
    kinds: list[Obj] = [
        {"name": "disk", "emptyDir": {}},
        {"name": "memory", "emptyDir": {"medium": "Memory"}},
        {"name": "words", "configMap": {"name": "kube-root-ca.crt"}},
        {"name": "about", "downwardAPI": {"items": [
            {"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}]}},
    ]  # fmt: skip
    return rng.sample(kinds, rng.choice([0, 0, 1, 3]))
