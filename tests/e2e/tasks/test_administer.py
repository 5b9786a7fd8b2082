"""Tasks › Administer a Cluster, as far as one node and no cloud have it, on real containers."""

import json

import pytest

from tests.e2e.tasks.objects import pod, template, workload

pytestmark = [pytest.mark.containerd, pytest.mark.kubectl, pytest.mark.slow]
page = pytest.mark.page
RESOURCES = "tasks/administer-cluster/manage-resources"
ADMINISTER = "tasks/administer-cluster"


def limit_range(name, **limits):
    body = {"limits": [{"type": "Container", **limits}]}
    return {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": name}, "spec": body}


def quota(name, **hard):
    body = {"hard": {key.replace("_", "."): value for key, value in hard.items()}}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": name}, "spec": body}


def refused(reader, found):
    return reader.fails("create", "-f", "-", stdin=json.dumps(found))


def asking(name, **resources):
    return pod(name, container_fields={"resources": resources})


@page(f"{RESOURCES}/memory-default-namespace")
@page(f"{RESOURCES}/cpu-default-namespace")
@pytest.mark.parametrize(
    ("resource", "request_", "limit"), [("memory", "32Mi", "64Mi"), ("cpu", "100m", "200m")]
)
def test_defaults_of_a_namespace(reader, resource, request_, limit):
    reader.create(
        limit_range("defaults", default={resource: limit}, defaultRequest={resource: request_})
    )

    def given(name, **resources):
        reader.create(asking(name, **resources))
        return reader.get("pod", name)["spec"]["containers"][0]["resources"]

    assert given("demo") == {"limits": {resource: limit}, "requests": {resource: request_}}
    own = {resource: "50m" if resource == "cpu" else "48Mi"}
    assert given("demo-2", limits=own) == {"limits": own, "requests": own}
    assert given("demo-3", requests=own) == {"limits": {resource: limit}, "requests": own}


@page(f"{RESOURCES}/memory-constraint-namespace")
@page(f"{RESOURCES}/cpu-constraint-namespace")
@pytest.mark.parametrize(
    ("resource", "least", "most", "under", "over"),
    [("memory", "50Mi", "100Mi", "10Mi", "150Mi"), ("cpu", "200m", "800m", "100m", "1500m")],
)
def test_bounds_of_a_namespace(reader, resource, least, most, under, over):
    reader.create(limit_range("bounds", max={resource: most}, min={resource: least}))
    reader.create(asking("fits", limits={resource: most}, requests={resource: least}))
    said = refused(reader, asking("large", limits={resource: over}, requests={resource: most}))
    assert f"maximum {resource} usage per Container is {most}, but limit is {over}" in said.replace(
        "1500m", over
    )
    said = refused(reader, asking("small", limits={resource: most}, requests={resource: under}))
    assert f"minimum {resource} usage per Container is {least}, but request is {under}" in said
    reader.create(asking("silent"))
    found = reader.get("pod", "silent")["spec"]["containers"][0]["resources"]
    assert found == {"limits": {resource: most}, "requests": {resource: most}}


@page(f"{RESOURCES}/quota-memory-cpu-namespace")
def test_a_quota_of_memory_and_cpu(reader):
    reader.create(
        quota("mem-cpu-demo", requests_cpu="1", requests_memory="100Mi", limits_memory="200Mi")
    )
    fits = {"limits": {"memory": "80Mi"}, "requests": {"memory": "60Mi", "cpu": "400m"}}
    reader.create(asking("first", **fits))
    reader.sees(
        lambda: (
            reader.field("resourcequota mem-cpu-demo", r".status.used.requests\.memory") == "60Mi"
        )
    )
    said = refused(reader, asking("second", **fits))
    assert "exceeded quota: mem-cpu-demo, requested: requests.memory=60Mi" in said
    assert "must specify" in refused(reader, asking("silent"))


@page(f"{RESOURCES}/quota-pod-namespace")
@page(f"{ADMINISTER}/quota-api-object")
def test_a_quota_of_pods_and_objects(reader):
    reader.create(quota("pod-demo", pods="2", services="1"))
    reader.apply(workload("Deployment", "pod-quota-demo", template("purpose"), replicas=3))
    reader.sees(
        lambda: reader.field("deployment pod-quota-demo", ".status.availableReplicas") == "2"
    )
    failure = '.status.conditions[?(@.type=="ReplicaFailure")].message'
    reader.sees(
        lambda: "exceeded quota: pod-demo" in reader.field("deployment pod-quota-demo", failure)
    )
    reader("create", "service", "clusterip", "one", "--tcp=80")
    assert "exceeded quota" in reader.fails("create", "service", "clusterip", "two", "--tcp=80")


@page(f"{ADMINISTER}/limit-storage-consumption")
def test_storage_is_limited(reader):
    bounds = {
        "limits": [
            {"type": "PersistentVolumeClaim", "max": {"storage": "2Gi"}, "min": {"storage": "1Gi"}}
        ]
    }
    reader.create(
        {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "storage"}, "spec": bounds}
    )
    reader.create(quota("storagequota", persistentvolumeclaims="1"))

    def claim(name, size):
        body = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}
        return {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": name},
            "spec": body,
        }

    assert "maximum storage usage per PersistentVolumeClaim is 2Gi" in refused(
        reader, claim("large", "3Gi")
    )
    reader.create(claim("fits", "1Gi"))
    assert "exceeded quota: storagequota" in refused(reader, claim("more", "1Gi"))


