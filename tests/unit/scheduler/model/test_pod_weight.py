"""scheduler/model/pod_weight.py: what is long of the pods that validation lets through."""

import pytest

from sampan.scheduler.model.pod_weight import LONG, is_long


def spec(**parts):
    return {"metadata": {}, "spec": {"containers": [{"name": "c"}], **parts}}


EXPRESSION = {"key": "k", "operator": "In", "values": ["a", "b", "c"]}
TERM = {"labelSelector": {"matchExpressions": [EXPRESSION]}, "topologyKey": "zone"}
NODE_TERM = {"matchExpressions": [EXPRESSION]}
RESOURCES = {"requests": {f"example.com/r{at}": "1" for at in range(LONG)}}


@pytest.mark.parametrize(
    "pod",
    [
        spec(tolerations=[{"operator": "Exists"}] * LONG),
        spec(volumes=[{"name": "v"}] * LONG),
        spec(containers=[{"name": "c"}] * (LONG + 1)),
        spec(containers=[{"name": "c", "resources": RESOURCES}]),
        spec(initContainers=[{"name": "c", "ports": [{"containerPort": 1}] * LONG}]),
        spec(nodeSelector={f"k{at}": "v" for at in range(LONG)}),
        spec(affinity={"podAntiAffinity": {"requiredDuringScheduling": [TERM] * LONG}}),
        spec(affinity={"nodeAffinity": {"terms": [NODE_TERM] * LONG}}),
        spec(
            topologySpreadConstraints=[{"labelSelector": {"matchExpressions": [EXPRESSION] * LONG}}]
        ),
        spec(volumes=[{}]) | {"metadata": {"labels": {f"k{at}": "" for at in range(LONG)}}},
    ],
)
def test_whatever_there_is_much_of_makes_it_long(pod):
    assert is_long(pod)


@pytest.mark.parametrize(
    "pod",
    [
        {},
        spec(),
        spec(
            containers=[{"name": str(at), "ports": [{"containerPort": 1}] * 3} for at in range(8)],
            volumes=[{"name": "v"}] * 30,
            tolerations=[{"operator": "Exists"}] * 12,
            affinity={"nodeAffinity": {"terms": [NODE_TERM] * 5}, "podAffinity": [TERM] * 5},
        ),
    ],
)
def test_a_pod_as_people_write_them_is_not_long(pod):
    assert not is_long(pod)
