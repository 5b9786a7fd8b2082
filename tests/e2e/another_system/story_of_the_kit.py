"""Tests of a user on that system: tests/e2e/test_another_system.py runs them."""

import pytest

import sampan.testing
from sampan.testing.kit.spec import CannotStart

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web"},
    "spec": {"containers": [{"name": "web", "image": "nginx"}]},
}


@pytest.mark.sampan(nodes=2, clock="virtual")
def test_a_cluster_lives_has_its_time_and_is_forked(sampan):
    sampan.apply(POD)
    sampan.assert_ready("pod/web")
    sampan.clock.advance("1h")
    with sampan.fork() as other:
        other.delete("pod/web")
        other.assert_gone("pod/web")
    sampan.assert_ready("pod/web")


def test_a_real_node_is_refused_in_one_sentence():
    with pytest.raises(CannotStart, match="a real node needs Linux"):
        sampan.testing.cluster(real=True)
