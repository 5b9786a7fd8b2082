"""Tasks › Run Applications, walked on real containers."""

import json

import pytest

from tests.e2e.tasks.objects import BUSYBOX, WEB, WEB_NEXT, container, pod, template, workload

pytestmark = [pytest.mark.containerd, pytest.mark.kubectl, pytest.mark.slow]
page = pytest.mark.page
RUN = "tasks/run-application"


def service(name, app, port=80, **spec):
    body = {"selector": {"app": app}, "ports": [{"port": port, "name": "web"}], **spec}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": body}


def images(reader, selector):
    return {found["spec"]["containers"][0]["image"] for found in reader.pods(selector)}


@page(f"{RUN}/run-stateless-application-deployment")
@page("tutorials/kubernetes-basics/update/update-intro")
@page("tutorials/kubernetes-basics/scale/scale-intro")
def test_a_deployment_is_updated_scaled_undone_and_deleted(reader):
    reader.apply(workload("Deployment", "web", template("web"), replicas=2))
    reader.rolled_out("deployment/web")
    assert len(reader.pods("app=web")) == 2
    assert "Replicas:" in reader("describe", "deployment", "web")
    reader("set", "image", "deployment/web", f"main={WEB_NEXT}")
    reader.rolled_out("deployment/web")
    reader.sees(lambda: images(reader, "app=web") == {WEB_NEXT})
    reader("scale", "deployment/web", "--replicas=4")
    reader.rolled_out("deployment/web")
    reader.sees(lambda: len(reader.pods("app=web")) == 4)
    assert reader("rollout", "history", "deployment/web").count("\n") >= 3
    reader("rollout", "undo", "deployment/web")
    reader.rolled_out("deployment/web")
    reader.sees(lambda: images(reader, "app=web") == {WEB})
    reader("delete", "deployment", "web")
    reader.sees(lambda: reader.pods("app=web") == [])


@page(f"{RUN}/run-single-instance-stateful-application")
def test_one_instance_with_a_claim_of_the_default_class(reader):
    claim = {
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "mysql-pv-claim"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }  # fmt: skip
    mount = {"volumeMounts": [{"name": "data", "mountPath": "/var/lib/mysql"}]}
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "mysql-pv-claim"}}]
    main = container("main", "sh", "-c", "date >> /var/lib/mysql/starts; sleep 3600", **mount)
    pods = template("mysql", containers=[main], volumes=volumes)
    reader.apply(claim, workload("Deployment", "mysql", pods, strategy={"type": "Recreate"}))
    reader.rolled_out("deployment/mysql")
    reader.sees(lambda: reader.field("pvc mysql-pv-claim", ".status.phase") == "Bound")
    reader("rollout", "restart", "deployment/mysql")
    reader.rolled_out("deployment/mysql")
    [found] = reader.pods("app=mysql")
    name = found["metadata"]["name"]
    reader.sees(lambda: reader.exec(name, "wc", "-l", "/var/lib/mysql/starts").split()[0] == "2")


def stateful(name, replicas, **spec):
    main = container("main", "sleep", "3600", image=BUSYBOX)
    pods = template(name, containers=[main])
    return workload("StatefulSet", name, pods, serviceName=name, replicas=replicas, **spec)


@page("tutorials/stateful-application/basic-stateful-set")
@page(f"{RUN}/run-replicated-stateful-application")
@page(f"{RUN}/scale-stateful-set")
@page(f"{RUN}/delete-stateful-set")
def test_a_stateful_set_in_order_with_names_and_claims(reader):
    claims = [{
        "metadata": {"name": "www"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}},
    }]  # fmt: skip
    main = container(
        "main", "sh", "-c", "hostname > /data/name; sleep 3600",
        volumeMounts=[{"name": "www", "mountPath": "/data"}],
    )  # fmt: skip
    pods = template("web", containers=[main])
    reader.apply(
        service("nginx", "web", clusterIP="None"),
        workload(
            "StatefulSet", "web", pods, serviceName="nginx", replicas=2, volumeClaimTemplates=claims
        ),
    )
    reader.rolled_out("statefulset/web")
    names = [found["metadata"]["name"] for found in reader.pods("app=web")]
    assert names == ["web-0", "web-1"]
    assert reader.exec("web-1", "hostname") == "web-1\n"
    before = reader.field("pod web-0", ".metadata.uid")
    reader("delete", "pod", "web-0", "--now")
    reader.sees(lambda: reader.field("pod web-0", ".metadata.uid") not in ("", before))
    reader.ready("pod/web-0")
    assert reader.exec("web-0", "cat", "/data/name") == "web-0\n"
    reader("scale", "sts", "web", "--replicas=3")
    reader.rolled_out("statefulset/web")
    reader("patch", "sts", "web", "-p", '{"spec":{"replicas":1}}')
    reader.sees(lambda: len(reader.pods("app=web")) == 1)
    assert len(reader.get("pvc")["items"]) == 3  # claims stay
    reader("delete", "statefulset", "web", "--cascade=orphan")
    assert [found["metadata"]["name"] for found in reader.pods("app=web")] == ["web-0"]
    assert not reader.get("pod", "web-0")["metadata"].get("ownerReferences")


