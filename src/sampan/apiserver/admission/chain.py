"""Admission: what may still be changed or refused after authorization and before the store.

Job: run the mutating plugins in order, and later the validating ones; any of them may refuse.
Invariant: plugins see the object after defaults; validating ones never change it.
To add a plugin: a file beside this one, and a line in plugins.py.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from sampan.api.calls import Call
from sampan.api.objects import Obj, name_of
from sampan.api.resources import Resource
from sampan.apiserver.audit import note
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
    # For the audit log: what a plugin found worth noting.
    audit: dict[str, str] = field(default_factory=dict)
    options: Obj = field(default_factory=dict)  # CreateOptions and the like, as webhooks see them
    reinvoke: bool = False  # a webhook has changed it: the plugins before it look once more
    # What a plugin took for this write, to be let go: (stored) → awaitable.
    releases: list[Callable[[bool], Awaitable[None]]] = field(default_factory=list)

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
    """In two rounds, as upstream: a mutating webhook that asks for it is called once more when
    another one has changed the object after it (see webhooks.py)."""

    def __init__(self, plugins: Sequence[Plugin]) -> None:
        self.names = [one.name for one in plugins]
        operations = (CREATE, UPDATE, DELETE, CONNECT)
        self._mutating = {
            one: [p.mutate for p in plugins if p.mutate is not None and one in p.operations]
            for one in operations
        }
        # Those that come before the webhooks' last word, to be run again after it.
        outside = ("MutatingAdmissionWebhook", "MutatingAdmissionPolicy")
        self._again = {
            one: [
                p.mutate
                for p in plugins
                if p.mutate is not None and one in p.operations and p.name not in outside
            ]
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
        if attributes.reinvoke:
            for step in self._again[attributes.operation]:
                waiting = step(attributes)
                if waiting is not None:
                    await waiting

    async def validate(self, attributes: Attributes) -> None:
        for step in self._validating[attributes.operation]:
            waiting = step(attributes)
            if waiting is not None:
                await waiting

    @staticmethod
    def note(attributes: Attributes) -> None:
        """What plugins found worth noting goes into the request's audit event."""
        for key, value in attributes.audit.items():
            note(key, value)

    async def settle(self, attributes: Attributes, stored: bool) -> None:
        """The write is over, well or badly."""
        while attributes.releases:
            await attributes.releases.pop()(stored)
