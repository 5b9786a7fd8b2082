"""Between the version that a client speaks and the one that is stored.

Job: one pair of functions per kind that is served in two versions or groups; identity elsewhere.
Invariant: what is stored and read back in the version that it was written in is unchanged.
"""

from sampan.api.objects import Obj
from sampan.api.resources import Resource


def to_stored(resource: Resource, obj: Obj) -> Obj:
    return obj


def from_stored(resource: Resource, obj: Obj) -> Obj:
    return obj
