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
