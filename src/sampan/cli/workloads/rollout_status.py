"""What a rollout waits for, in kubectl's sentences.

Job: one sentence and whether it is done, from a workload's spec and status; follow until it is.
"""

from sampan.api.objects import Obj
from sampan.api.rules.conditions import condition_of
from sampan.cli.errors import CliError
from sampan.cli.flags import Values
from sampan.cli.objects.discovery import ApiResource
from sampan.cli.objects.infos import Info
from sampan.cli.session import Session

_KINDS = {("apps", "Deployment"), ("apps", "DaemonSet"), ("apps", "StatefulSet")}


def sentence(obj: Obj, wanted_revision: int = 0) -> tuple[str, bool]:
    kind = obj["kind"]
    if kind == "Deployment":
        return _deployment(obj, wanted_revision)
    return _daemon_set(obj) if kind == "DaemonSet" else _stateful_set(obj)


def check_kind(resource: ApiResource) -> None:
    if (resource.group, resource.kind) not in _KINDS:
        named = f"{resource.kind}.{resource.group}" if resource.group else resource.kind
        raise CliError(f"no status viewer has been implemented for {named}")


def _is_observed(obj: Obj) -> bool:
    observed = (obj.get("status") or {}).get("observedGeneration") or 0
    return int(obj["metadata"].get("generation") or 0) <= int(observed)


def _check_revision(obj: Obj, wanted_revision: int) -> None:
    if not wanted_revision:
        return
    annotations = obj["metadata"].get("annotations") or {}
    revision = int(annotations.get("deployment.kubernetes.io/revision") or 0)
    if revision != wanted_revision:
        raise CliError(
            f"desired revision ({wanted_revision}) is different from the running revision "
            f"({revision})"
        )


def _check_progress(obj: Obj) -> None:
    condition = condition_of(obj, "Progressing")
    if condition is not None and condition.get("reason") == "ProgressDeadlineExceeded":
        name = obj["metadata"]["name"]
        raise CliError(f'deployment "{name}" exceeded its progress deadline')


def _deployment(obj: Obj, wanted_revision: int) -> tuple[str, bool]:
    status, name = obj.get("status") or {}, obj["metadata"]["name"]
    _check_revision(obj, wanted_revision)
    if not _is_observed(obj):
        return "Waiting for deployment spec update to be observed...", False
    _check_progress(obj)
    wanted = obj["spec"].get("replicas", 1)
    updated, total = status.get("updatedReplicas") or 0, status.get("replicas") or 0
    available = status.get("availableReplicas") or 0
    start = f'Waiting for deployment "{name}" rollout to finish: '
    if updated < wanted:
        return f"{start}{updated} out of {wanted} new replicas have been updated...", False
    if total > updated:
        return f"{start}{total - updated} old replicas are pending termination...", False
    if available < updated:
        return f"{start}{available} of {updated} updated replicas are available...", False
    return f'deployment "{name}" successfully rolled out', True


def _daemon_set(obj: Obj) -> tuple[str, bool]:
    status, name = obj.get("status") or {}, obj["metadata"]["name"]
    strategy = (obj["spec"].get("updateStrategy") or {}).get("type")
    if strategy != "RollingUpdate":
        raise CliError("rollout status is only available for RollingUpdate strategy type")
    if not _is_observed(obj):
        return "Waiting for daemon set spec update to be observed...", False
    wanted = status.get("desiredNumberScheduled") or 0
    updated, available = (
        status.get("updatedNumberScheduled") or 0,
        status.get("numberAvailable") or 0,
    )
    start = f'Waiting for daemon set "{name}" rollout to finish: '
    if updated < wanted:
        return f"{start}{updated} out of {wanted} new pods have been updated...", False
    if available < wanted:
        return f"{start}{available} of {wanted} updated pods are available...", False
    return f'daemon set "{name}" successfully rolled out', True


def _stateful_set(obj: Obj) -> tuple[str, bool]:
    status, spec = obj.get("status") or {}, obj["spec"]
    if (spec.get("updateStrategy") or {}).get("type") != "RollingUpdate":
        raise CliError("rollout status is only available for RollingUpdate strategy type")
    if not status.get("observedGeneration") or not _is_observed(obj):
        return "Waiting for statefulset spec update to be observed...", False
    wanted = spec.get("replicas", 1)
    ready, updated = status.get("readyReplicas") or 0, status.get("updatedReplicas") or 0
    if ready < wanted:
        return f"Waiting for {wanted - ready} pods to be ready...", False
    rolling = (spec.get("updateStrategy") or {}).get("rollingUpdate")
    if rolling is not None:
        partition = rolling.get("partition")
        if partition is not None and updated < wanted - partition:
            return (
                f"Waiting for partitioned roll out to finish: {updated} out of "
                f"{wanted - partition} new pods have been updated...",
                False,
            )
        return f"partitioned roll out complete: {updated} new pods have been updated...", True
    if status.get("updateRevision") != status.get("currentRevision"):
        return (
            f"waiting for statefulset rolling update to complete {updated} pods at revision "
            f"{status.get('updateRevision')}...",
            False,
        )
    return (
        f"statefulset rolling update complete {status.get('currentReplicas') or 0} pods at "
        f"revision {status.get('currentRevision')}...",
        True,
    )


def follow(session: Session, values: Values, info: Info) -> None:
    """Every change is told, until it is done."""
    check_kind(info.resource)
    seconds = values["timeout"] or float("inf")
    deadline = session.clock.monotonic() + seconds

    def is_done(obj: Obj) -> bool:
        text, done = sentence({**obj, "kind": info.resource.kind}, values["revision"])
        session.print(text)
        session.io.stdout.flush()
        return done or not values["watch"]

    kind = info.path.rpartition("/")[0]
    query = {"fieldSelector": f"metadata.name={info.name}"}
    while True:
        answer = session.api.json("GET", kind, query)
        if any(is_done(obj) for obj in answer.get("items") or []):
            return
        version = (answer.get("metadata") or {}).get("resourceVersion") or ""
        left = deadline - session.clock.monotonic()
        more = {**query, "resourceVersion": version}
        for event, obj in session.api.watch(kind, more, seconds=max(left, 0.0)):
            if event == "DELETED":
                raise CliError("object has been deleted")
            if event in ("ADDED", "MODIFIED") and is_done(obj):
                return
        if session.clock.monotonic() >= deadline:
            raise CliError("timed out waiting for the condition")