@page(f"{RUN}/force-delete-stateful-set-pod")
def test_a_pod_is_deleted_by_force(reader):
    reader.apply(stateful("web", 1))
    reader.rolled_out("statefulset/web")
    said = reader("delete", "pods", "web-0", "--grace-period=0", "--force")
    assert "force deleted" in said
    reader.ready("pod/web-0")


@page(f"{RUN}/configure-pdb")
@page("tasks/administer-cluster/safely-drain-node")
def test_a_budget_holds_up_evictions(reader):
    reader.apply(workload("Deployment", "zk", template("zookeeper"), replicas=2))
    reader.rolled_out("deployment/zk")
    budget = {
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "zk-pdb"},
        "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "zookeeper"}}},
    }  # fmt: skip
    reader.create(budget)
    reader.sees(lambda: reader.field("pdb zk-pdb", ".status.currentHealthy") == "2")
    [first, _] = reader.pods("app=zookeeper")
    name = first["metadata"]["name"]
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
    path = f"/api/v1/namespaces/{reader.namespace}/pods/{name}/eviction"
    refused = reader.fails("create", "--raw", path, "-f", "-", stdin=json.dumps(eviction))
    assert "disruption budget" in refused
    reader("patch", "pdb", "zk-pdb", "--type=merge", "-p", '{"spec":{"minAvailable":1}}')
    reader.sees(lambda: reader.field("pdb zk-pdb", ".status.disruptionsAllowed") == "1")
    reader("create", "--raw", path, "-f", "-", stdin=json.dumps(eviction))
    reader.sees(lambda: name not in reader("get", "pods"))


@page(f"{RUN}/horizontal-pod-autoscale-walkthrough")
def test_an_autoscaler_adds_pods_when_real_containers_are_busy(reader):
    """What the kernel counted, through the node and the metrics API, to the Deployment."""
    resources = {"requests": {"cpu": "20m"}, "limits": {"cpu": "100m"}}
    busy = container("main", "sh", "-c", "while :; do :; done", resources=resources)
    pods = template("php", containers=[busy])
    reader.apply(workload("Deployment", "php-apache", pods, replicas=1))
    reader.rolled_out("deployment/php-apache")
    reader("autoscale", "deployment", "php-apache", "--cpu-percent=50", "--min=1", "--max=2")
    assert "php-apache" in reader("get", "hpa")
    reader.sees(lambda: reader.field("deployment php-apache", ".spec.replicas") == "2", 150)
    above = "cpu resource utilization (percentage of request) above target"
    reader.sees(lambda: f"New size: 2; reason: {above}" in reader("get", "events"), 60)


@page(f"{RUN}/access-api-from-pod")
@page("tasks/administer-cluster/access-cluster-api")
def test_the_api_by_a_token_and_by_a_proxy(reader, folder):
    [node] = reader.get("nodes")["items"]
    assert "v1" in reader("get", "--raw", "/api")
    assert node["metadata"]["name"] in reader("get", "--raw", "/api/v1/nodes")
    reader.run_pod("inside")
    token = reader.exec("inside", "cat", "/var/run/secrets/kubernetes.io/serviceaccount/token")
    assert token.count(".") == 2
    space = reader.exec("inside", "cat", "/var/run/secrets/kubernetes.io/serviceaccount/namespace")
    assert space == reader.namespace
    environment = reader.exec("inside", "env")
    assert "KUBERNETES_SERVICE_HOST=" in environment
    assert "KUBERNETES_SERVICE_PORT_HTTPS=443" in environment


@page("tasks/access-application-cluster/list-all-running-container-images")
def test_all_images_that_run(reader):
    reader.run_pod("one")
    shown = reader(
        "get", "pods", "-o", "jsonpath={.items[*].spec['initContainers', 'containers'][*].image}"
    )
    assert shown.split() == [BUSYBOX]


@page("tasks/access-application-cluster/communicate-containers-same-pod-shared-volume")
def test_two_containers_share_a_volume(reader):
    shared = [{"name": "shared-data", "emptyDir": {}}]
    debian = container(
        "debian", "sh", "-c", "echo Hello from debian > /pod-data/index.html; sleep 600",
        volumeMounts=[{"name": "shared-data", "mountPath": "/pod-data"}],
    )  # fmt: skip
    web = container("nginx", image=WEB, volumeMounts=[{"name": "shared-data", "mountPath": "/www"}])
    found = pod("two-containers", volumes=shared)
    found["spec"]["containers"] = [web, debian]
    reader.create(found)
    reader.ready("pod/two-containers")
    request = "printf 'GET / HTTP/1.0\\r\\n\\r\\n' | nc 127.0.0.1 80"
    reader.sees(
        lambda: (
            "Hello from debian"
            in reader("exec", "two-containers", "-c", "nginx", "--", "sh", "-c", request)
        )
    )
