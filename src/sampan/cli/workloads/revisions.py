"""Revisions of workloads: replica sets of a deployment, controller revisions of the others.

Job: the history as values; which one a rollback goes to; how they are shown.
"""

import json

from sampan.api.objects import Obj, annotations_of, controller_of, uid_of
from sampan.cli.errors import CliError
from sampan.cli.objects.infos import Info
from sampan.cli.printers.tabs import align
from sampan.cli.session import Session
from sampan.core.fast_dataclass import dataclass

REVISION = "deployment.kubernetes.io/revision"
CAUSE = "kubernetes.io/change-cause"


@dataclass(frozen=True, slots=True)
class Revision:
    number: int
    cause: str
    template: Obj
    obj: Obj


def of(session: Session, info: Info) -> list[Revision]:
    """Oldest first."""
    kind = info.resource.kind
    if kind == "Deployment":
        found = _replica_sets(session, info)
    elif kind in ("StatefulSet", "DaemonSet"):
        found = _controller_revisions(session, info)
    else:
        raise _unsupported(info, "history", "history viewer")
    return sorted(found, key=lambda revision: revision.number)


def check_rollback(info: Info) -> None:
    if info.resource.kind not in ("Deployment", "StatefulSet", "DaemonSet"):
        raise _unsupported(info, "rollbacker", "rollbacker")


# Kinds that kubectl's visitors know, and have nothing for.
_KNOWN = {
    ("", "Pod"), ("", "ReplicationController"), ("apps", "ReplicaSet"), ("batch", "Job"),
    ("batch", "CronJob"),
}  # fmt: skip


def _unsupported(info: Info, what: str, who: str) -> CliError:
    group, kind = info.resource.group, info.resource.kind
    name = f"{kind}.{group}" if group else kind
    if (group, kind) in _KNOWN:
        return CliError(f'no {who} has been implemented for "{name}"')
    return CliError(
        f'error retrieving {what} for "{name}", no visitor method exists for {{{group} {kind}}}'
    )


def _own(info: Info, objects: list[Obj]) -> list[Obj]:
    uid = uid_of(info.obj)
    return [obj for obj in objects if (controller_of(obj) or {}).get("uid") == uid]


def _replica_sets(session: Session, info: Info) -> list[Revision]:
    path = f"/apis/apps/v1/namespaces/{info.namespace}/replicasets"
    items = session.api.json("GET", path).get("items") or []
    found = []
    for obj in _own(info, items):
        annotations = annotations_of(obj)
        template = json.loads(json.dumps(obj["spec"]["template"]))
        labels = (template.get("metadata") or {}).get("labels") or {}
        labels.pop("pod-template-hash", None)
        number = int(annotations.get(REVISION) or 0)
        found.append(Revision(number, annotations.get(CAUSE, ""), template, obj))
    return found


def _controller_revisions(session: Session, info: Info) -> list[Revision]:
    path = f"/apis/apps/v1/namespaces/{info.namespace}/controllerrevisions"
    items = session.api.json("GET", path).get("items") or []
    found = []
    for obj in _own(info, items):
        template = ((obj.get("data") or {}).get("spec") or {}).get("template") or {}
        template = {key: value for key, value in template.items() if key != "$patch"}
        cause = annotations_of(obj).get(CAUSE, "")
        found.append(Revision(int(obj.get("revision") or 0), cause, template, obj))
    return found


def to_roll_back_to(session: Session, info: Info, wanted: int) -> Revision:
    if wanted < 0:
        raise CliError(f"unable to find specified revision {wanted} in history")
    known = of(session, info)
    if wanted:
        for revision in known:
            if revision.number == wanted:
                return revision
        raise CliError(f"unable to find specified revision {wanted} in history")
    if info.resource.kind == "Deployment" and len(known) < 2:
        raise CliError(f'no rollout history found for deployment "{info.name}"')
    if len(known) < 2:
        raise CliError("no last revision to roll back to")
    return known[-2]


def object_at(info: Info, revision: Revision) -> Obj:
    """The replica set, or the workload as it was then."""
    if info.resource.kind == "Deployment":
        return revision.obj
    from sampan.cli.objects.overrides import overridden_data

    return overridden_data(info.obj, revision.obj.get("data") or {}, "strategic")


def table(known: list[Revision]) -> str:
    rows = [["REVISION", "CHANGE-CAUSE"]]
    rows += [[str(revision.number), revision.cause or "<none>"] for revision in known]
    return align(rows, minimum=0, padding=2)


def template_text(revision: Revision) -> str:
    """As its object has it, hash and all; its columns are tabs, as kubectl leaves them here."""
    from sampan.cli.describe.pod import template_lines
    from sampan.cli.describe.writer import Writer

    template = (revision.obj.get("spec") or {}).get("template") or revision.template
    writer = Writer()
    writer.line(0, "Pod Template:")
    template_lines(writer, template)
    return writer.tabbed_text()
