"""`sampan up --with`: a cluster that starts with what it is for."""

import subprocess

import pytest

from tests.support.parts.sampan_process import environment, sampan_command

pytestmark = [pytest.mark.slow]

APP = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  names: {plural: widgets, singular: widget, kind: Widget}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: example.com/v1
kind: Widget
metadata: {name: w, namespace: shop}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: "anything:1"}]}
"""


def test_what_it_was_given_is_ready_when_the_cluster_is(own_cluster, tmp_path):
    manifests = tmp_path / "app"
    manifests.mkdir()
    (manifests / "app.yaml").write_text(APP)
    own_cluster.up("--runtime", "simulated", "--with", str(manifests), seconds=90)
    said = own_cluster.output.read_text()
    assert "4 applied" in said
    assert "deployment/web -n shop" in said
    kubectl = own_cluster.kubectl
    assert kubectl.get("deployment", "web", "-n", "shop")["status"]["availableReplicas"] == 2
    assert kubectl.get("widgets", "w", "-n", "shop")["kind"] == "Widget"
    # Again, on the same data: nothing is in its own way.
    own_cluster.stop()
    own_cluster.up("--runtime", "simulated", "--with", str(manifests), seconds=90)


def test_what_the_api_refuses_is_one_sentence(tmp_path):
    path = tmp_path / "bad.yaml"
    path.write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: 'Not A Name'}\n")
    done = subprocess.run(
        sampan_command(
            "up", "--data-dir", str(tmp_path / "d"), "--runtime", "none", "--port", "0",
            "--with", str(path),
        ),
        capture_output=True, text=True, timeout=120, env=environment(), stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 1, done.stdout + done.stderr
    # Under load the loop's watch says that it was held; the last word is ours.
    sentence = done.stderr.splitlines()[-1]
    assert sentence.startswith("sampan: --with: ")
    assert "Not A Name" in sentence
