"""`sampan why KIND/NAME` for every kind that the API has.

Job: read the object, the events about it and its pods; ask the pure diagnosis. Reads only.
"""

from sampan.api.errors import ApiError, NotFound
from sampan.api.objects import Obj, name_of, namespace_of, uid_of
from sampan.api.rules.pods import node_name
from sampan.cli.describe.events import last_seen
from sampan.cli.flags import parse
from sampan.cli.objects import selection
from sampan.cli.session import GLOBAL_FLAGS, Io, Session
from sampan.cli.workloads.pods_of import WORKLOADS, label_query
from sampan.cmd.diagnosis.claims import why_not_bound
from sampan.cmd.diagnosis.object_diagnosis import PodFacts, object_findings, state_of
from sampan.cmd.diagnosis.pod_diagnosis import Finding


def about(what: str, namespace: str, kubeconfig_path: str) -> tuple[str, list[Finding]]:
    """A sentence on its state, and what was found; raises what the client's verbs raise."""
    session = Session("sampan", "sampan why", Io())
    arguments = [f"--namespace={namespace}"]
    arguments += [f"--kubeconfig={kubeconfig_path}"] if kubeconfig_path else []
    session.values = parse(GLOBAL_FLAGS, arguments)
    try:
        [target] = selection.targets(session, [what])
        obj = session.api.json("GET", target.resource.path(namespace, target.name))
        obj.setdefault("kind", target.resource.kind)
        found = object_findings(obj, _events(session, obj), _pods(session, obj))
        if obj["kind"] == "PersistentVolumeClaim":
            found = [*_claim(session, obj), *found]
        where = f"{namespace_of(obj)}/" if namespace_of(obj) else ""
        return f"{obj['kind'].lower()} {where}{name_of(obj)}: {state_of(obj)}.", found
    finally:
        session.close()


def _events(session: Session, obj: Obj) -> list[Obj]:
    """The oldest first; none where they may not be read."""
    path = f"/api/v1/namespaces/{namespace_of(obj) or 'default'}/events"
    name, kind = name_of(obj), obj["kind"]
    fields = f"involvedObject.name={name},involvedObject.kind={kind}"
    try:
        items = session.api.json("GET", path, {"fieldSelector": fields}).get("items") or []
    except ApiError:
        return []
    own = (None, "", uid_of(obj), name)  # nodes are named by their name as uid
    return sorted(
        (item for item in items if (item.get("involvedObject") or {}).get("uid") in own),
        key=last_seen,
    )


def _pods(session: Session, obj: Obj) -> list[PodFacts]:
    kind = obj["kind"]
    if kind not in WORKLOADS or kind == "Service" or not (obj.get("spec") or {}).get("selector"):
        return []
    path = f"/api/v1/namespaces/{namespace_of(obj)}/pods"
    query = {"labelSelector": label_query(kind, obj["spec"]["selector"])}
    items = session.api.json("GET", path, query).get("items") or []
    return [
        PodFacts(pod, _events(session, {**pod, "kind": "Pod"}), _node(session, node_name(pod)))
        for pod in items
    ]


def _node(session: Session, name: str) -> Obj | None:
    """None where there is none; empty where it may not be read: nothing is known of it."""
    try:
        return session.api.json("GET", f"/api/v1/nodes/{name}") if name else None
    except NotFound:
        return None
    except ApiError:
        return {}


def _claim(session: Session, claim: Obj) -> list[Finding]:
    if (claim.get("status") or {}).get("phase") == "Bound":
        return []
    objects: list[Obj] = []
    for path, kind in (
        ("/apis/storage.k8s.io/v1/storageclasses", "StorageClass"), ("/api/v1/nodes", "Node")
    ):  # fmt: skip
        try:
            items = session.api.json("GET", path).get("items") or []
        except ApiError:
            continue
        objects += [{**item, "kind": kind} for item in items]
    what = (claim.get("status") or {}).get("phase") or "Pending"
    return [Finding(f"claim {name_of(claim)}", what, *why_not_bound(claim, objects))]
