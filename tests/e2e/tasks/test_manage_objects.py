"""Tasks › Manage Kubernetes Objects, walked with the real kubectl."""

import json

import pytest

from tests.e2e.tasks.objects import WEB, WEB_NEXT, template, workload
from tests.support.parts.kubectl import KubectlFailure

pytestmark = [pytest.mark.containerd, pytest.mark.kubectl, pytest.mark.slow]
page = pytest.mark.page
MANAGE = "tasks/manage-kubernetes-objects"
LAST = "kubectl.kubernetes.io/last-applied-configuration"


def deployment(**spec):
    return workload("Deployment", "nginx-deployment", template("nginx"), **spec)


def written(folder, found):
    path = folder / "deployment.yaml"
    path.write_text(json.dumps(found))
    return str(path)


@page(f"{MANAGE}/declarative-config")
def test_apply_merges_what_the_file_the_cluster_and_kubectl_say(reader, folder):
    path = written(folder, deployment(minReadySeconds=5))
    assert "+++" in reader_diff(reader, path)
    reader("apply", "-f", path)
    annotations = reader.get("deployment", "nginx-deployment")["metadata"]["annotations"]
    assert json.loads(annotations[LAST])["spec"]["minReadySeconds"] == 5
    reader("scale", "deployment/nginx-deployment", "--replicas=2")
    changed = deployment()
    changed["spec"]["template"]["spec"]["containers"][0]["image"] = WEB_NEXT
    reader("apply", "-f", written(folder, changed))
    spec = reader.get("deployment", "nginx-deployment")["spec"]
    assert spec["replicas"] == 2  # set by scale, never in the file: kept
    assert "minReadySeconds" not in spec  # taken out of the file: gone
    assert spec["template"]["spec"]["containers"][0]["image"] == WEB_NEXT
    reader("delete", "-f", path)


def reader_diff(reader, path):
    """`kubectl diff` exits with 1 where there are differences."""
    try:
        return reader("diff", "-f", path)
    except AssertionError as found:
        return found.stdout


@page(f"{MANAGE}/imperative-command")
def test_imperative_commands(reader):
    reader("create", "deployment", "nginx", f"--image={WEB}")
    reader("scale", "deployment/nginx", "--replicas=2")
    reader("annotate", "deployment/nginx", "note=mine")
    reader("label", "deployment/nginx", "tier=web")
    reader("expose", "deployment/nginx", "--port=80")
    assert reader.field("service nginx", ".spec.selector.app") == "nginx"
    reader("autoscale", "deployment/nginx", "--max=3")
    assert "nginx" in reader("get", "deployments", "-l", "tier=web")
    manifest = reader(
        "create", "service", "clusterip", "my-svc", "--clusterip=None", "-o", "yaml",
        "--dry-run=client",
    )  # fmt: skip
    assert "clusterIP: None" in manifest
    reader("delete", "deployment/nginx", "service/nginx", "hpa/nginx")


@page(f"{MANAGE}/imperative-config")
def test_create_replace_and_delete_from_files(reader, folder):
    path = written(folder, deployment())
    reader("create", "-f", path)
    assert "AlreadyExists" in reader.fails("create", "-f", path)
    # kubectl reads before it writes: what the controller wrote in between is a conflict.
    reader.sees(lambda: was_replaced(reader, written(folder, deployment(replicas=3))))
    assert reader.field("deployment nginx-deployment", ".spec.replicas") == "3"
    assert "nginx-deployment" in reader("get", "-f", path, "-o", "yaml")
    reader("delete", "-f", path)


def was_replaced(reader, path):
    try:
        reader("replace", "-f", path)
    except KubectlFailure as failure:
        if "Conflict" not in failure.stderr:
            raise
        return False
    return True


@page(f"{MANAGE}/update-api-object-kubectl-patch")
def test_three_ways_to_patch(reader):
    reader.apply(workload("Deployment", "patch-demo", template("nginx"), replicas=2))
    extra = {"containers": [{"name": "patch-demo-ctr-2", "image": "redis"}]}
    strategic = {"spec": {"template": {"spec": extra}}}
    reader("patch", "deployment", "patch-demo", "--patch", json.dumps(strategic))
    names = ".spec.template.spec.containers[*].name"
    assert reader.field("deployment patch-demo", names) == "patch-demo-ctr-2 main"
    tolerations = [{"effect": "NoSchedule", "key": "disktype", "value": "ssd"}]
    listed = {"spec": {"template": {"spec": {"tolerations": tolerations}}}}
    reader("patch", "deployment", "patch-demo", "--patch", json.dumps(listed))
    merge = {"spec": {"template": {"spec": {"containers": [{"name": "only", "image": "node"}]}}}}
    reader("patch", "deployment", "patch-demo", "--type", "merge", "--patch", json.dumps(merge))
    assert reader.field("deployment patch-demo", names) == "only"
    operations = [{"op": "replace", "path": "/spec/replicas", "value": 1}]
    reader("patch", "deployment", "patch-demo", "--type", "json", "-p", json.dumps(operations))
    assert reader.field("deployment patch-demo", ".spec.replicas") == "1"
    scale = ("--subresource=scale", "--type=merge", "-p", '{"spec":{"replicas":2}}')
    reader("patch", "deployment", "patch-demo", *scale)
    assert reader.field("deployment patch-demo", ".spec.replicas") == "2"


@page("tasks/administer-cluster/use-cascading-deletion")
def test_cascading_deletion_in_three_ways(reader):
    def made(name):
        reader.apply(workload("ReplicaSet", name, template(name), replicas=1))
        reader.sees(lambda: len(reader.pods(f"app={name}")) == 1)

    made("foreground")
    reader("delete", "rs", "foreground", "--cascade=foreground")
    assert reader.pods("app=foreground") == []
    made("background")
    reader("delete", "rs", "background", "--cascade=background")
    reader.sees(lambda: reader.pods("app=background") == [])
    made("orphan")
    reader("delete", "rs", "orphan", "--cascade=orphan")
    [left] = reader.pods("app=orphan")
    assert not left["metadata"].get("ownerReferences")
    assert not left["metadata"].get("deletionTimestamp")
