"""Server-side apply of one object, and the way there from client-side apply.

Job: send the configuration; where kubectl applied the object client-side before, hand its fields on.
Invariant: after a migration no writer but the applier holds what client-side apply had written.
"""

from collections.abc import Iterable

from sampan.api.apply.field_sets import FieldSet, union
from sampan.api.errors import ApiError
from sampan.api.objects import Obj
from sampan.cli.common_flags import DryRun
from sampan.cli.errors import CliError
from sampan.cli.flags import Values
from sampan.cli.objects import applying, writing
from sampan.cli.objects.infos import Info
from sampan.cli.session import Session

MANAGER = "kubectl"  # the server keeps the annotation true for this one only
CLIENT_SIDE_MANAGER = "kubectl-client-side-apply"
ANNOTATION_MANAGER = "kubectl-last-applied"
ANNOTATION_PATH = ("f:metadata", "f:annotations", f"f:{writing.LAST_APPLIED}")
APPLY, UPDATE = "Apply", "Update"
CONFLICT_ADVICE = """
Please review the fields above--they currently have other managers. Here
are the ways you can resolve this warning:
* If you intend to manage all of these fields, please re-run the apply
  command with the `--force-conflicts` flag.
* If you do not intend to manage all of the fields, please edit your
  manifest to remove references to the fields that should keep their
  current managers.
* You may co-own fields by updating your manifest to match the existing
  value; in this case, you'll become the manager if the other manager(s)
  stop managing the field (remove it from their configuration).
See https://kubernetes.io/docs/reference/using-api/server-side-apply/#conflicts"""
NOT_FATAL = "This is non-fatal and will be retried next time you apply. Error: {error}"
ANNOTATION_NOT_KEPT = f"failed to migrate {writing.LAST_APPLIED} for Server-Side Apply. {NOT_FATAL}"
NOT_MIGRATED = f"server rejected managed fields migration to Server-Side Apply. {NOT_FATAL}"
NOT_REAPPLIED = (
    f"failed to re-apply configuration after performing Server-Side Apply migration. {NOT_FATAL}"
)

USAGE = (
    "Apply runs in the server instead of the client. Called as sampan that is the default, unless "
    "--force, --overwrite=false or --dry-run=client asks for what only the client does."
)


def is_wanted(session: Session, values: Values, strategy: DryRun) -> bool:
    if values.is_set("server-side") or session.program == "kubectl":
        return bool(values["server-side"])
    needs_client = values.get("force") or values.get("overwrite") is False or strategy == "client"
    return not needs_client


def send(session: Session, info: Info, query: dict[str, str], subresource: str = "") -> Obj:
    """The object afterwards, with nothing left over from client-side applies."""
    path = f"{info.path}/{subresource}" if subresource else info.path
    try:
        obj = writing.patch(session, path, info.obj, "apply", query)
    except ApiError as error:
        if error.reason == "Conflict" and error.message.startswith("Apply failed"):
            raise CliError(error.message + CONFLICT_ADVICE) from error
        raise
    if not client_side_managers(obj):
        return obj
    try:
        obj = _keep_annotation(session, info, obj, query)
    except ApiError as error:
        session.print_warning(ANNOTATION_NOT_KEPT.format(error=error.message))
        return obj
    try:
        _migrate(session, info, obj, query)
    except ApiError as error:
        session.print_warning(NOT_MIGRATED.format(error=error.message))
        return obj
    try:  # once more: only now does what the file no longer has belong to nobody
        return writing.patch(session, info.path, info.obj, "apply", query)
    except ApiError as error:
        session.print_warning(NOT_REAPPLIED.format(error=error.message))
        return obj


def _keep_annotation(session: Session, info: Info, obj: Obj, query: dict[str, str]) -> Obj:
    """The annotation gets an owner of its own: an apply without it would remove it, and a later
    client-side apply needs it."""
    if query["fieldManager"] != MANAGER or _owners(obj, APPLY):
        return obj
    meta = obj["metadata"]
    only = {
        "name": meta["name"],
        **({"namespace": meta["namespace"]} if meta.get("namespace") else {}),
        "annotations": {writing.LAST_APPLIED: meta["annotations"][writing.LAST_APPLIED]},
    }
    config = {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": only}
    own = {key: value for key, value in query.items() if key != "force"}
    return writing.patch(
        session, info.path, config, "apply", {**own, "fieldManager": ANNOTATION_MANAGER}
    )


def _migrate(session: Session, info: Info, obj: Obj, query: dict[str, str]) -> None:
    own = {key: value for key, value in query.items() if key != "force"}
    names = client_side_managers(obj)
    for attempt in range(applying.TRIES):
        meta = obj["metadata"]
        entries = migrated(meta.get("managedFields") or [], names, query["fieldManager"])
        change = [
            {"op": "replace", "path": "/metadata/managedFields", "value": entries},
            {
                "op": "replace",
                "path": "/metadata/resourceVersion",
                "value": meta["resourceVersion"],
            },
        ]
        try:
            writing.patch(session, info.path, change, "json", own)
            return
        except ApiError as error:
            if error.reason != "Conflict" or attempt == applying.TRIES - 1:
                raise
        obj = session.api.json("GET", info.path)


def client_side_managers(obj: Obj) -> list[str]:
    """Who wrote the annotation of client-side apply, and so all that stands in it."""
    return list(dict.fromkeys(str(entry["manager"]) for entry in _owners(obj, UPDATE)))


def is_applied(obj: Obj, manager: str) -> bool:
    """Whether this manager has applied it on the server."""
    return any(
        entry.get("operation") == APPLY and entry.get("manager") == manager
        for entry in (obj.get("metadata") or {}).get("managedFields") or []
    )


def migrated(entries: list[Obj], names: Iterable[str], applier: str) -> list[Obj]:
    """The entries, with those of the named updaters in the applier's; as csaupgrade: of several
    versions the applier's own counts, and without an applier the first updater becomes it."""
    for name in names:
        entries = _without_updater(entries, name, applier)
    return entries


def _without_updater(entries: list[Obj], name: str, applier: str) -> list[Obj]:
    mine = [entry for entry in entries if _is(entry, name, UPDATE)]
    if not mine:
        return entries
    target = next((entry for entry in entries if _is(entry, applier, APPLY)), mine[0])
    fields: FieldSet = target.get("fieldsV1") or {}
    same = [entry for entry in mine if entry.get("apiVersion") == target.get("apiVersion")]
    for entry in same[:1]:
        fields = union(fields, entry.get("fieldsV1") or {})
    merged = {**target, "manager": applier, "operation": APPLY, "fieldsV1": fields}
    kept = [entry for entry in entries if entry is target or entry not in mine]
    return [merged if entry is target else entry for entry in kept]


def _is(entry: Obj, manager: str, operation: str) -> bool:
    return (
        entry.get("manager") == manager
        and entry.get("operation") == operation
        and not entry.get("subresource")
    )


def _owners(obj: Obj, operation: str) -> list[Obj]:
    """Entries that hold the annotation of client-side apply."""
    found = []
    for entry in (obj.get("metadata") or {}).get("managedFields") or []:
        node = entry.get("fieldsV1") or {}
        for element in ANNOTATION_PATH:
            node = node.get(element) if node else None
        if node is not None and entry.get("operation") == operation:
            found.append(entry)
    return found
