"""Admission: what may still be changed or refused after authorization and before the store.

Job: run the mutating plugins in order, and later the validating ones; any of them may refuse.
Invariant: plugins see the object after defaults; validating ones never change it.
To add a plugin: a file beside this one, and a line in `default_plugins`.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from sampan.api.calls import Call
from sampan.api.objects import Obj, name_of
from sampan.api.resources import Resource
from sampan.apiserver.authn.user import User

CREATE, UPDATE, DELETE, CONNECT = "CREATE", "UPDATE", "DELETE", "CONNECT"

# (resource, namespace, name) → the object as the cache has it; read-only.
Find = Callable[[Resource, str, str], Obj | None]
# resource → every object of it; read-only.
FindAll = Callable[[Resource], list[Obj]]


@dataclass(slots=True)
class Attributes:
    """One write on its way. `obj` is the plugin's to change while mutating; None for deletes."""

    user: User
    operation: str
    resource: Resource
    namespace: str
    name: str
    subresource: str
    obj: Obj | None
    old: Obj | None
    dry_run: bool
    warnings: list[str] = field(default_factory=list)

    def is_main(self, resource: Resource) -> bool:
        """This resource itself, in whatever version, not one of its subresources."""
        return (
            not self.subresource
            and self.resource.kind == resource.kind
            and self.resource.group == resource.group
        )


def attributes_of(
    user: User, operation: str, call: Call, obj: Obj | None, old: Obj | None
) -> Attributes:
    shown = obj if obj is not None else old
    return Attributes(
        user=user,
        operation=operation,
        resource=call.resource,
        namespace=call.namespace,
        name=call.name or (name_of(shown) if shown is not None else ""),
        subresource=call.subresource,
        obj=obj,
        old=old,
        dry_run=call.options.dry_run,
    )


Step = Callable[[Attributes], Awaitable[None] | None]


@dataclass(frozen=True, slots=True)
class Plugin:
    """A step that needs to wait returns an awaitable; the others cost one plain call."""

    name: str
    operations: frozenset[str]
    mutate: Step | None = None
    validate: Step | None = None


class Admission:
    def __init__(self, plugins: Sequence[Plugin]) -> None:
        operations = (CREATE, UPDATE, DELETE, CONNECT)
        self._mutating = {
            one: [p.mutate for p in plugins if p.mutate is not None and one in p.operations]
            for one in operations
        }
        self._validating = {
            one: [p.validate for p in plugins if p.validate is not None and one in p.operations]
            for one in operations
        }

    async def mutate(self, attributes: Attributes) -> None:
        for step in self._mutating[attributes.operation]:
            waiting = step(attributes)
            if waiting is not None:
                await waiting

    async def validate(self, attributes: Attributes) -> None:
        for step in self._validating[attributes.operation]:
            waiting = step(attributes)
            if waiting is not None:
                await waiting
