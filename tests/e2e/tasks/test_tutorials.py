"""Tutorials, as far as one node and no cloud have them, on real containers."""

import json
import subprocess

import pytest

from tests.e2e.tasks.objects import BUSYBOX, WEB, container, pod, template, workload
from tests.support.parts.registry import free_port

pytestmark = [pytest.mark.containerd, pytest.mark.kubectl, pytest.mark.slow]
page = pytest.mark.page


def fetched(port):
    done = subprocess.run(
        ["busybox", "wget", "-q", "-O", "-", f"http://127.0.0.1:{port}/"],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    return done.stdout


@page("tutorials/hello-minikube")
@page("tutorials/kubernetes-basics/deploy-app/deploy-intro")
@page("tutorials/kubernetes-basics/explore/explore-intro")
def test_hello(reader):
    reader("create", "deployment", "hello-node", f"--image={WEB}")
    reader.rolled_out("deployment/hello-node")
    [found] = reader.pods("app=hello-node")
    assert found["metadata"]["name"] in reader("get", "pods")
    assert "ScalingReplicaSet" in reader("get", "events")
    reader(
        "expose",
        "deployment",
        "hello-node",
        "--type=LoadBalancer",
        "--port=8080",
        "--target-port=80",
    )
    assert "LoadBalancer" in reader("get", "services")
    assert "release 1" in reader("exec", found["metadata"]["name"], "--", "cat", "/www/index.html")
    reader("delete", "service", "hello-node")
    reader("delete", "deployment", "hello-node")


@page("tasks/access-application-cluster/port-forward-access-application-cluster")
def test_a_port_is_forwarded(reader, folder):
    reader.apply(workload("Deployment", "mongo", template("mongo"), replicas=1))
    reader.rolled_out("deployment/mongo")
    port = free_port()
    output = folder / "forward"
    forwarding = reader.cluster.background(
        "-n", reader.namespace, "port-forward", "deployment/mongo", f"{port}:80", output=output
    )
    try:
        reader.sees(lambda: "Forwarding from" in output.read_text())
        assert fetched(port) == "release 1\n"
    finally:
        forwarding.terminate()
        forwarding.wait(60)


@page("tutorials/security/seccomp")
def test_seccomp_profiles(reader):
    default = {"seccompProfile": {"type": "RuntimeDefault"}}
    reader.run_pod("default-pod", securityContext=default)
    status = reader.exec("default-pod", "cat", "/proc/1/status")
    assert "Seccomp:\t2" in status
    reader.run_pod("unconfined", securityContext={"seccompProfile": {"type": "Unconfined"}})
    assert "Seccomp:\t0" in reader.exec("unconfined", "cat", "/proc/1/status")


@page("tutorials/services/pods-and-endpoint-termination-flow")
def test_endpoints_of_a_pod_that_terminates(reader):
    hooks = {"preStop": {"exec": {"command": ["sleep", "20"]}}}
    main = container("main", "sleep", "3600", image=BUSYBOX, lifecycle=hooks)
    pods = template("nginx", containers=[main])
    pods["spec"]["terminationGracePeriodSeconds"] = 30
    reader.apply(workload("Deployment", "nginx-deployment", pods, replicas=1))
    reader("expose", "deployment", "nginx-deployment", "--name=nginx-service", "--port=80")
    reader.rolled_out("deployment/nginx-deployment")

    def conditions():
        found = reader.get("endpointslices", "-l", "kubernetes.io/service-name=nginx-service")
        return [end["conditions"] for each in found["items"] for end in each["endpoints"] or ()]

    ready = {"ready": True, "serving": True, "terminating": False}
    reader.sees(lambda: conditions() == [ready])
    [found] = reader.pods("app=nginx")
    reader("delete", "pod", found["metadata"]["name"], "--wait=false")
    going = {"ready": False, "serving": True, "terminating": True}
    reader.sees(lambda: going in conditions())
    reader("delete", "pod", found["metadata"]["name"], "--grace-period=0", "--force")


@page("tasks/manage-daemon/create-daemon-set")
@page("tasks/manage-daemon/update-daemon-set")
@page("tasks/manage-daemon/rollback-daemon-set")
def test_a_daemon_set_is_updated_and_rolled_back(reader):
    reader.apply(
        workload("DaemonSet", "fluentd", template("fluentd", "sleep", "3600", image=BUSYBOX))
    )
    reader.rolled_out("ds/fluentd")
    patch = {"spec": {"template": {"metadata": {"annotations": {"version": "2"}}}}}
    reader("patch", "ds", "fluentd", "-p", json.dumps(patch))
    reader.rolled_out("ds/fluentd")
    history = reader("rollout", "history", "ds/fluentd")
    assert "1 " in history
    assert "2 " in history
    reader("rollout", "undo", "ds/fluentd", "--to-revision=1")
    reader.rolled_out("ds/fluentd")
    reader.sees(
        lambda: (
            [found["metadata"].get("annotations") or {} for found in reader.pods("app=fluentd")]
            == [{}]
        )
    )


@page("concepts/scheduling-eviction/pod-scheduling-readiness")
def test_a_gated_pod_waits(reader):
    reader.create(pod("test-pod", schedulingGates=[{"name": "example.com/foo"}]))
    assert "SchedulingGated" in reader("get", "pod", "test-pod")
    reason = '.status.conditions[?(@.type=="PodScheduled")].reason'
    assert reader.field("pod test-pod", reason) == "SchedulingGated"
    remove = [{"op": "remove", "path": "/spec/schedulingGates"}]
    reader("patch", "pod", "test-pod", "--type=json", "-p", json.dumps(remove))
    reader.sees_phase("test-pod", "Running")
