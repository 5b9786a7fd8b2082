import pytest

from sampan.scheduler.model.node_info import node_info_of
from sampan.scheduler.model.pod_info import image_name, pod_info_of, scheduler_of


def test_an_empty_node_and_an_empty_pod_are_rows_too():
    node = node_info_of({"metadata": {"name": "n"}})
    assert (node.name, node.allowed_pods, node.taints) == ("n", 0, frozenset())
    pod = pod_info_of({"metadata": {"name": "p", "namespace": "d", "uid": "u"}})
    assert (pod.key, pod.uid, pod.priority, pod.gates) == ("d/p", "u", 0, ())
    assert pod.shape.required is None


def test_pods_that_differ_only_in_name_have_equal_shapes():
    spec = {"containers": [{"name": "c", "image": "web"}], "nodeSelector": {"a": "b"}}
    one, other = ({"metadata": {"name": name, "uid": name}, "spec": spec} for name in "pq")
    assert pod_info_of(one).shape == pod_info_of(other).shape
    assert hash(pod_info_of(one).shape) == hash(pod_info_of(other).shape)


@pytest.mark.parametrize(
    ("written", "full"),
    [
        ("web", "web:latest"),
        ("web:1", "web:1"),
        ("host:5000/web", "host:5000/web:latest"),
        ("host:5000/web:1", "host:5000/web:1"),
    ],
)
def test_an_image_without_a_tag_is_the_latest(written, full):
    assert image_name(written) == full


def test_a_pod_that_names_no_scheduler_is_for_the_default_one():
    assert scheduler_of({"spec": {}}) == "default-scheduler"
    assert scheduler_of({"spec": {"schedulerName": "mine"}}) == "mine"


def test_the_claims_of_a_pod_are_named_ephemeral_ones_after_the_pod():
    volumes = [
        {"name": "a", "persistentVolumeClaim": {"claimName": "c"}},
        {"name": "b", "ephemeral": {}},
        {"name": "again", "persistentVolumeClaim": {"claimName": "c"}},
    ]
    pod = {"metadata": {"name": "p", "namespace": "x"}, "spec": {"volumes": volumes}}
    assert pod_info_of(pod).shape.claims == ("x/c", "x/p-b")
