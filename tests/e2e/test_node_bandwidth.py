"""Bandwidth limits by annotation reach the pod's own interface [N8]."""

import shutil
import subprocess

import pytest

from sampan.network import cni_configuration

pytestmark = [pytest.mark.containerd, pytest.mark.kubectl, pytest.mark.slow]

POD = """
apiVersion: v1
kind: Pod
metadata: {name: NAME, annotations: {kubernetes.io/ingress-bandwidth: 13M}}
spec:
  hostNetwork: HOST
  terminationGracePeriodSeconds: 0
  containers: [{name: main, image: localhost/test/busybox:1, command: [sleep, "1000"]}]
"""


@pytest.mark.skipif(not shutil.which("tc"), reason="tc tells what limits there are")
@pytest.mark.skipif(
    not cni_configuration.shapes_bandwidth(), reason="the CNI plugin bandwidth is not installed"
)
def test_what_comes_to_a_pod_is_limited_and_on_the_host_s_network_that_is_refused(kubectl):
    kubectl.apply(POD.replace("NAME", "limited").replace("HOST", "false"))
    kubectl.apply(POD.replace("NAME", "unlimited").replace("HOST", "true"))
    kubectl("wait", "--for=condition=Ready", "pod/limited", "pod/unlimited", "--timeout=60s")
    limits = subprocess.run(["tc", "qdisc"], capture_output=True, text=True, check=True).stdout
    assert "rate 13Mbit" in limits
    told = kubectl("get", "events", "--field-selector", "reason=HostNetworkNotSupported")
    assert "pod/unlimited" in told
    kubectl("delete", "pod", "limited", "unlimited", "--force", "--grace-period=0")
