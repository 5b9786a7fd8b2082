"""Any sequence of sets that a source may send. [N1] [N2]"""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from sampan.api.objects import is_deleted, uid_of
from sampan.kubelet.pods.pod_config import PodOperation, SourcePods, merge

PODS = st.fixed_dictionaries(
    {
        "image": st.sampled_from(["a", "b"]),
        "label": st.sampled_from(["x", "y"]),
        "deleted": st.booleans(),
        "phase": st.sampled_from(["Pending", "Running"]),
    }
)
SETS = st.dictionaries(st.sampled_from("abcd"), PODS, max_size=4)


def pod_of(uid, words):
    pod = {
        "metadata": {"name": f"pod-{uid}", "uid": uid, "labels": {"l": words["label"]}},
        "spec": {"containers": [{"name": "c", "image": words["image"]}]},
        "status": {"phase": words["phase"]},
    }
    if words["deleted"]:
        pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return pod


pytestmark = pytest.mark.slow


class PodConfigMachine(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self.wanted = SourcePods("api")
        self.folded = {}  # what somebody has who only hears the changes
        self.last = {}
        self.first_seen = {}
        self.moment = 0

    @rule(words=SETS)
    def send(self, words):
        self.moment += 1
        pods = {uid: pod_of(uid, said) for uid, said in words.items()}
        merged = merge(self.wanted, list(pods.values()), str(self.moment))
        assert not merged.refused
        order = [list(PodOperation).index(change.kind) for change in merged.changes]
        assert order == sorted(order)
        for change in merged.changes:
            self.apply(change)
        self.wanted, self.last = merged.wanted, pods

    def apply(self, change):
        uid = uid_of(change.pod)
        if change.kind is PodOperation.REMOVE:
            del self.folded[uid]
            del self.first_seen[uid]
            return
        if change.kind is PodOperation.ADD:
            assert uid not in self.folded
            self.first_seen[uid] = str(self.moment)
        else:
            assert uid in self.folded
        if change.kind is PodOperation.DELETE:
            assert is_deleted(change.pod)
        if change.kind is PodOperation.RECONCILE:
            assert self.folded[uid]["spec"] == change.pod["spec"]
        self.folded[uid] = change.pod

    @invariant()
    def the_fold_of_the_changes_is_the_last_set(self):
        assert self.folded.keys() == self.last.keys()
        for uid, pod in self.last.items():
            mine = self.folded[uid]
            assert mine["spec"] == pod["spec"]
            assert mine["status"] == pod["status"]
            assert mine["metadata"]["labels"] == pod["metadata"]["labels"]
            assert is_deleted(mine) == is_deleted(pod)

    @invariant()
    def the_first_moment_is_kept(self):
        for uid, pod in self.folded.items():
            seen = pod["metadata"]["annotations"]["kubernetes.io/config.seen"]
            assert seen == self.first_seen[uid]


PodConfigMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=10)
TestPodConfig = PodConfigMachine.TestCase
