"""Validation of a kind: its name rule, and what else it checks.

Job: the shape of a kind's entry in the table of validation/__init__.py.
Invariant: metadata is checked by the caller; a kind's own functions add to the list they are given.
"""

from collections.abc import Callable

from sampan.api.errors import FieldError
from sampan.api.objects import Obj
from sampan.api.rules import names
from sampan.core.fast_dataclass import dataclass

Errors = list[FieldError]
Create = Callable[[Obj, Errors], None]
Update = Callable[[Obj, Obj, Errors], None]


def nothing_more(obj: Obj, errors: Errors) -> None:
    """A kind with no rules beyond its schema."""


def nothing_more_changes(new: Obj, old: Obj, errors: Errors) -> None:
    """A kind whose fields may all change."""


@dataclass(frozen=True, slots=True)
class Rules:
    name: names.NameRule = names.dns_subdomain
    create: Create = nothing_more
    update: Update = nothing_more_changes  # new, old
    status: Update = nothing_more_changes  # new, old
    has_identity: bool = True  # False for what is asked and answered but never stored


def same_rules(create: Create) -> Update:
    """An update that is checked as a create is, and nothing else."""

    def update(new: Obj, old: Obj, errors: Errors) -> None:
        create(new, errors)

    return update
