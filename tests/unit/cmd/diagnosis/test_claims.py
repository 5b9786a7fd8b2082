"""A pod that waits for a volume is told what the volume waits for."""

import pytest

from sampan.cmd.diagnosis.claims import waiting_for_volumes

POD = {
    "metadata": {"name": "web", "namespace": "shop"},
    "spec": {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "disk"}}]},
}
LOCAL = {"kind": "StorageClass", "metadata": {"name": "local"}, "provisioner": "sampan.io/local"}
NODE = {"kind": "Node", "metadata": {"name": "two"}}
READY = {
    "kind": "Node",
    "metadata": {"name": "two", "annotations": {"sampan.io/local-volumes": "/v"}},
}


def claim(phase="Pending", name="local", node=""):
    notes = {"volume.kubernetes.io/selected-node": node} if node else {}
    meta = {"name": "disk", "namespace": "shop", "annotations": notes}
    spec = {"storageClassName": name} if name else {}
    return {
        "kind": "PersistentVolumeClaim",
        "metadata": meta,
        "spec": spec,
        "status": {"phase": phase},
    }


@pytest.mark.parametrize(
    ("objects", "said"),
    [
        ([], "claim disk does not exist"),
        ([claim("Bound")], None),
        ([claim(name="")], "has no class"),
        ([claim(name="fast")], "there is no StorageClass fast"),
        ([claim(), LOCAL], "sampan.io/local has to make a volume of class local."),
        ([claim(node="two"), LOCAL, NODE], "on node two, which keeps none"),
        ([claim(node="two"), LOCAL, READY], "on node two, and has not done so yet"),
    ],
)
def test_what_a_volume_waits_for(objects, said):
    lines = waiting_for_volumes(POD, objects)
    assert lines == [] if said is None else said in lines[0]


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        (
            "20Gi",
            "it asks for 20Gi, and of class fast there is room for 10Gi at most (where zone=b)",
        ),
        ("8Gi", "d.example.com has to make a volume of class fast."),
    ],
)
def test_a_claim_that_fits_nowhere_is_told_how_much_there_is(wanted, said):
    """[H1]"""
    asking = claim(name="fast")
    asking["spec"]["resources"] = {"requests": {"storage": wanted}}
    fast = {"kind": "StorageClass", "metadata": {"name": "fast"}, "provisioner": "d.example.com"}
    rooms = [
        {
            "kind": "CSIStorageCapacity",
            "storageClassName": name,
            "nodeTopology": {"matchLabels": {"zone": zone}},
            "capacity": size,
        }
        for name, zone, size in (
            ("fast", "a", "1Gi"), ("fast", "b", "10Gi"), ("other", "c", "1Ti"),
        )
    ]  # fmt: skip
    [line] = waiting_for_volumes(POD, [asking, fast, *rooms])
    assert said in line