@page(f"{ADMINISTER}/namespaces")
@page("tasks/administer-cluster/namespaces-walkthrough")
def test_namespaces_keep_apart_and_take_all_with_them(reader):
    other = f"{reader.namespace}-other"
    reader("create", "namespace", other)
    assert "Active" in reader("get", "namespaces", other)
    reader.run_pod("here")
    assert "here" not in reader.cluster("-n", other, "get", "pods")
    reader.cluster("-n", other, "create", "configmap", "gone", "--from-literal=a=b")
    reader("delete", "namespace", other)
    assert "NotFound" in reader.fails("get", "namespace", other)


@page(f"{ADMINISTER}/change-default-storage-class")
@page(f"{ADMINISTER}/change-pv-reclaim-policy")
def test_the_default_class_and_a_volumes_reclaim_policy(reader):
    classes = reader.get("storageclass")["items"]
    default = "storageclass.kubernetes.io/is-default-class"
    [name] = [
        found["metadata"]["name"] for found in classes
        if (found["metadata"].get("annotations") or {}).get(default) == "true"
    ]  # fmt: skip
    assert "(default)" in reader("get", "storageclass", name)
    volume = f"keep-{reader.namespace}"
    body = {
        "capacity": {"storage": "1Mi"}, "accessModes": ["ReadWriteOnce"],
        "hostPath": {"path": "/tmp/none"}, "persistentVolumeReclaimPolicy": "Delete",
    }  # fmt: skip
    reader.create(
        {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": volume}, "spec": body}
    )
    reader("patch", "pv", volume, "-p", '{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}')
    assert "Retain" in reader("get", "pv", volume)
    reader("delete", "pv", volume)


@page(f"{ADMINISTER}/certificates")
@page("tasks/tls/certificate-issue-client-csr")
def test_a_user_gets_a_certificate(reader, folder):
    import subprocess

    from cryptography import x509

    key, request = folder / "myuser.key", folder / "myuser.csr"
    subprocess.run(["openssl", "genrsa", "-out", str(key), "2048"], check=True, capture_output=True)
    subject = ["-subj", "/CN=myuser"]
    command = ["openssl", "req", "-new", "-key", str(key), "-out", str(request), *subject]
    subprocess.run(command, check=True, capture_output=True)
    import base64

    name = f"myuser-{reader.namespace}"
    body = {
        "request": base64.b64encode(request.read_bytes()).decode(), "usages": ["client auth"],
        "signerName": "kubernetes.io/kube-apiserver-client", "expirationSeconds": 86400,
    }  # fmt: skip
    csr = {"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest"}
    reader.create({**csr, "metadata": {"name": name}, "spec": body})
    reader("certificate", "approve", name)
    reader.sees(lambda: reader.field(f"csr {name}", ".status.certificate") != "")
    issued = base64.b64decode(reader.field(f"csr {name}", ".status.certificate"))
    assert x509.load_pem_x509_certificate(issued).subject.rfc4514_string() == "CN=myuser"
    reader("create", "role", "developer", "--verb=get,list", "--resource=pods")
    reader("create", "rolebinding", "developer-myuser", "--role=developer", "--user=myuser")
    assert reader("auth", "can-i", "list", "pods", "--as=myuser").strip() == "yes"
    assert "no" in reader_can_i(reader, "delete", "pods", "--as=myuser")
    reader("delete", "csr", name)


def reader_can_i(reader, *question):
    """`auth can-i` exits with 1 where the answer is no."""
    try:
        return reader("auth", "can-i", *question)
    except AssertionError as found:
        return found.stdout


@page("tasks/debug/debug-application/debug-running-pod")
@page("tasks/debug/debug-application/get-shell-running-container")
@page("tasks/debug/debug-application/determine-reason-pod-failure")
@page("tasks/debug/debug-application/debug-pods")
def test_a_failing_pod_says_why(reader):
    script = "echo Sleep expired > /dev/termination-log; exit 3"
    reader.run_pod("termination-demo", "sh", "-c", script, until="Failed", restartPolicy="Never")
    ended = ".status.containerStatuses[0].state.terminated"
    assert reader.field("pod termination-demo", f"{ended}.message") == "Sleep expired\n"
    assert reader.field("pod termination-demo", f"{ended}.exitCode") == "3"
    reader.run_pod("shell-demo")
    assert reader.exec("shell-demo", "sh", "-c", "echo $((6 * 7))") == "42\n"
    copy = ("debug", "shell-demo", "--copy-to=debugger", "--image=localhost/test/busybox:1")
    reader(*copy, "--", "sleep", "600")
    reader.ready("pod/debugger")


@page("tasks/debug/debug-cluster/resource-usage-monitoring")
@page("tasks/debug/debug-cluster/resource-metrics-pipeline")
def test_usage_of_nodes_and_pods(reader):
    reader.run_pod("measured")
    [node] = reader.get("nodes")["items"]

    def top(*what):
        try:
            return reader("top", *what)
        except AssertionError:
            return ""  # two samples are needed first

    reader.sees(lambda: node["metadata"]["name"] in top("nodes"))
    reader.sees(lambda: "measured" in top("pods"))


@page(f"{ADMINISTER}/sysctl-cluster")
def test_safe_sysctls_are_set_and_unsafe_ones_refused(reader):
    safe = {"sysctls": [{"name": "kernel.shm_rmid_forced", "value": "1"}]}
    reader.run_pod("sysctl-example", securityContext=safe)
    assert reader.exec("sysctl-example", "cat", "/proc/sys/kernel/shm_rmid_forced") == "1\n"
    unsafe = {"sysctls": [{"name": "kernel.msgmax", "value": "65536"}]}
    reader.create(pod("unsafe", securityContext=unsafe))
    reader.sees_phase("unsafe", "Failed")
    assert reader.field("pod unsafe", ".status.reason") == "SysctlForbidden"
