from sampan.api.resources import CONFIG_MAPS, PODS, Resource
from sampan.api.rules.quota_ledger import QuotaLedger
from sampan.controllers.cluster.resource_quota import RECOUNT_SECONDS, plan


def quota(hard, status=None):
    meta = {"name": "q", "namespace": "default", "uid": "u"}
    return {"metadata": meta, "spec": {"hard": hard}, "status": status or {}}


def pod(cpu, phase="Running", name="p"):
    container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
    return {
        "metadata": {"name": name},
        "spec": {"containers": [container]},
        "status": {"phase": phase},
    }


def planned(obj, objects, recount=False, unknown=()):
    ledger = QuotaLedger()
    usages = [ledger.used(obj, "default", kind, lambda items=items: items)
              for kind, items in objects.items()]  # fmt: skip
    return plan(obj, usages, recount, unknown)


def test_what_is_limited_is_counted_and_nothing_else():
    hard = {"requests.cpu": "2", "pods": "5", "configmaps": "1", "limits.cpu": "4"}
    objects = {
        PODS: [pod("500m", name="a"), pod("1", "Succeeded", "b"), pod("250m", name="c")],
        CONFIG_MAPS: [{}],
    }
    [patch] = planned(quota(hard), objects).actions
    assert patch.patch["status"] == {
        "hard": hard,
        "used": {"requests.cpu": "750m", "pods": "2", "configmaps": "1", "limits.cpu": "0"},
    }


def test_counting_again_changes_nothing():
    status = {"hard": {"pods": "5"}, "used": {"pods": "0"}}
    assert not planned(quota({"pods": "5"}, status), {}).actions
    assert planned(quota({"pods": "5"}, status), {}, recount=True).again_seconds == RECOUNT_SECONDS


def test_a_limit_that_was_taken_away_is_no_longer_counted():
    status = {"hard": {"pods": "5", "secrets": "1"}, "used": {"pods": "0", "secrets": "0"}}
    [patch] = planned(quota({"pods": "5"}, status), {}).actions
    assert patch.patch["status"] == {"hard": {"secrets": None}, "used": {"secrets": None}}


def test_what_cannot_be_counted_now_stays_as_it_was():
    hard = {"pods": "5", "requests.cpu": "1", "configmaps": "1", "count/widgets.example.com": "2"}
    status = {"hard": hard, "used": {"pods": "3", "requests.cpu": "2", "configmaps": "0"}}
    widgets = Resource("example.com", "v1", "Widget", "widgets")
    found = planned(quota(hard, status), {CONFIG_MAPS: [{}]}, unknown=[PODS, widgets])
    [patch] = found.actions
    assert patch.patch["status"] == {"used": {"configmaps": "1"}}
    assert found.again_seconds == RECOUNT_SECONDS
