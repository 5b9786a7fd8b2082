from sampan.api.rules.storage import class_name_of, class_named, default_class, waits_for_consumer


def storage_class(name, created="2026-01-01T00:00:00Z", **marks):
    return {"metadata": {"name": name, "creationTimestamp": created, "annotations": marks}}


DEFAULT = {"storageclass.kubernetes.io/is-default-class": "true"}


def test_a_claim_without_a_word_differs_from_one_that_wants_no_class():
    assert class_named({"spec": {}}) is None
    assert class_named({"spec": {"storageClassName": ""}}) == ""
    assert class_name_of({"spec": {}}) == ""


def test_the_old_annotation_wins_over_the_field():
    claim = {
        "metadata": {"annotations": {"volume.beta.kubernetes.io/storage-class": "old"}},
        "spec": {"storageClassName": "new"},
    }
    assert class_name_of(claim) == "old"


def test_the_newest_default_class_is_the_default():
    old = storage_class("a", "2026-01-01T00:00:00Z", **DEFAULT)
    new = storage_class("b", "2026-01-02T00:00:00Z", **DEFAULT)
    twin = storage_class("c", "2026-01-02T00:00:00Z", **DEFAULT)
    assert default_class([old, twin, new, storage_class("d", "2027-01-01T00:00:00Z")]) is new
    assert default_class([storage_class("a")]) is None


def test_a_class_waits_only_where_it_says_so():
    assert waits_for_consumer({"volumeBindingMode": "WaitForFirstConsumer"})
    assert not waits_for_consumer({"volumeBindingMode": "Immediate"})
    assert not waits_for_consumer(None)
