from sampan.api.resources import DAEMON_SETS, PODS
from sampan.client.indexer import Cache
from sampan.client.label_index import SELECTOR, by_selector
from sampan.controllers.workloads.adoption import may_adopt

SET = {
    "metadata": {"name": "s", "namespace": "default", "uid": "u"},
    "spec": {"selector": {"matchLabels": {"a": "b"}}},
}


def caches(resource):
    assert resource in (DAEMON_SETS, PODS)
    cache = Cache({SELECTOR: by_selector})
    cache.put(SET)
    return cache


def pod(**meta):
    return {"metadata": {"name": "p", "namespace": "default", "labels": {"a": "b"}, **meta}}


def test_a_pod_that_nobody_has_wakes_those_that_match():
    assert list(may_adopt(caches, DAEMON_SETS, None, pod())) == ["default/s"]
    assert not list(may_adopt(caches, DAEMON_SETS, None, pod(labels={"a": "c"})))
    assert not list(may_adopt(caches, DAEMON_SETS, None, pod(namespace="other")))


def test_a_pod_that_goes_or_has_a_controller_wakes_nobody():
    owner = {"uid": "x", "controller": True}
    assert not list(may_adopt(caches, DAEMON_SETS, None, pod(ownerReferences=[owner])))
    assert not list(may_adopt(caches, DAEMON_SETS, None, pod(deletionTimestamp="now")))
    assert not list(may_adopt(caches, DAEMON_SETS, None, None))


def test_a_change_wakes_those_who_may_have_it_now_and_could_not_before():
    def woken(old, new):
        return list(may_adopt(caches, DAEMON_SETS, old, new))

    owned = pod(ownerReferences=[{"uid": "x", "controller": True}])
    assert woken(owned, pod()) == ["default/s"]
    assert woken(pod(labels={"a": "c"}), pod()) == ["default/s"]
    assert not woken(pod(), {**pod(), "status": {"phase": "Running"}})
