"""One object of a kustomization, and what it has been called so far.

Job: ids, and which of them a selector or a reference means.
Invariant: every id that an object has had is kept: whatever was written before it got another name
    still means it.
"""

from collections.abc import Sequence

from sampan.api.objects import Obj
from sampan.api.resources import by_kind
from sampan.core.fast_dataclass import dataclass

DEFAULT_NAMESPACE = "default"
_NOWHERE = "_non_namespaceable_"  # of what is in no namespace


@dataclass(frozen=True, slots=True)
class Gvk:
    group: str = ""
    version: str = ""
    kind: str = ""

    def is_selected_by(self, other: "Gvk") -> bool:
        """What `other` leaves out is anything."""
        pairs = ((self.group, other.group), (self.version, other.version), (self.kind, other.kind))
        return all(wanted in ("", own) for own, wanted in pairs)


def gvk_of(obj: Obj) -> Gvk:
    """Of an object, or of whatever names a kind by group, version and kind."""
    if "apiVersion" in obj:
        group, _, version = str(obj["apiVersion"]).rpartition("/")
    else:
        group, version = str(obj.get("group") or ""), str(obj.get("version") or "")
    return Gvk(group, version, str(obj.get("kind") or ""))


@dataclass(frozen=True, slots=True)
class Id:
    gvk: Gvk
    name: str
    namespace: str

    @property
    def is_cluster_scoped(self) -> bool:
        """What nobody knows is in a namespace."""
        gvk = self.gvk
        version = f"{gvk.group}/{gvk.version}" if gvk.group else gvk.version
        known = by_kind(version, gvk.kind)
        return known is not None and not known.namespaced

    @property
    def effective_namespace(self) -> str:
        return _NOWHERE if self.is_cluster_scoped else self.namespace or DEFAULT_NAMESPACE

    def is_selected_by(self, selector: Obj) -> bool:
        """Of a replacement: by whole words."""
        namespace = selector.get("namespace") or ""
        return (
            namespace in ("", self.effective_namespace)
            and (selector.get("name") or "") in ("", self.name)
            and self.gvk.is_selected_by(gvk_of(selector))
        )

    def is_same(self, other: "Id") -> bool:
        same_kind = (self.gvk.group, self.gvk.kind) == (other.gvk.group, other.gvk.kind)
        same_place = self.effective_namespace == other.effective_namespace
        return same_kind and same_place and self.name == other.name

    def __str__(self) -> str:
        gvk = self.gvk
        kind = f"{gvk.kind or '[noKind]'}.{gvk.version or '[noVer]'}.{gvk.group or '[noGrp]'}"
        return f"{kind}/{self.name or '[noName]'}.{self.namespace or '[noNs]'}"


class Resource:
    __slots__ = (
        "behavior", "changes", "needs_hash", "obj", "origin", "prefixes", "previous", "suffixes",
    )  # fmt: skip

    def __init__(self, obj: Obj, origin: Sequence[str] = ()) -> None:
        """`origin`: where it comes from, in lines."""
        self.obj, self.origin = obj, origin
        self.changes: list[Sequence[str]] = []  # who changed it, each in lines
        self.previous: list[Id] = []
        self.prefixes: list[str] = []
        self.suffixes: list[str] = []
        self.needs_hash = False
        self.behavior = "create"

    @property
    def gvk(self) -> Gvk:
        return gvk_of(self.obj)

    @property
    def name(self) -> str:
        return str((self.obj.get("metadata") or {}).get("name") or "")

    @property
    def namespace(self) -> str:
        return str((self.obj.get("metadata") or {}).get("namespace") or "")

    @property
    def id(self) -> Id:
        return Id(self.gvk, self.name, self.namespace)

    @property
    def original_id(self) -> Id:
        return self.previous[0] if self.previous else self.id

    @property
    def ids(self) -> Sequence[Id]:
        return (*self.previous, self.id)

    def remember(self) -> None:
        """It is about to be called something else."""
        if self.id not in self.previous:
            self.previous.append(self.id)

    def comes_from_where(self, other: "Resource", *, or_nowhere: bool) -> bool:
        """Whether the two got their names' additions from the same kustomizations."""
        return all(
            (or_nowhere and not (ours and theirs)) or _same_end(ours, theirs)
            for ours, theirs in (
                (self.prefixes, other.prefixes), (self.suffixes, other.suffixes),
            )
        )  # fmt: skip


def _same_end(one: Sequence[str], two: Sequence[str]) -> bool:
    length = min(len(one), len(two))
    return (length == 0 and not (one or two)) or (length > 0 and one[-length:] == two[-length:])
