from sampan.api.resources import CONFIG_MAPS, PODS, Resource
from sampan.controllers.cluster.resource_quota import RECOUNT_SECONDS, plan


def quota(hard, status=None):
    meta = {"name": "q", "namespace": "default", "uid": "u"}
    return {"metadata": meta, "spec": {"hard": hard}, "status": status or {}}


def pod(cpu, phase="Running"):
    container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
    return {
        "metadata": {"name": "p"},
        "spec": {"containers": [container]},
        "status": {"phase": phase},
    }


def test_what_is_limited_is_counted_and_nothing_else():
    hard = {"requests.cpu": "2", "pods": "5", "configmaps": "1", "limits.cpu": "4"}
    objects = {PODS: [pod("500m"), pod("1", "Succeeded"), pod("250m")], CONFIG_MAPS: [{}]}
    [patch] = plan(quota(hard), objects, recount=False).actions
    assert patch.patch["status"] == {
        "hard": hard,
        "used": {"requests.cpu": "750m", "pods": "2", "configmaps": "1", "limits.cpu": "0"},
    }


def test_counting_again_changes_nothing():
    status = {"hard": {"pods": "5"}, "used": {"pods": "0"}}
    assert not plan(quota({"pods": "5"}, status), {}, recount=False).actions
    assert plan(quota({"pods": "5"}, status), {}, recount=True).again_seconds == RECOUNT_SECONDS


def test_a_limit_that_was_taken_away_is_no_longer_counted():
    status = {"hard": {"pods": "5", "secrets": "1"}, "used": {"pods": "0", "secrets": "0"}}
    [patch] = plan(quota({"pods": "5"}, status), {}, recount=False).actions
    assert patch.patch["status"] == {"hard": {"secrets": None}, "used": {"secrets": None}}


def test_what_cannot_be_counted_now_stays_as_it_was():
    hard = {"pods": "5", "requests.cpu": "1", "configmaps": "1", "count/widgets.example.com": "2"}
    status = {"hard": hard, "used": {"pods": "3", "requests.cpu": "2", "configmaps": "0"}}
    widgets = Resource("example.com", "v1", "Widget", "widgets")
    planned = plan(quota(hard, status), {CONFIG_MAPS: [{}]}, False, [PODS, widgets])
    [patch] = planned.actions
    assert patch.patch["status"] == {"used": {"configmaps": "1"}}
    assert planned.again_seconds == RECOUNT_SECONDS
