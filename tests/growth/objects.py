"""The objects that the workloads make."""

from sampan.api.objects import Obj

LABELS = 20  # pods are of so many apps, where it matters which


def named(
    api_version: str, kind: str, name: str, /, namespace: str = "default", **rest: Obj
) -> Obj:
    meta = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": api_version, "kind": kind, "metadata": meta, **rest}


def config_map(number: int, owner: Obj | None = None) -> Obj:
    obj = named("v1", "ConfigMap", f"config-{number:06d}", data={"key": "value"})
    if owner is not None:
        meta = owner["metadata"]
        words = {"apiVersion": owner["apiVersion"], "kind": owner["kind"]}
        obj["metadata"]["ownerReferences"] = [{**words, "name": meta["name"], "uid": meta["uid"]}]
    return obj


def pod_spec(**rest: Obj) -> Obj:
    requests = {"requests": {"cpu": "1m", "memory": "1Mi"}}
    return {"containers": [{"name": "main", "image": "app:1", "resources": requests}], **rest}


def pod(number: int, **rest: Obj) -> Obj:
    obj = named("v1", "Pod", f"pod-{number:06d}", spec=pod_spec(**rest))
    obj["metadata"]["labels"] = {"app": f"app-{number % LABELS}", "number": str(number)}
    return obj


def template(app: str, annotations: dict[str, str] | None = None, **rest: Obj) -> Obj:
    meta = {"labels": {"app": app}, "annotations": annotations or {}}
    return {"metadata": meta, "spec": pod_spec(**rest)}


def workload(kind: str, name: str, **spec: Obj) -> Obj:
    """A Deployment, a ReplicaSet, a StatefulSet or a DaemonSet, with an app of its own."""
    selector = {"matchLabels": {"app": name}}
    whole = {"selector": selector, "template": template(name), **spec}
    return named("apps/v1", kind, name, spec=whole)


def job(name: str, **spec: Obj) -> Obj:
    ends = {"simulated.sampan.dev/exit-after-seconds": "0"}
    return named(
        "batch/v1", "Job", name,
        spec={"template": template(name, ends, restartPolicy="Never"), **spec},
    )  # fmt: skip


def service(name: str, **selector: str) -> Obj:
    ports = [{"port": 80, "targetPort": 8080}]
    return named("v1", "Service", name, spec={"selector": selector, "ports": ports})


def volume(number: int) -> Obj:
    spec = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "by-hand",
        "hostPath": {"path": f"/v/{number}"},
    }
    return named("v1", "PersistentVolume", f"volume-{number}", "", spec=spec)


def claim(number: int, size: str) -> Obj:
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "by-hand",
        "resources": {"requests": {"storage": size}},
    }
    return named("v1", "PersistentVolumeClaim", f"claim-{number}", spec=spec)
