from sampan.api.resources import DAEMON_SETS, PODS
from sampan.client.indexer import Cache
from sampan.client.label_index import SELECTOR, by_selector
from sampan.controllers.workloads.adoption import controllers_of, may_adopt

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


def owned(kind, name, *, controller=True, uid="u"):
    reference = {"kind": kind, "name": name, "uid": uid, "controller": controller}
    return {"metadata": {"namespace": "ns", "name": "p", "ownerReferences": [reference]}}


def test_a_pod_concerns_the_controller_that_has_it_and_the_one_that_had_it():
    bare = {"metadata": {"namespace": "ns", "name": "p"}}
    one, other = owned("ReplicaSet", "one"), owned("ReplicaSet", "other")
    assert controllers_of("ReplicaSet", None, one) == {"ns/one"}
    assert controllers_of("ReplicaSet", one, one) == {"ns/one"}
    assert controllers_of("ReplicaSet", one, other) == {"ns/one", "ns/other"}
    assert controllers_of("ReplicaSet", one, bare) == {"ns/one"}
    assert controllers_of("ReplicaSet", one, None) == {"ns/one"}
    assert controllers_of("Job", one, other) == set()
    assert controllers_of("ReplicaSet", bare, owned("ReplicaSet", "one", controller=False)) == set()
