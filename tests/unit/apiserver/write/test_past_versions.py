"""Versions that are served no more."""

from sampan.apiserver.write.past_versions import is_past_version, with_past_defaults


def test_old_workloads_are_still_understood():
    assert is_past_version("apps/v1beta1", "Deployment")
    assert not is_past_version("apps/v1beta1", "DaemonSet")
    assert not is_past_version("apps/v9", "Deployment")


def test_the_oldest_gave_workloads_the_labels_of_their_template():
    obj = {"metadata": {"name": "d"}, "spec": {"template": {"metadata": {"labels": {"a": "b"}}}}}
    assert with_past_defaults("apps/v1beta1", obj)["metadata"]["labels"] == {"a": "b"}
    assert with_past_defaults("apps/v1beta2", obj) == obj
    own = {**obj, "metadata": {"name": "d", "labels": {"c": "d"}}}
    assert with_past_defaults("apps/v1beta1", own) == own
