"""Writes that change nothing but ownerReferences and finalizers. Pure.

Job: tell them from others: whoever may update may do them, so that collection can go on.
"""

from sampan.api.objects import Obj, meta_of

_GC_FIELDS = frozenset({"ownerReferences", "finalizers", "managedFields", "selfLink"})


def is_for_garbage_collection(new: Obj, old: Obj | None) -> bool:
    """As upstream's IsOnlyMutatingGCFields."""
    return old is not None and _without_gc_fields(new) == _without_gc_fields(old)


def _without_gc_fields(obj: Obj) -> Obj:
    meta = {name: value for name, value in meta_of(obj).items() if name not in _GC_FIELDS}
    return {**obj, "metadata": meta}
