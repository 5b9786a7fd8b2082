"""PodConfig: diffs one source's pods into ADD, UPDATE, DELETE, REMOVE and RECONCILE.

Job: (old set, new set) → ordered updates. Pure; the caller passes the time.
Invariant: applying the changes to the old set gives the new set.
Invariant: a pod is in the set once per uid; what came from a source is never changed in place.
Owner: SyncLoop writes PodConfig, one SourcePods per source.
"""

from collections.abc import Iterable, Mapping
from dataclasses import field
from enum import StrEnum
from functools import lru_cache

from sampan.api.objects import Obj, annotations_of, is_deleted, meta_of, name_of, uid_of
from sampan.api.rules.pods import SOURCE_ANNOTATION
from sampan.core.fast_dataclass import dataclass

SEEN_ANNOTATION = "kubernetes.io/config.seen"
_OURS = (SEEN_ANNOTATION, SOURCE_ANNOTATION)
_DELETION = ("deletionTimestamp", "deletionGracePeriodSeconds")


class PodOperation(StrEnum):
    REMOVE = "REMOVE"  # gone from the source
    ADD = "ADD"
    UPDATE = "UPDATE"  # spec, labels or annotations changed
    DELETE = "DELETE"  # deletion was asked for
    RECONCILE = "RECONCILE"  # only the status differs from what it was


# As config.go sends them: what goes makes room for what comes.
_ORDER = (
    PodOperation.REMOVE,
    PodOperation.ADD,
    PodOperation.UPDATE,
    PodOperation.DELETE,
    PodOperation.RECONCILE,
)


@dataclass(frozen=True, slots=True)
class PodUpdate:
    kind: PodOperation
    pod: Obj


@dataclass(frozen=True, slots=True)
class KnownPod:
    raw: Obj  # as the source sent it
    pod: Obj  # the same with first-seen time and source as annotations


@dataclass(frozen=True, slots=True)
class SourcePods:
    """One source's last set. Not ready: the source has not spoken yet."""

    source: str
    ready: bool = False
    pods: Mapping[str, KnownPod] = field(default_factory=dict)


class PodConfig:
    """The pods of each source, as it last delivered them."""

    def __init__(self, names: Iterable[str]) -> None:
        self._wanted = {name: SourcePods(name) for name in names}
        self._silent = set(self._wanted)

    def all_ready(self) -> bool:
        """Has each of them spoken?"""
        return not self._silent

    def __getitem__(self, name: str) -> SourcePods:
        return self._wanted[name]

    def __setitem__(self, name: str, wanted: SourcePods) -> None:
        self._wanted[name] = wanted
        if wanted.ready:
            self._silent.discard(name)

    def values(self) -> Iterable[SourcePods]:
        return self._wanted.values()


@dataclass(frozen=True, slots=True)
class Merged:
    wanted: SourcePods
    changes: list[PodUpdate]
    refused: list[tuple[Obj, str]]  # pods that cannot be taken, and why


def merge(old: SourcePods, new: Iterable[Obj], seen: str) -> Merged:
    """Compare by uid. `seen` is the moment of this set, as text."""
    by_kind: dict[PodOperation, list[PodUpdate]] = {kind: [] for kind in _ORDER}
    refused: list[tuple[Obj, str]] = []
    pods: dict[str, KnownPod] = {}
    known_pods = old.pods
    for raw in new:
        uid = uid_of(raw)
        before = known_pods.get(uid)
        if before is not None and before.raw is raw and uid not in pods:
            pods[uid] = before  # nearly always: a delivery has every pod of the node
            continue
        if not uid or not name_of(raw):
            refused.append((raw, "pod has no name or no uid"))
            continue
        if uid in pods:
            refused.append((raw, f"pod uid {uid} is there twice"))
            continue
        known = pods[uid] = _known_pod(raw, before, old.source, seen)
        change = (
            PodUpdate(PodOperation.ADD, known.pod) if before is None else _change(before, known)
        )
        if change is not None:
            by_kind[change.kind].append(change)
    for uid, known in known_pods.items():
        if uid not in pods:
            by_kind[PodOperation.REMOVE].append(PodUpdate(PodOperation.REMOVE, known.pod))
    by_kind[PodOperation.ADD].sort(key=_age)
    changes = [change for kind in _ORDER for change in by_kind[kind]]
    return Merged(SourcePods(old.source, True, pods), changes, refused)


def _age(change: PodUpdate) -> tuple[str, str]:
    meta = meta_of(change.pod)
    return str(meta.get("creationTimestamp") or ""), str(meta.get("uid"))


def _known_pod(raw: Obj, before: KnownPod | None, source: str, seen: str) -> KnownPod:
    if before is not None:
        seen = annotations_of(before.pod)[SEEN_ANNOTATION]
    told = annotations_of(raw)
    notes = {**told, **_our_notes(seen, source)} if told else _our_notes(seen, source)
    return KnownPod(raw, {**raw, "metadata": {**meta_of(raw), "annotations": notes}})


@lru_cache(maxsize=64)
def _our_notes(seen: str, source: str) -> Mapping[str, str]:
    """Pods that come in the same second have them in common, and most have no others."""
    return {SEEN_ANNOTATION: seen, SOURCE_ANNOTATION: source}


def _change(before: KnownPod, after: KnownPod) -> PodUpdate | None:
    if _differ(before.raw, after.raw):
        kind = PodOperation.DELETE if is_deleted(after.pod) else PodOperation.UPDATE
        return PodUpdate(kind, after.pod)
    if before.raw.get("status") != after.raw.get("status"):
        return PodUpdate(PodOperation.RECONCILE, after.pod)
    return None


def _differ(before: Obj, after: Obj) -> bool:
    """In what makes a pod another one to the node; the rest of the metadata does not."""
    was, now = before["metadata"], after["metadata"]
    if any(was.get(name) != now.get(name) for name in _DELETION):
        return True
    if (was.get("labels") or {}) != (now.get("labels") or {}):
        return True
    notes, noted = was.get("annotations"), now.get("annotations")
    if notes is not noted and _others(notes) != _others(noted):
        return True
    return bool(before.get("spec") != after.get("spec"))


def _others(notes: Mapping[str, str] | None) -> dict[str, str]:
    return {key: value for key, value in (notes or {}).items() if key not in _OURS}
