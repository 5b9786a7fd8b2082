"""Lives of workloads, step by step, beside those on record of an original v1.35 control plane.

Kept differences are listed with their reason; docs/compatibility.md says the same to users.
"""

from pathlib import Path

import pytest

from sampan.api import features
from sampan.api.features import Release
from tests.support.workload_lives.in_process import lived
from tests.support.workload_lives.recordings import differences, read
from tests.support.workload_lives.scenarios.all_lives import LIVES

PLACE = Path(__file__).parent / "recorded"
RECORDED = read(PLACE / "workload_lives.json.gz")
# Of the lives of Jobs, StatefulSets and Deployments, those that were others on an original v1.37.
OTHER_LIVES = read(PLACE / "workload_lives_v1.37.json.gz")
# By life: the paths that differ on purpose, and why.
_SOONER = "the original does it, too, when something else has it look again"
_TRIES = "events.Warning | Pod | FailedScheduling"
_ONCE_MORE = "the original tries once more while a taint or a victim is on its way"
_JOINS = "nodes of ours join by the bindings that kubeadm makes"
_HINTS = "events.Warning | Service | TopologyAwareHintsDisabled"
KEPT: dict[str, dict[str, str]] = {
    "cron-keeps-none": {
        "events.Normal | CronJob | MissingJob": "the original misses a Job that it has deleted"
    },
    "csr-of-a-bootstrap": {"answers[0]": _JOINS, "final.certificatesigningrequests": _JOINS},
    "csr-of-a-node": {"final.certificatesigningrequests": _JOINS},
    "dra-claim-lost": {"final.resourceclaims": _SOONER},
    "ds-node-comes": {_TRIES: _ONCE_MORE},
    "ds-node-comes-and-goes": {"final.daemonsets": _SOONER},
    "endpoints-of-pods-by-hand": {"final.endpoints": _SOONER},
    "hints-auto": {_HINTS: "told of pods that come one by one"},
    "hints-auto-and-distribution": {_HINTS: "told of pods that come one by one"},
    "node-comes": {_TRIES: _ONCE_MORE},
    "node-cordoned": {_TRIES: _ONCE_MORE},
    "node-cordoned-and-back": {_TRIES: _ONCE_MORE},
    "node-out-of-service": {
        "events.Normal | Pod | TaintManagerEviction": "the pod is gone before its taint there"
    },
    "ns-slow-pods": {
        "final.namespaces[1].status.conditions[3]": "the original does not say that pods remain"
    },
    "preempts-in-vain": {_TRIES: _ONCE_MORE},
    "preempts-one": {_TRIES: _ONCE_MORE},
    "quota-status-spoilt": {"final.resourcequotas": _SOONER},
    "sts-claim-lost": {"final.persistentvolumeclaims": _SOONER, _TRIES: _SOONER},
}


@pytest.mark.slow
@pytest.mark.kubernetes("1.35")
@pytest.mark.parametrize("name", sorted(RECORDED))
def test_a_life_is_what_it_is_on_the_original(name):
    found = differences(RECORDED[name], lived(name, LIVES[name]))
    kept = KEPT.get(name, {})
    wrong = [one for one in found if not one.path.startswith(tuple(kept))]
    assert not wrong, "\n".join(str(one) for one in wrong)
    gone = [path for path in kept if not any(one.path.startswith(path) for one in found)]
    assert not gone, "a kept difference is gone"


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(OTHER_LIVES))
def test_a_life_that_is_another_one_in_v1_37_is_what_it_is_there(name):
    """[V1]"""
    assert differences(RECORDED[name], OTHER_LIVES[name])
    with features.used(Release("1.37")):
        found = differences(OTHER_LIVES[name], lived(name, LIVES[name]))
    assert not found, "\n".join(str(one) for one in found)


def test_every_life_is_on_record():
    assert LIVES.keys() == RECORDED.keys()
