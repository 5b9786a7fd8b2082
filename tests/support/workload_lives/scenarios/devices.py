"""Devices: claims, templates, sharing, selectors, lists of alternatives, their ends."""

from typing import Any

from sampan.api.objects import Obj
from tests.support.workload_lives.manifests import deployment, made, pod
from tests.support.workload_lives.steps import (
    Life,
    Step,
    change_status,
    create,
    life,
    remove,
    wait,
)

_VERSION = "resource.k8s.io/v1"
_CLASS = "{life}.gpu"


def _class(name: str = _CLASS, *expressions: str) -> Obj:
    selectors = [{"cel": {"expression": one}} for one in expressions]
    own = {"cel": {"expression": 'device.driver == "{life}.example.com"'}}
    return made(_VERSION, "DeviceClass", name, {"selectors": [own, *selectors]})


def _device(name: str, **words: Any) -> Obj:
    attributes = {"model": {"string": "a"}, "index": {"int": int(name[-1])}}
    return {"name": name, "attributes": attributes, "capacity": {"memory": {"value": "8Gi"}},
            **words}  # fmt: skip


def _slice(node: str, *names: str, **spec: Any) -> Obj:
    where = {"nodeName": node} if node else {"allNodes": True}
    words = {
        "driver": "{life}.example.com", **where, "devices": [_device(name) for name in names],
        "pool": {"name": node or "all", "generation": 1, "resourceSliceCount": 1}, **spec,
    }  # fmt: skip
    return made(_VERSION, "ResourceSlice", f"{{life}}.{node or 'all'}", words)


def _exactly(name: str = "r", **words: Any) -> Obj:
    return {"name": name, "exactly": {"deviceClassName": _CLASS, **words}}


def _claim(name: str = "c", *requests: Obj, **devices: Any) -> Obj:
    words = {"devices": {"requests": list(requests or (_exactly(),)), **devices}}
    return made(_VERSION, "ResourceClaim", name, words)


def _template(*requests: Obj, name: str = "t") -> Obj:
    spec = {"devices": {"requests": list(requests or (_exactly(),))}}
    return made(_VERSION, "ResourceClaimTemplate", name, {"spec": spec})


def _user(name: str = "x", claim: str = "c", **words: Any) -> Obj:
    return pod(name, **_using(claim), **words)


def _using(claim: str) -> dict[str, Any]:
    containers = [{"name": "c", "image": "x", "resources": {"claims": [{"name": "d"}]}}]
    return {
        "containers": containers,
        "resourceClaims": [{"name": "d", "resourceClaimName": claim}],
    }


def _templated(name: str = "t") -> dict[str, Any]:
    return {**_using(""), "resourceClaims": [{"name": "d", "resourceClaimTemplateName": name}]}


def _life(*steps: Step) -> Life:
    return life(*steps, alone=True, places=True)


