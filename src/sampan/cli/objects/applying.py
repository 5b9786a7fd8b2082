"""Client-side apply of one object: what `apply` sends and `diff` shows.

Job: original (the annotation), modified (the file) and current (the server) become one patch.
"""

import json
import time

from sampan.api.errors import ApiError
from sampan.api.objects import Obj
from sampan.cli.errors import CliError
from sampan.cli.objects import three_way, writing
from sampan.cli.objects.infos import Info
from sampan.cli.session import Session

TRIES = 5


def last_applied_of(obj: Obj) -> Obj | None:
    text = ((obj.get("metadata") or {}).get("annotations") or {}).get(writing.LAST_APPLIED)
    if not text:
        return None
    try:
        found: Obj = json.loads(text)
    except ValueError:
        return None
    return found


def current(session: Session, info: Info) -> Obj | None:
    try:
        return session.api.json("GET", info.path)
    except ApiError as error:
        if error.reason == "NotFound":
            return None
        raise


def patch_for(info: Info, modified: Obj, live: Obj) -> tuple[Obj, str]:
    """The patch and its type: strategic where the kind is built in."""
    from sampan.cli.objects.typed import schema

    original = last_applied_of(live) or {}
    kind = (info.resource.api_version, info.resource.kind)
    if schema().type_of(*kind) is None:
        return three_way.merge_patch(original, modified, live), "merge"
    return three_way.strategic_merge_patch(schema(), original, modified, live), "strategic"


def require_no_conflict(session: Session, info: Info, modified: Obj, live: Obj) -> None:
    """--overwrite=false: what the file changes and what somebody else has changed since the last
    apply are not the same fields."""
    from sampan.cli.objects.typed import schema
    from sampan.cli.printers.json_text import compact
    from sampan.cli.printers.yaml_text import to_yaml

    original = last_applied_of(live) or {}
    patch, kind = patch_for(info, modified, live)
    if kind == "merge":
        return  # as kubectl: what has no published type is merged over
    changes = three_way.two_way_patch(schema(), original, live)
    if not patch or not three_way.has_conflicts(patch, changes):
        return
    resource = info.resource
    why = (
        f"patch:\n{to_yaml(patch)}\nconflicts with changes made from original to current:\n"
        f"{to_yaml(changes)}\n"
    )
    for spec in ("openapi v3", "openapi"):
        session.complain(f"warning: error calculating patch from {spec} spec: {why}")
    group_version = f"{resource.group}/{resource.version}"
    documents = (("original", original), ("modified", modified), ("current", live))
    texts = "\n".join(
        f"{name}:\n{compact(document, ordered=False)}\n" for name, document in documents
    )
    raise CliError(
        f'error when applying patch:\n\nto:\nResource: "{group_version}, '
        f'Resource={resource.plural}", GroupVersionKind: "{group_version}, Kind={resource.kind}"\n'
        f'Name: "{info.name}", Namespace: "{info.namespace}"\n'
        f'for: "{info.source}": error when patching "{info.source}": creating patch with:\n'
        f"{texts}\nfor: {why.removesuffix(chr(10))}"
    )


def send(
    session: Session,
    info: Info,
    modified: Obj,
    live: Obj,
    query: dict[str, str],
) -> tuple[Obj, bool]:
    """The object afterwards, and whether anything was to be changed. A conflict is tried again."""
    for attempt in range(TRIES):
        patch, kind = patch_for(info, modified, live)
        if not patch:
            return live, False
        try:
            return writing.patch(session, info.path, patch, kind, query), True
        except ApiError as error:
            if error.reason != "Conflict" or attempt == TRIES - 1:
                raise
        time.sleep(0.2 * attempt)
        again = current(session, info)
        if again is None:
            raise CliError(f"{info.label} was deleted meanwhile")
        live = again
    raise AssertionError("unreachable")
