"""[N2] every line of the merge, as a playbook."""

from sampan.api.objects import copy_of, uid_of
from sampan.kubelet.pods.pod_config import PodOperation, SourcePods, merge


def pod(uid="1", **changes):
    made = {
        "metadata": {"name": f"pod-{uid}", "uid": uid, "creationTimestamp": f"2026-01-0{uid}"},
        "spec": {"containers": []},
        "status": {"phase": "Pending"},
    }
    for path, value in changes.items():
        made["metadata" if path in ("labels", "annotations", "deletionTimestamp") else path] = (
            {**made["metadata"], path: value}
            if path in ("labels", "annotations", "deletionTimestamp")
            else value
        )
    return made


def kinds(merged):
    return [(change.kind, uid_of(change.pod)) for change in merged.changes]


def after(*sets):
    wanted = SourcePods("api")
    merged = None
    for number, pods in enumerate(sets):
        merged = merge(wanted, pods, f"moment {number}")
        wanted = merged.wanted
    return merged


def test_an_empty_first_set_makes_the_source_ready():
    assert not SourcePods("api").ready
    assert after([]).wanted.ready


def test_a_new_uid_is_added_oldest_first():
    assert kinds(after([pod("3"), pod("1"), pod("2")])) == [
        (PodOperation.ADD, "1"),
        (PodOperation.ADD, "2"),
        (PodOperation.ADD, "3"),
    ]


def test_the_same_set_changes_nothing():
    assert kinds(after([pod()], [copy_of(pod())])) == []


def test_a_changed_spec_label_or_annotation_is_an_update():
    for change in ({"spec": {"x": 1}}, {"labels": {"a": "b"}}, {"annotations": {"a": "b"}}):
        assert kinds(after([pod()], [pod(**change)])) == [(PodOperation.UPDATE, "1")]


def test_a_deletion_timestamp_is_a_delete():
    assert kinds(after([pod()], [pod(deletionTimestamp="t")])) == [(PodOperation.DELETE, "1")]


def test_a_further_change_of_what_is_being_deleted_is_a_delete_again():
    first, second = pod(deletionTimestamp="t"), pod(deletionTimestamp="t", spec={"x": 1})
    assert kinds(after([first], [second])) == [(PodOperation.DELETE, "1")]


def test_a_changed_status_alone_is_a_reconcile():
    assert kinds(after([pod()], [pod(status={"phase": "Running"})])) == [
        (PodOperation.RECONCILE, "1")
    ]


def test_what_is_gone_is_removed_before_others_are_added():
    assert kinds(after([pod("1")], [pod("2")])) == [
        (PodOperation.REMOVE, "1"),
        (PodOperation.ADD, "2"),
    ]


def test_a_pod_recreated_under_its_name_is_a_remove_and_an_add():
    old, new = pod("1"), pod("2")
    new["metadata"]["name"] = "pod-1"
    assert kinds(after([old], [new])) == [(PodOperation.REMOVE, "1"), (PodOperation.ADD, "2")]


def test_duplicates_and_pods_without_identity_are_refused():
    merged = after([pod("1"), pod("1"), {"metadata": {"name": "x"}}])
    assert kinds(merged) == [(PodOperation.ADD, "1")]
    assert len(merged.refused) == 2


def test_first_seen_time_and_source_are_kept_as_annotations_and_the_source_is_not_touched():
    given = pod()
    merged = after([given], [pod(labels={"a": "b"})])
    notes = merged.changes[0].pod["metadata"]["annotations"]
    assert notes == {"kubernetes.io/config.seen": "moment 0", "kubernetes.io/config.source": "api"}
    assert "annotations" not in given["metadata"]
