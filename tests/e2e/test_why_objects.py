"""`sampan why` about objects of many kinds, of a live cluster."""

import json
import subprocess

import pytest

from tests.support.parts.processes import eventually
from tests.support.parts.sampan_process import environment, sampan_command

pytestmark = [pytest.mark.slow, pytest.mark.kubectl]

OBJECTS = """
apiVersion: v1
kind: ResourceQuota
metadata: {name: small}
spec: {hard: {pods: "1"}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: "anything:1", resources: {requests: {cpu: "999"}}}]}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: disk}
spec: {storageClassName: fast, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: scaler}
spec:
  maxReplicas: 3
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: nobody}
  metrics:
  - type: Resource
    resource: {name: cpu, target: {type: Utilization, averageUtilization: 5}}
"""


def test_each_kind_is_told_what_keeps_it(own_cluster):
    """[X2]"""
    own_cluster.up("--runtime", "simulated", "--node-name", "one")
    kubectl = own_cluster.kubectl
    kubectl("apply", "-f", "-", stdin=OBJECTS)
    kubectl("cordon", "one")

    def why(*words, code=0):
        done = subprocess.run(
            sampan_command("why", *words, "--kubeconfig", str(own_cluster.kubeconfig)),
            capture_output=True, text=True, timeout=60, env=environment(),
        )  # fmt: skip
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    def says(what, *texts):
        eventually(lambda: all(text in why(what) for text in texts), 60.0)

    says("deploy/web", "0 of 2 replicas are ready", "exceeded quota", "raise the ResourceQuota")
    says("deployments.apps/web", "Pending", "sampan why pod/web-")
    says("pvc/disk", "there is no StorageClass fast")
    says("hpa/scaler", "FailedGetScale", "scaleTargetRef")
    says("node/one", "cordoned", "kubectl uncordon one")
    says("ns/default", "phase Active", "Nothing is wrong")
    found = json.loads(why("node/one", "-o", "json"))
    assert found["object"] == "node/one"
    assert "cordoned" in [finding["what"] for finding in found["findings"]]
    assert "not found" in why("job/none", code=1)
    assert "resource type" in why("nosuch/none", code=1)
