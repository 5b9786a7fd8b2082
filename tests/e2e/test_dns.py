"""Names from inside pods, in a network namespace that the test made [W2, W3]."""

import json

import pytest

from tests.support.parts.network_pods import apply, cluster_ip, pod, python_pod, server, service
from tests.support.parts.processes import eventually

pytestmark = [pytest.mark.containerd, pytest.mark.kubectl, pytest.mark.slow]


def lookup(kubectl, name, *flags):
    command = f"nslookup {' '.join(flags)} {name} || true"
    return kubectl("exec", "asker", "--", "sh", "-c", command)


def test_pods_find_services_by_name(lone_cluster):
    kubectl = lone_cluster.kubectl
    labels = {"app": "named"}
    apply(kubectl, pod("asker", "sleep 1000"), server("named-0", labels, hostname="zero"),
          service("named", [{"name": "http", "port": 80, "targetPort": 8080}], labels),
          service("bare", [{"name": "http", "port": 80, "targetPort": 8080}], labels,
                  clusterIP="None"))  # fmt: skip
    resolv = kubectl("exec", "asker", "--", "cat", "/etc/resolv.conf")
    assert "nameserver 10.96.0.10" in resolv
    assert "search default.svc.cluster.local svc.cluster.local cluster.local" in resolv
    assert cluster_ip(kubectl, "named") in lookup(kubectl, "named.default.svc.cluster.local")
    address = kubectl.get("pod", "named-0")["status"]["podIP"]
    eventually(lambda: address in lookup(kubectl, "bare.default.svc.cluster.local"))
    assert "NXDOMAIN" in lookup(kubectl, "nobody.default.svc.cluster.local")
    dashed = address.replace(".", "-")
    assert address in lookup(kubectl, f"{dashed}.default.pod.cluster.local")


CALL = """
import os, ssl, urllib.request, urllib.error
place = "/var/run/secrets/kubernetes.io/serviceaccount/"
trust = ssl.create_default_context(cafile=place + "ca.crt")
for host in ("kubernetes", "kubernetes.default", "kubernetes.default.svc",
             "kubernetes.default.svc.cluster.local", os.environ["KUBERNETES_SERVICE_HOST"]):
    request = urllib.request.Request(f"https://{host}/version",
        headers={"Authorization": "Bearer " + open(place + "token").read()})
    print(urllib.request.urlopen(request, context=trust, timeout=60).status)
"""


def test_the_api_has_every_name_that_programs_use(lone_cluster):
    kubectl = lone_cluster.kubectl
    apply(kubectl, python_pod("names", CALL))
    kubectl.wait_phase("names", "Succeeded")
    assert kubectl("logs", "names").split() == ["200"] * 5


OPERATOR = """
import kopf

@kopf.on.create("configmaps", labels={"watched": "yes"})
def seen(name, namespace, patch, **_):
    patch.metadata.labels["seen"] = "yes"
"""


def test_an_operator_works_in_a_pod_with_in_cluster_configuration(lone_cluster):
    kubectl = lone_cluster.kubectl
    code = (
        f"import subprocess, sys; open('/tmp/o.py', 'w').write({OPERATOR!r}); "
        "sys.argv = ['kopf', 'run', '/tmp/o.py', '-n', 'default', '--standalone']; "
        "from kopf.cli import main; main()"
    )
    operator = python_pod("operator", code, restartPolicy="Always", serviceAccountName="op")
    operator["spec"]["containers"][0]["volumeMounts"].append({"name": "tmp", "mountPath": "/tmp"})
    operator["spec"]["volumes"].append({"name": "tmp", "emptyDir": {}})
    kubectl("create", "serviceaccount", "op")
    kubectl("create", "clusterrolebinding", "op", "--clusterrole=cluster-admin",
            "--serviceaccount=default:op")  # fmt: skip
    apply(kubectl, operator)
    watched = {"apiVersion": "v1", "kind": "ConfigMap",
               "metadata": {"name": "w", "labels": {"watched": "yes"}}}  # fmt: skip
    kubectl.apply(json.dumps(watched))
    try:
        eventually(
            lambda: kubectl.get("configmap", "w")["metadata"]["labels"].get("seen") == "yes", 40
        )
    except AssertionError:
        raise AssertionError(kubectl("logs", "operator")) from None
