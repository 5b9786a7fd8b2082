"""[N14] As upstream's normalizeStatus."""

from sampan.kubelet.status.normalized import normalized


def ended(name, message):
    return {"name": name, "state": {"terminated": {"message": message}}, "lastState": {}}


def test_containers_are_told_by_name_and_init_containers_in_their_order():
    pod = {"spec": {"containers": [{}, {}], "initContainers": [{}, {}]}}
    told = normalized(
        pod,
        {
            "containerStatuses": [ended("zeta", ""), ended("alpha", "")],
            "ephemeralContainerStatuses": [ended("y", ""), ended("x", "")],
            "initContainerStatuses": [ended("b", ""), ended("a", "")],
        },
    )
    assert [item["name"] for item in told["containerStatuses"]] == ["alpha", "zeta"]
    assert [item["name"] for item in told["ephemeralContainerStatuses"]] == ["x", "y"]
    assert [item["name"] for item in told["initContainerStatuses"]] == ["b", "a"]


def test_each_container_has_its_share_of_what_a_pod_may_say():
    pod = {"spec": {"containers": [{}] * 5, "initContainers": [{}]}}
    said = "é" * 1500  # 3000 bytes of 2048
    shown = {"state": {}, "lastState": ended("", said)["state"], "name": "b"}
    told = normalized(pod, {"containerStatuses": [ended("a", said), shown]})
    first, second = told["containerStatuses"]
    assert first["state"]["terminated"]["message"] == "é" * 1024
    assert second["lastState"]["terminated"]["message"] == "é" * 1024
    alone = normalized({"spec": {"containers": [{}]}}, {"containerStatuses": [ended("a", said)]})
    assert alone["containerStatuses"][0]["state"]["terminated"]["message"] == said
