"""Names that objects have of others, after those were called something else.

Job: find the object that a field has meant when it was written; write its name (and namespace).
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from sampan.api.objects import Obj
from sampan.cli.errors import CliError
from sampan.cli.kustomize.field_paths import change_at
from sampan.cli.kustomize.field_specs import NameReference
from sampan.cli.kustomize.resource import DEFAULT_NAMESPACE, Gvk, Resource, gvk_of

Same = Callable[[Resource], object]


def mend_references(resources: Sequence[Resource], references: Iterable[NameReference]) -> None:
    """Raises CliError where a name may mean several."""
    for reference in references:
        for spec in reference.referrers:
            for referrer in resources:
                if spec.meets(referrer.original_id.gvk) and spec.meets(referrer.gvk):
                    found = _Referrer(referrer, reference.gvk, spec.path, resources)
                    change_at(referrer.obj, spec, found.mended)


class _Referrer:
    def __init__(
        self, resource: Resource, target: Gvk, path: str, resources: Sequence[Resource]
    ) -> None:
        self._resource, self._target, self._path = resource, target, path
        self._candidates = [each for each in resources if self._may_mean(each)]

    def mended(self, written: Any) -> Any:
        if isinstance(written, list):
            return [self.mended(item) for item in written]
        if isinstance(written, dict):
            return self._mended_mapping(written)
        meant = self._meant(written, self._candidates, lambda each: each.name)
        return written if meant is None else meant.name

    def _mended_mapping(self, written: Obj) -> Obj:
        if "name" not in written:
            raise CliError(
                f"updating name reference in '{self._path}' field of '{self._resource.id}': "
                "path config error; no 'name' field in node"
            )
        candidates = self._candidates
        if (namespace := written.get("namespace")) is not None:
            before = [each for each in candidates if _place(each.original_id) == namespace]
            candidates = before or [each for each in candidates if _place(each.id) == namespace]
        meant = self._meant(written["name"], candidates, lambda each: (each.name, each.namespace))
        if meant is None:
            return written
        named = {**written, "name": meant.name}
        return {**named, "namespace": meant.namespace} if meant.namespace else named

    def _may_mean(self, each: Resource) -> bool:
        """By place: who is in no namespace may mean all; accounts are named from elsewhere, too."""
        own, other = self._resource.id, each.id
        if own.is_cluster_scoped or other.is_cluster_scoped:
            return True
        if own.effective_namespace == other.effective_namespace:
            return True
        return each.gvk.kind == "ServiceAccount" and each.namespace in self._places_of_subjects()

    def _places_of_subjects(self) -> set[str]:
        if self._resource.gvk.kind != "RoleBinding":
            return set()
        subjects = self._resource.obj.get("subjects") or []
        return {
            str(one.get("namespace")) for one in subjects if one.get("kind") == "ServiceAccount"
        }

    def _meant(self, name: Any, candidates: Sequence[Resource], same: Same) -> Resource | None:
        found = [
            each
            for each in candidates
            if any(was.name == name for was in each.previous)
            and any(was.gvk.is_selected_by(self._target) for was in each.previous)
            and self._fits_role(each)
        ]
        for or_nowhere in (True, False):
            if len(found) > 1:
                found = self._from_where_it_comes(found, or_nowhere=or_nowhere)
        if len({same(each) for each in found}) > 1:
            ids = ", ".join(str(each.id) for each in found)
            raise CliError(
                f"updating name reference in '{self._path}' field of '{self._resource.id}': "
                f"found multiple possible referrals: {ids}"
            )
        return found[0] if found else None

    def _from_where_it_comes(
        self, found: Sequence[Resource], *, or_nowhere: bool
    ) -> list[Resource]:
        own = self._resource
        return [each for each in found if each.comes_from_where(own, or_nowhere=or_nowhere)]

    def _fits_role(self, each: Resource) -> bool:
        if not self._path.endswith("roleRef/name"):
            return True
        role = self._resource.obj.get("roleRef") or {}
        if not role.get("apiGroup") or not role.get("kind"):
            return True
        wanted = gvk_of({"group": role["apiGroup"], "kind": role["kind"]})
        return any(was.gvk.is_selected_by(wanted) for was in each.previous)


def _place(found: Any) -> str:
    return str(found.namespace or DEFAULT_NAMESPACE)
