"""ReferenceGrants: which references to other namespaces are allowed.

Job: ReferenceGrants and a reference → whether it may be followed. Pure.
Invariant: what lies in the namespace of who refers to it needs no permission; whatever else does.
"""

from collections.abc import Iterable

from sampan.api.objects import Obj, namespace_of
from sampan.core.fast_dataclass import dataclass

GROUP = "gateway.networking.k8s.io"


@dataclass(frozen=True, slots=True)
class Reference:
    """A Gateway's or route's, to something of the core group."""

    from_kind: str
    from_namespace: str
    to_kind: str
    namespace: str
    name: str

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


def is_permitted(reference: Reference, grants: Iterable[Obj]) -> bool:
    return reference.namespace == reference.from_namespace or any(
        namespace_of(grant) == reference.namespace and _grants(grant, reference) for grant in grants
    )


def _grants(grant: Obj, reference: Reference) -> bool:
    spec = grant.get("spec") or {}
    wanted = GROUP, reference.from_kind, reference.from_namespace
    from_them = any(
        (entry.get("group"), entry.get("kind"), entry.get("namespace")) == wanted
        for entry in spec.get("from") or ()
    )
    return from_them and any(
        not entry.get("group")
        and entry.get("kind") == reference.to_kind
        and entry.get("name") in (None, "", reference.name)
        for entry in spec.get("to") or ()
    )
