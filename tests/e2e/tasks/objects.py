"""Objects as task pages have them, and the person who creates and watches them."""

import json

from tests.support.parts.processes import eventually

BUSYBOX = "localhost/test/busybox:1"
WEB = "localhost/test/web:1"  # stands where the pages have nginx: a web server on port 80
WEB_NEXT = "localhost/test/web:2"  # its next release


class Reader:
    """Somebody who follows a page: kubectl in one namespace, and eyes."""

    def __init__(self, kubectl, namespace: str) -> None:
        self.cluster, self.namespace = kubectl, namespace

    def __call__(self, *arguments: str, **options) -> str:
        return self.cluster("-n", self.namespace, *arguments, **options)

    def fails(self, *arguments: str, **options) -> str:
        return self.cluster.fails("-n", self.namespace, *arguments, **options)

    def get(self, *arguments: str):
        return json.loads(self("get", *arguments, "-o", "json"))

    def field(self, what: str, path: str) -> str:
        return self("get", *what.split(), "-o", f"jsonpath={{{path}}}")

    def create(self, *objects) -> None:
        for found in objects:
            self("create", "-f", "-", stdin=json.dumps(found))

    def apply(self, *objects) -> None:
        for found in objects:
            self("apply", "-f", "-", stdin=json.dumps(found))

    def run_pod(self, name: str, *command: str, until: str = "Running", **spec) -> None:
        self.create(pod(name, *command, **spec))
        self.sees_phase(name, until)

    def sees_phase(self, name: str, phase: str) -> None:
        self.sees(lambda: self.field(f"pod {name}", ".status.phase") == phase)

    def ready(self, what: str) -> None:
        self("wait", "--for=condition=Ready", what, "--timeout=60s", seconds=70)

    def rolled_out(self, what: str) -> None:
        self("rollout", "status", what, "--timeout=60s", seconds=70)

    def logs(self, name: str, *more: str) -> str:
        return self("logs", name, *more)

    def exec(self, name: str, *command: str) -> str:
        return self("exec", name, "--", *command)

    def reasons(self, name: str) -> set[str]:
        found = self.get("events", "--field-selector", f"involvedObject.name={name}")
        return {event["reason"] for event in found["items"]}

    def sees(self, question, seconds: float = 60.0):
        return eventually(question, seconds)

    def pods(self, selector: str) -> list[dict]:
        return self.get("pods", "-l", selector)["items"]


def container(name: str = "main", *command: str, image: str = BUSYBOX, **fields) -> dict:
    return {
        "name": name, "image": image, "imagePullPolicy": "IfNotPresent",
        **({"command": list(command)} if command else {}), **fields,
    }  # fmt: skip


def pod(name: str, *command: str, labels=None, annotations=None, container_fields=None, **spec):
    """One container that runs `command`, for ever where there is none."""
    main = container("main", *(command or ("sleep", "3600")), **(container_fields or {}))
    meta = {"name": name, "labels": labels or {}, "annotations": annotations or {}}
    body = {"containers": [main], "terminationGracePeriodSeconds": 1, **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": body}


def template(app: str, *command: str, image: str = WEB, containers=None, **spec) -> dict:
    """The pod template of a workload, labelled app=NAME."""
    found = containers or [container("main", *command, image=image)]
    body = {"containers": found, "terminationGracePeriodSeconds": 1, **spec}
    return {"metadata": {"labels": {"app": app}}, "spec": body}


def workload(kind: str, name: str, pods: dict, **spec) -> dict:
    labels = pods["metadata"]["labels"]
    meta = {"name": name, "labels": labels}
    body = {"selector": {"matchLabels": labels}, "template": pods, **spec}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": meta, "spec": body}


def job(name: str, *command: str, pods: dict | None = None, **spec) -> dict:
    body = pods or template(name, *command, image=BUSYBOX, restartPolicy="Never")
    found = {"template": body, "backoffLimit": 4, **spec}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": found}
