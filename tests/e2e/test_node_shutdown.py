"""A real node goes down gracefully: its pods end in order, and the API says why [N17]."""

import pytest

from tests.support.parts.processes import eventually
from tests.support.parts.sampan_process import RUNTIME

pytestmark = [pytest.mark.containerd, pytest.mark.kubectl, pytest.mark.slow]

POD = """
apiVersion: v1
kind: Pod
metadata: {name: NAME, namespace: kube-system}
spec:
  priorityClassName: PRIORITY
  terminationGracePeriodSeconds: 20
  containers:
  - name: main
    image: localhost/test/busybox:1
    command: [sh, -c, 'trap "sleep 1; exit 0" TERM; while true; do sleep 0.1; done']
"""


def pod(name, priority):
    return POD.replace("NAME", name).replace("PRIORITY", priority)


def field(cluster, name, path):
    return cluster.kubectl("get", "pod", name, "-n", "kube-system", "-o", f"jsonpath={{{path}}}")


def test_a_node_that_is_stopped_ends_its_pods_in_order_and_says_why(own_cluster, archive):
    flags = ["--shutdown-grace-period", "12s", "--shutdown-grace-period-critical-pods", "5s"]
    own_cluster.up("--runtime", RUNTIME, *flags)
    own_cluster.run("image", "import", str(archive))
    own_cluster.kubectl.apply(pod("web", '""'))
    own_cluster.kubectl.apply(pod("critical", "system-cluster-critical"))
    for name in ("web", "critical"):
        eventually(lambda name=name: field(own_cluster, name, ".status.phase") == "Running")
    assert own_cluster.stop() == 0, own_cluster.output.read_text()
    own_cluster.up("--runtime", RUNTIME)
    ends = {}
    for name in ("web", "critical"):
        assert field(own_cluster, name, ".status.phase") == "Failed"
        assert field(own_cluster, name, ".status.reason") == "Terminated"
        message = "Pod was terminated in response to imminent node shutdown."
        assert field(own_cluster, name, ".status.message") == message
        ended = ".status.containerStatuses[0].state.terminated.finishedAt"
        ends[name] = field(own_cluster, name, ended)
    assert ends["web"] < ends["critical"], "the important one went last"
    assert own_cluster.stop() == 0
