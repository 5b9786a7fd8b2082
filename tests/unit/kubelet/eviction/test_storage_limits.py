"""Limits of local storage, and who exceeds them [N18]."""

from sampan.kubelet.eviction.storage_limits import LocalStorage, has_storage_limits, storage_excess

LIMITED = {
    "spec": {
        "containers": [
            {"name": "c", "resources": {"limits": {"ephemeral-storage": "1Mi"}}},
            {"name": "d", "resources": {"limits": {"ephemeral-storage": "3Mi"}}},
        ],
        "volumes": [
            {"name": "small", "emptyDir": {"sizeLimit": "1Ki"}},
            {"name": "ram", "emptyDir": {"medium": "Memory", "sizeLimit": "9Mi"}},
            {"name": "free", "emptyDir": {}},
        ],
    }
}
MB = 1 << 20


def excess(volumes=None, containers=None):
    found = storage_excess(LIMITED, LocalStorage(volumes or {}, containers or {}))
    return (found.signal, found.message) if found else None


def test_only_pods_with_limits_are_measured():
    assert has_storage_limits(LIMITED)
    assert not has_storage_limits({"spec": {"containers": [{"name": "c"}]}})


def test_a_pod_that_keeps_its_limits_stays():
    assert excess({"small": 1000, "ram": 9 * MB, "free": MB}, {"c": MB, "d": MB}) is None


def test_each_limit_has_its_words():
    assert excess({"small": 2000}) == (
        "emptydirfs.limit", 'Usage of EmptyDir volume "small" exceeds the limit "1Ki". ',
    )  # fmt: skip
    assert excess({"ram": 10 * MB}) == (
        "emptydirfs.limit", 'Usage of EmptyDir volume "ram" exceeds the limit "9Mi". ',
    )  # fmt: skip
    assert excess({"free": 3 * MB}, {"c": MB, "d": MB}) == (
        "ephemeralpodfs.limit",
        "Pod ephemeral local storage usage exceeds the total limit of containers 4Mi. ",
    )
    assert excess({}, {"c": 2 * MB}) == (
        "ephemeralcontainerfs.limit",
        'Container c exceeded its local ephemeral storage limit "1Mi". ',
    )
