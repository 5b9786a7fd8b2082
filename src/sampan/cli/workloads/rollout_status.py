"""What a rollout waits for, in kubectl's sentences.

Job: one sentence and whether it is done, from a workload's spec and status; follow until it is.
"""

import time

from sampan.api.objects import Obj
from sampan.api.rules.conditions import condition_of
from sampan.cli.errors import CliError
from sampan.cli.flags import Values
from sampan.cli.objects.infos import Info
from sampan.cli.session import Session

PAUSE_SECONDS = 0.2


def sentence(obj: Obj, wanted_revision: int = 0) -> tuple[str, bool]:
    kind = obj["kind"]
    if kind == "Deployment":
        return _deployment(obj, wanted_revision)
    if kind == "DaemonSet":
        return _daemon_set(obj)
    if kind == "StatefulSet":
        return _stateful_set(obj)
    group = str(obj.get("apiVersion") or "").rpartition("/")[0]
    named = f"{kind}.{group}" if group else kind
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
    if not _is_observed(obj):
        return "Waiting for statefulset spec update to be observed...", False
    wanted = spec.get("replicas", 1)
    ready, updated = status.get("readyReplicas") or 0, status.get("updatedReplicas") or 0
    if ready < wanted:
        return f"Waiting for {wanted - ready} pods to be ready...", False
    partition = ((spec.get("updateStrategy") or {}).get("rollingUpdate") or {}).get(
        "partition"
    ) or 0
    if partition and updated < wanted - partition:
        return (
            f"Waiting for partitioned roll out to finish: {updated} out of {wanted - partition} new "
            "pods have been updated...",
            False,
        )
    if partition:
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
    deadline = session.clock.monotonic() + values["timeout"] if values["timeout"] else None
    obj, said = info.obj, ""
    obj.setdefault("kind", info.resource.kind)
    while True:
        text, is_done = sentence(obj, values["revision"])
        if text != said:
            session.print(text)
            session.io.stdout.flush()
            said = text
        if is_done or not values["watch"]:
            return
        if deadline is not None and session.clock.monotonic() >= deadline:
            raise CliError("timed out waiting for the condition")
        time.sleep(PAUSE_SECONDS)
        obj = session.api.json("GET", info.path)
