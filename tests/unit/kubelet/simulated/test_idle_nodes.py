from sampan.api.objects import copy_of
from sampan.kubelet.simulated.idle_nodes import is_like

TIMES = {"lastHeartbeatTime": "2026-01-01T00:00:00Z", "lastTransitionTime": "2026-01-01T00:00:00Z"}


def node(name, address, status="True"):
    return {
        "metadata": {
            "name": name,
            "labels": {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux"},
            "annotations": {"note": "true"},
        },
        "status": {
            "addresses": [
                {"type": "InternalIP", "address": address}, {"type": "Hostname", "address": name},
            ],
            "capacity": {"cpu": "32"},
            "conditions": [{"type": "Ready", "status": status, "reason": "R", **TIMES}],
        },
    }  # fmt: skip


PATTERN = node("first", "10.0.0.1")


def test_another_name_other_addresses_and_other_times_are_like_it():
    other = node("second", "10.0.0.2")
    other["status"]["conditions"][0]["lastHeartbeatTime"] = "2027-01-01T00:00:00Z"
    other["metadata"]["labels"]["mine"] = "yes"
    other["spec"] = {"unschedulable": True}
    assert is_like(other, PATTERN, ["10.0.0.2"])


def test_whatever_its_agent_would_write_is_unlike():
    def unlike(change, addresses=("10.0.0.2",)):
        other = copy_of(node("second", "10.0.0.2"))
        change(other)
        return not is_like(other, PATTERN, addresses)

    assert unlike(lambda other: None, ["10.0.0.3"])
    assert unlike(lambda other: other["status"]["capacity"].update(cpu="16"))
    assert unlike(lambda other: other["status"].update(images=[{"names": ["a"]}]))
    assert unlike(lambda other: other["status"]["conditions"][0].update(status="Unknown"))
    assert unlike(lambda other: other["metadata"]["labels"].update({"kubernetes.io/os": "plan9"}))
    assert unlike(lambda other: other["metadata"]["labels"].pop("kubernetes.io/hostname"))
    assert unlike(lambda other: other["metadata"]["annotations"].clear())
    assert unlike(lambda other: other["metadata"].update(deletionTimestamp="2026-01-01T00:00:00Z"))


def test_its_images_are_its_pods():
    other = node("second", "10.0.0.2")
    other["status"]["images"] = [{"names": ["a"]}]
    assert is_like(other, PATTERN, ["10.0.0.2"], has_pods=True)
    other["status"]["capacity"]["cpu"] = "16"
    assert not is_like(other, PATTERN, ["10.0.0.2"], has_pods=True)
