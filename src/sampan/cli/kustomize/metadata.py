"""What a build notes on its objects: where they come from, and who changed them.

Job: origins and transformations as annotations, the label of kustomize: as `buildMetadata` of the
    topmost kustomization asks for them. Pure.
"""

from collections.abc import Iterable, Sequence

from sampan.api.objects import Obj
from sampan.cli.kustomize.resource import Resource

ORIGIN = "config.kubernetes.io/origin"
TRANSFORMATIONS = "alpha.config.kubernetes.io/transformations"
MANAGED_BY, KUSTOMIZE = "app.kubernetes.io/managed-by", "kustomize-v5.7.1"


def by_plugin(place: str, document: Obj) -> list[str]:
    """The lines of a generator or transformer, configured in a file; a field of a kustomization has
    no name."""
    name = (document.get("metadata") or {}).get("name")
    lines = [f"configuredIn: {place}", "configuredBy:", "  apiVersion: builtin",
             f"  kind: {document['kind']}"]  # fmt: skip
    return [*lines, f"  name: {name}"] if name else lines


def noted(resources: Iterable[Resource], wanted: Sequence[str]) -> None:
    for resource in resources:
        meta = resource.obj.setdefault("metadata", {})
        annotations = dict(meta.get("annotations") or {})
        if "originAnnotations" in wanted and resource.origin:
            annotations[ORIGIN] = "".join(f"{line}\n" for line in resource.origin)
        if "transformerAnnotations" in wanted and resource.changes:
            annotations[TRANSFORMATIONS] = "".join(
                f"{'- ' if not number else '  '}{line}\n"
                for change in resource.changes
                for number, line in enumerate(change)
            )
        if annotations:
            meta["annotations"] = annotations
        if "managedByLabel" in wanted:
            meta["labels"] = {**(meta.get("labels") or {}), MANAGED_BY: KUSTOMIZE}
