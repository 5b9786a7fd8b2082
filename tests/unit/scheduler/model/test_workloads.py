from hypothesis import given
from hypothesis import strategies as st

from sampan.scheduler.model.pod_info import pod_info_of
from sampan.scheduler.model.pod_terms import selector_of, selects
from sampan.scheduler.model.workloads import NO_OWNER, Workloads

_labels = st.dictionaries(st.sampled_from(("app", "tier")), st.sampled_from("ab"))
KINDS = {"ReplicationController": "v1", "ReplicaSet": "apps/v1", "StatefulSet": "apps/v1"}


def pod(labels, kind="", api_version=""):
    meta = {"name": "p", "namespace": "default", "labels": labels}
    if kind:
        owner = {"kind": kind, "apiVersion": api_version, "name": "o", "controller": True}
        meta["ownerReferences"] = [owner]
    return {"metadata": meta, "spec": {"containers": [{"name": "c"}]}}


def selector_for(workloads, made):
    shape = pod_info_of(made).shape
    return workloads.selector_for(shape.namespace, shape.labels, shape.owner)


@given(
    st.lists(st.one_of(st.none(), _labels), max_size=3),
    _labels,
    st.sampled_from(("", *KINDS, "DaemonSet")),
    _labels,
    _labels,
)
def test_pods_belong_together_by_their_services_and_their_controller(
    services, labels, kind, of_controller, other
):
    """[S4] As upstream's DefaultSelector: every service whose selector they match, and their
    controller's own; against matching them one by one."""
    workloads = Workloads()
    for at, selector in enumerate(services):
        written = {"spec": {"selector": selector}}
        workloads.put_service(f"default/s{at}", written)
        workloads.put_service(f"elsewhere/s{at}", {"spec": {"selector": {"app": "a"}}})
    selector = of_controller if kind == "ReplicationController" else {"matchLabels": of_controller}
    workloads.put_controller(kind, "default/o", {"spec": {"selector": selector}})
    found = selector_for(workloads, pod(labels, kind, KINDS.get(kind, "apps/v1")))
    mine = [one for one in services if one and one.items() <= labels.items()]
    mine += [of_controller] if kind in KINDS and of_controller else []
    if not mine:
        assert found is None
    else:
        assert selects(found, other) == all(one.items() <= other.items() for one in mine)


def test_what_is_gone_counts_no_more():
    workloads, made = Workloads(), pod({"app": "a"}, "ReplicaSet", "apps/v1")
    service = {"spec": {"selector": {"app": "a"}}}
    workloads.put_service("default/s", service)
    workloads.put_controller("ReplicaSet", "default/o", {"spec": {"selector": {"matchLabels": {}}}})
    assert selector_for(workloads, made) == selector_of({"matchLabels": {"app": "a"}})
    workloads.put_service("default/s", None)
    assert selector_for(workloads, made) is None
    workloads.put_controller(
        "ReplicaSet", "default/o", {"spec": {"selector": {"matchLabels": {"app": "a"}}}}
    )
    assert selector_for(workloads, made) == selector_of({"matchLabels": {"app": "a"}})
    workloads.put_controller("ReplicaSet", "default/o", None)
    assert selector_for(workloads, made) is None


def test_an_owner_of_another_group_is_none():
    assert pod_info_of(pod({}, "ReplicaSet", "example.com/v1")).shape.owner == NO_OWNER
