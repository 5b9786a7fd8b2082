"""Warnings of an object that is valid: the entry point.

Job: from an object, and what it was before, to the warnings of its kind. Pure.
Invariant: a warning never decides anything.
To add a kind: a function in kinds.py, and a line in its table.
"""

from sampan.api.objects import Obj
from sampan.api.resources import Resource
from sampan.api.warnings.kinds import TABLE


def warnings_of(resource: Resource, new: Obj, old: Obj | None) -> list[str]:
    """`old` is None for a create."""
    give = TABLE.get((resource.group, resource.kind))
    return [] if give is None else list(give(new, old))