LIVES: dict[str, Life] = {
    "dra-claim": _life(
        create(_class(), _slice("n1", "gpu0", "gpu1")), wait(1), create(_claim(), _user()), wait(4)
    ),
    "dra-claim-comes-later": _life(
        create(_class(), _slice("n1", "gpu0")), wait(1), create(_user()), wait(3), create(_claim()),
        wait(4),
    ),
    "dra-template": _life(
        create(_class(), _slice("n1", "gpu0", "gpu1"), _template()), wait(1),
        create(pod("x", **_templated())), wait(5),
    ),
    "dra-template-pod-ends": _life(
        create(_class(), _slice("n1", "gpu0"), _template()), wait(1),
        create(pod("x", life="ok:2", restartPolicy="Never", **_templated())), wait(7),
    ),
    "dra-template-pod-deleted": _life(
        create(_class(), _slice("n1", "gpu0"), _template()), wait(1),
        create(pod("x", **_templated())), wait(4), remove("pods", "x"), wait(5),
    ),
    "dra-template-absent": _life(create(pod("x", **_templated("none"))), wait(4)),
    "dra-template-deployment": _life(
        create(_class(), _slice("n1", "gpu0", "gpu1"), _template()), wait(1),
        create(deployment(replicas=3, pod=_templated())), wait(6),
    ),
    "dra-class-absent": _life(
        create(_slice("n1", "gpu0")), wait(1), create(_claim(), _user()), wait(4), create(_class()),
        wait(4),
    ),
    "dra-no-devices": _life(
        create(_class()), wait(1), create(_claim(), _user()), wait(3),
        create(_slice("n1", "gpu0")), wait(5),
    ),
    "dra-shared": _life(
        create(_class(), _slice("n1", "gpu0")), wait(1),
        create(_claim(), _user("x"), _user("y")), wait(5),
    ),
    "dra-shared-one-goes": _life(
        create(_class(), _slice("n1", "gpu0")), wait(1),
        create(_claim(), _user("x"), _user("y")), wait(4), remove("pods", "x"), wait(4),
    ),
    "dra-taken": _life(
        create(_class(), _slice("n1", "gpu0")), wait(1), create(_claim("c"), _user("x")), wait(4),
        create(_claim("e"), _user("y", "e")), wait(4),
    ),
    "dra-taken-and-freed": _life(
        create(_class(), _slice("n1", "gpu0")), wait(1), create(_claim("c"), _user("x")), wait(4),
        create(_claim("e"), _user("y", "e")), wait(3), remove("pods", "x"), wait(6),
    ),
    "dra-claim-deleted-in-use": _life(
        create(_class(), _slice("n1", "gpu0")), wait(1), create(_claim(), _user()), wait(4),
        remove("resourceclaims", "c"), wait(2), remove("pods", "x"), wait(5),
    ),
    "dra-two-of-them": _life(
        create(_class(), _slice("n1", "gpu0"), _slice("n2", "gpu0", "gpu1")), wait(1),
        create(_claim("c", _exactly(count=2)), _user()), wait(4),
    ),
    "dra-too-many": _life(
        create(_class(), _slice("n1", "gpu0")), wait(1),
        create(_claim("c", _exactly(count=2)), _user()), wait(4),
    ),
    "dra-all": _life(
        create(_class(), _slice("n1", "gpu0", "gpu1", "gpu2")), wait(1),
        create(_claim("c", _exactly(allocationMode="All")), _user()), wait(4),
    ),
    "dra-selected": _life(
        create(_class(), _slice("n1", "gpu0", "gpu1", "gpu2")), wait(1),
        create(_claim("c", _exactly(selectors=[{"cel": {
            "expression": 'device.attributes["{life}.example.com"].index == 2'}}])), _user()),
        wait(4),
    ),
    "dra-selected-by-capacity": _life(
        create(_class(), _slice("n1", "gpu0")), wait(1),
        create(_claim("c", _exactly(selectors=[{"cel": {"expression":
            'device.capacity["{life}.example.com"].memory.compareTo(quantity("9Gi")) >= 0'}}])),
               _user()),
        wait(4),
    ),
    "dra-selector-fails": _life(
        create(_class(), _slice("n1", "gpu0")), wait(1),
        create(_claim("c", _exactly(selectors=[{"cel": {
            "expression": 'device.attributes["{life}.example.com"].none == "x"'}}])), _user()),
        wait(4),
    ),
    "dra-first-available": _life(
        create(_class(), _slice("n1", "gpu0")), wait(1),
        create(_claim("c", {"name": "r", "firstAvailable": [
            {"name": "two", "deviceClassName": _CLASS, "count": 2},
            {"name": "one", "deviceClassName": _CLASS, "count": 1}]}), _user()),
        wait(4),
    ),
    "dra-matched": _life(
        create(_class(), _slice("n1", "gpu0", "gpu1")), wait(1),
        create(_claim("c", _exactly("r"), _exactly("q"), constraints=[{
            "requests": ["r", "q"], "matchAttribute": "{life}.example.com/model"}]), _user()),
        wait(4),
    ),
    "dra-mismatched": _life(
        create(_class(), _slice("n1", "gpu0", "gpu1")), wait(1),
        create(_claim("c", _exactly("r"), _exactly("q"), constraints=[{
            "requests": ["r", "q"], "matchAttribute": "{life}.example.com/index"}]), _user()),
        wait(4),
    ),
    "dra-configured": _life(
        create(_class(), _slice("n1", "gpu0")), wait(1),
        create(_claim("c", config=[{"requests": ["r"], "opaque": {
            "driver": "{life}.example.com", "parameters": {"a": 1}}}]), _user()),
        wait(4),
    ),
    "dra-on-any-node": _life(
        create(_class(), _slice("", "gpu0")), wait(1), create(_claim(), _user()), wait(4)
    ),
    "dra-on-selected-nodes": _life(
        create(_class(), _slice("n1", "gpu0", nodeName=None, nodeSelector={"nodeSelectorTerms": [
            {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["z2"]}]}]})),
        wait(1), create(_claim(), _user()), wait(4),
    ),
    "dra-wrong-node": _life(
        create(_class(), _slice("n1", "gpu0")), wait(1),
        create(_claim(), _user(nodeSelector={"zone": "z2"})), wait(4),
    ),
    "dra-two-claims": _life(
        create(_class(), _slice("n1", "gpu0"), _slice("n2", "gpu0", "gpu1")), wait(1),
        create(_claim("c"), _claim("e"), pod("x", resourceClaims=[
            {"name": "d", "resourceClaimName": "c"}, {"name": "f", "resourceClaimName": "e"}],
            containers=[{"name": "c", "image": "x", "resources": {
                "claims": [{"name": "d"}, {"name": "f"}]}}])),
        wait(4),
    ),
    "dra-incomplete-pool": _life(
        create(_class(), _slice("n1", "gpu0", pool={
            "name": "n1", "generation": 1, "resourceSliceCount": 2})),
        wait(1), create(_claim(), _user()), wait(4),
    ),
    "dra-tainted": _life(
        create(_class(), _slice("n1", "gpu0", devices=[_device("gpu0", taints=[
            {"key": "k", "effect": "NoSchedule"}])])),
        wait(1), create(_claim(), _user()), wait(4),
    ),
    "dra-preempts": _life(
        create(made("scheduling.k8s.io/v1", "PriorityClass", "{life}.high", None, value=1000)),
        create(_class(), _slice("n1", "gpu0")), wait(1), create(_claim("c"), _user("x")), wait(4),
        create(_claim("e"), _user("y", "e", priorityClassName="{life}.high")), wait(5),
    ),
    "dra-finished-frees": _life(
        create(_class(), _slice("n1", "gpu0")), wait(1),
        create(_claim(), _user(life="ok:2", restartPolicy="Never")), wait(7),
    ),
    "dra-allocated-by-hand": _life(
        create(_class(), _slice("n1", "gpu0"), _claim()), wait(1),
        change_status("resourceclaims", "c", allocation={"devices": {"results": [{
            "request": "r", "driver": "{life}.example.com", "pool": "n1", "device": "gpu0"}]}}),
        wait(4),
    ),
    "dra-claim-lost": _life(
        create(_class(), _template()), wait(1), create(pod("x", **_templated())), wait(3),
        remove("resourceclaims", "*#0"), wait(3),
    ),
    "dra-admin": _life(
        create(_class(), _slice("n1", "gpu0")), wait(1),
        create(_claim("c", _exactly(adminAccess=True)), _user()), wait(4),
    ),
    "dra-quota": _life(
        create(_class(), _slice("n1", "gpu0", "gpu1"),
               made("v1", "ResourceQuota", "q", {"hard": {
                   "{life}.gpu.deviceclass.resource.k8s.io/devices": "1"}})),
        wait(2), create(_claim("c", _exactly(count=2))), create(_claim("e")), wait(3),
    ),
}  # fmt: skip
