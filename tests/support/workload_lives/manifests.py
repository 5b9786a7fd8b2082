"""Objects that lives are made of, as small as the API takes them.

Job: builders with the words that scenarios vary; `life` and `stop` say how the pods live.
"""

from collections.abc import Mapping
from typing import Any

from sampan.api.objects import Obj

LABELS = {"a": "b"}


def template(
    life: str = "run",
    stop: str = "",
    labels: Mapping[str, str] | None = None,
    cpu: str = "",
    image: str = "x",
    **spec: Any,
) -> Obj:
    container: Obj = {"name": "c", "image": image}
    if cpu:
        container["resources"] = {"requests": {"cpu": cpu}}
    notes = {"life": life, **({"stop": stop} if stop else {})}
    meta = {"labels": dict(LABELS if labels is None else labels), "annotations": notes}
    return {"metadata": meta, "spec": {"containers": [container], **spec}}


def job(name: str = "j", *, pod: Mapping[str, Any] | None = None, **spec: Any) -> Obj:
    words = {"life": "ok:1", "labels": {"k": "v"}, "restartPolicy": "Never", **(pod or {})}
    return _object("batch/v1", "Job", name, {**spec, "template": template(**words)})


def cron_job(name: str = "c", *, pod: Mapping[str, Any] | None = None, **spec: Any) -> Obj:
    job_spec = spec.pop("job", {})
    words = {"life": "ok:1", "restartPolicy": "Never", **(pod or {})}
    made = {"spec": {**job_spec, "template": template(**words)}}
    return _object(
        "batch/v1", "CronJob", name, {"schedule": "* * * * *", **spec, "jobTemplate": made}
    )


def deployment(
    name: str = "d", replicas: int = 3, *, pod: Mapping[str, Any] | None = None, **spec: Any
) -> Obj:
    return _object("apps/v1", "Deployment", name, _selecting(pod, replicas=replicas, **spec))


def replica_set(
    name: str = "r", replicas: int = 2, *, pod: Mapping[str, Any] | None = None, **spec: Any
) -> Obj:
    return _object("apps/v1", "ReplicaSet", name, _selecting(pod, replicas=replicas, **spec))


def stateful_set(
    name: str = "s", replicas: int = 3, *, pod: Mapping[str, Any] | None = None, **spec: Any
) -> Obj:
    words = _selecting(pod, replicas=replicas, serviceName="s", **spec)
    return _object("apps/v1", "StatefulSet", name, words)


def daemon_set(name: str = "m", *, pod: Mapping[str, Any] | None = None, **spec: Any) -> Obj:
    return _object("apps/v1", "DaemonSet", name, _selecting(pod, **spec))


def replication_controller(name: str = "r", replicas: int = 2, **spec: Any) -> Obj:
    words = {"replicas": replicas, "selector": LABELS, "template": template(), **spec}
    return _object("v1", "ReplicationController", name, words)


def budget(name: str = "p", labels: Mapping[str, str] | None = None, **spec: Any) -> Obj:
    words = {"selector": {"matchLabels": dict(LABELS if labels is None else labels)}, **spec}
    return _object("policy/v1", "PodDisruptionBudget", name, words)


def pod(name: str = "x", *, labels: Mapping[str, str] | None = None, **words: Any) -> Obj:
    made = template(**words, labels=labels)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        **made,
        "metadata": {"name": name, **made["metadata"]},
    }


def service(name: str = "s", **spec: Any) -> Obj:
    ports = [{"name": "h", "port": 80, "targetPort": 8080}]
    return _object("v1", "Service", name, {"selector": LABELS, "ports": ports, **spec})


def image(name: str) -> Obj:
    """The patch that gives a template another image."""
    return {"template": {"spec": {"containers": [{"name": "c", "image": name}]}}}


def claim_template(name: str = "v", **spec: Any) -> Obj:
    words = {
        "storageClassName": "none", "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}}, **spec,
    }  # fmt: skip
    return {"metadata": {"name": name}, "spec": words}


def made(api_version: str, kind: str, name: str, spec: Obj | None = None, **rest: Any) -> Obj:
    """Any other object; `meta` has more of its metadata."""
    found = _object(api_version, kind, name, spec)
    found["metadata"] |= rest.pop("meta", {})
    return {**found, **rest}


def _selecting(pod: Mapping[str, Any] | None, **spec: Any) -> Obj:
    words = template(**(pod or {}))
    labels = words["metadata"]["labels"]
    return {"selector": {"matchLabels": dict(labels)}, "template": words, **spec}


def _object(api_version: str, kind: str, name: str, spec: Obj | None) -> Obj:
    meta: Obj = {"name": name}
    found: Obj = {"apiVersion": api_version, "kind": kind, "metadata": meta}
    return found if spec is None else {**found, "spec": spec}
