"""[N5] [N8] What the API shows of static pods."""

import pytest

from sampan.kubelet.pods.mirror import Make, Remove, mirror_of, next_action, shows

NODE = {"metadata": {"name": "n", "uid": "node-uid"}}


def static(uid="1"):
    return {
        "metadata": {
            "name": "web-n", "namespace": "default", "uid": uid, "labels": {"app": "web"},
            "annotations": {
                "kubernetes.io/config.hash": uid, "kubernetes.io/config.source": "file",
                "kubernetes.io/config.seen": "2023-11-14T22:13:20Z",
            },
        },
        "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]},
        "status": {"phase": "Running"},
    }  # fmt: skip


def mirror(uid="1", **meta):
    made = mirror_of(static(uid), NODE)
    made["metadata"] |= {"uid": "in-the-api", **meta}
    return made


def test_a_mirror_looks_like_its_pod_belongs_to_the_node_and_has_no_uid_of_its_own():
    made = mirror_of(static(), NODE)
    assert "uid" not in made["metadata"]
    assert "status" not in made
    assert made["spec"] == static()["spec"]
    assert made["metadata"]["annotations"]["kubernetes.io/config.mirror"] == "1"
    assert made["metadata"]["ownerReferences"] == [
        {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "node-uid", "controller": True}
    ]


def test_a_mirror_shows_one_version_only():
    assert shows(mirror("1"), static("1"))
    assert not shows(mirror("1"), static("2"))


DELETED = mirror(deletionTimestamp="2023-11-14T22:13:20Z")


@pytest.mark.parametrize(
    ("pod", "shown", "orphaned", "action"),
    [
        (None, None, True, None),
        (static(), None, False, Make(static())),
        (static(), mirror(), False, None),
        (static("2"), mirror(), False, Remove(mirror())),
        (static(), DELETED, False, Remove(DELETED)),
        (None, mirror(), False, None),
        (None, mirror(), True, Remove(mirror())),
    ],
    ids=["nothing", "new", "there", "stale", "deleted", "not all sources spoke", "orphan"],
)
def test_what_is_done_about_a_mirror(pod, shown, orphaned, action):
    assert next_action(pod, shown, orphaned) == action
