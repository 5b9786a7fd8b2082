"""Admission chain: mutating plugins, then validating ones, between authorization and the store.

Job: run the mutating plugins in order, and later the validating ones; any of them may refuse.
Invariant: plugins see the object after defaults; validating ones never change it.
Invariant: a plugin's module is loaded by the first write that concerns it, not by the start.
Invariant: a plugin that acts on objects of some kind costs nothing while there are none.
To add a plugin: a file in builtin/, a function in loaders.py, a line in plugins.py.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import field

from sampan.api.calls import Call, Item
from sampan.api.errors import ApiError, Forbidden, forbidden
from sampan.api.objects import Obj, name_of
from sampan.api.resources import Resource
from sampan.apiserver.admission.admission_metrics import ADMIT, VALIDATE, AdmissionMeasure
from sampan.apiserver.audit.audit_log import note
from sampan.apiserver.authn.user import User
from sampan.apiserver.watch.listener import follow
from sampan.apiserver.watch.watch_cache import KindCache
from sampan.core.bounded import Bounded
from sampan.core.fast_dataclass import dataclass
from sampan.core.holding import Hold
from sampan.core.telemetry.spans import NO_MARKS, Marks

MOST_KINDS = 1024  # that are remembered; custom ones come and go
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
    hold: Hold = field(default_factory=Hold)  # what plugins took for this write
    # Other versions of the resource, once a rule has asked for them; of rules there are thousands.
    equivalents: Sequence[Resource] | None = None
    verb: str = ""  # of the call: whoever patches updates, too
    marks: Marks = NO_MARKS  # plugins that wait for somebody are always seen in the trace

    @property
    def called(self) -> str:
        """The name in words to the caller: one that will be generated has only its beginning."""
        meta = (self.obj or {}).get("metadata") or {}
        return str(self.name or meta.get("name") or meta.get("generateName") or "Unknown")

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
        verb=call.verb,
        marks=call.marks,
    )


def rejection(attributes: Attributes, why: str) -> Forbidden:
    resource = attributes.resource
    return forbidden(resource.plural, resource.group, attributes.called, why)


Step = Callable[[Attributes], Awaitable[None] | None]


@dataclass(frozen=True, slots=True)
class Steps:
    """A step that needs to wait returns an awaitable; the others cost one plain call."""

    mutate: Step | None = None
    validate: Step | None = None
    # Without objects of this kind the plugin has nothing to do, and is left out.
    idle_without: KindCache | None = None


@dataclass(frozen=True, slots=True)
class Plugin:
    name: str
    operations: frozenset[str]
    load: Callable[[], Steps]
    kinds: frozenset[tuple[str, str]] | None = None  # (group, kind); None: every kind
    main_only: bool = False  # it looks at no subresource


@dataclass(frozen=True, slots=True)
class _Way:
    """The steps of one kind of write."""

    mutating: tuple[tuple[str, Step], ...]
    again: tuple[Step, ...]
    validating: tuple[tuple[str, Step], ...]


def kinds_of(*resources: Resource) -> frozenset[tuple[str, str]]:
    return frozenset((resource.group, resource.kind) for resource in resources)


# Webhooks see to their own reinvocation.
_OUTSIDE = ("MutatingAdmissionWebhook",)


class Admission:
    """Which steps concern a kind is worked out when it is first written."""

    def __init__(self, plugins: Sequence[Plugin], measure: AdmissionMeasure | None = None) -> None:
        self.names = [plugin.name for plugin in plugins]
        self._measure = measure
        self._plugins = tuple(plugins)
        self._loaded: dict[str, Steps] = {}
        self._ways: Bounded[tuple[str, str, str, bool], _Way] = Bounded(MOST_KINDS)

    async def mutate(self, attributes: Attributes) -> None:
        way = self._of(attributes)
        await self._through(way.mutating, attributes, ADMIT)
        if attributes.reinvoke:
            # A webhook has changed the object: those before it have another look.
            for step in way.again:
                waiting = step(attributes)
                if waiting is not None:
                    await waiting

    async def validate(self, attributes: Attributes) -> None:
        try:
            await self._through(self._of(attributes).validating, attributes, VALIDATE)
        finally:
            if attributes.audit:
                _note(attributes)

    async def _through(
        self, steps: tuple[tuple[str, Step], ...], attributes: Attributes, kind: str
    ) -> None:
        marks, measure, operation = attributes.marks, self._measure, attributes.operation
        detailed = marks.is_detailed
        name, began = "", 0.0 if measure is None else measure.now()
        since = began
        try:
            for name, step in steps:
                waiting = step(attributes)
                if waiting is not None:
                    await waiting
                    marks.at(name)
                elif detailed:
                    marks.at(name)
                if measure is not None:
                    since = measure.plugin(name, operation, kind, since, refused=False)
        except ApiError:
            if measure is not None:
                measure.plugin(name, operation, kind, since, refused=True)
                measure.step(operation, kind, began, refused=True)
            raise
        if measure is not None:
            measure.step(operation, kind, began, refused=False)

    def concerned(self, operation: str, resource: Resource) -> frozenset[str]:
        """The plugins that look at such a write now."""
        way = self._way((operation, resource.group, resource.kind, True))
        return frozenset(name for name, _ in (*way.mutating, *way.validating))

    def _of(self, attributes: Attributes) -> _Way:
        resource = attributes.resource
        return self._way(
            (attributes.operation, resource.group, resource.kind, not attributes.subresource)
        )

    def _way(self, key: tuple[str, str, str, bool]) -> _Way:
        way = self._ways.get(key)
        if way is None:
            way = self._ways[key] = self._worked_out(*key)
        return way

    def _worked_out(self, operation: str, group: str, kind: str, is_main: bool) -> _Way:
        concerned = [
            (plugin.name, steps)
            for plugin in self._plugins
            if operation in plugin.operations
            and (plugin.kinds is None or (group, kind) in plugin.kinds)
            and (is_main or not plugin.main_only)
            and ((steps := self._steps_of(plugin)).idle_without is None or steps.idle_without.items)
        ]
        mutating = [(name, item.mutate) for name, item in concerned if item.mutate is not None]
        return _Way(
            tuple(mutating),
            tuple(step for name, step in mutating if name not in _OUTSIDE),
            tuple((name, item.validate) for name, item in concerned if item.validate is not None),
        )

    def _steps_of(self, plugin: Plugin) -> Steps:
        steps = self._loaded.get(plugin.name)
        if steps is None:
            steps = self._loaded[plugin.name] = plugin.load()
            if steps.idle_without is not None:
                follow(steps.idle_without, self._note_change, self._ways.clear)
        return steps

    def _note_change(self, before: Item | None, now: Item | None) -> None:
        if before is None or now is None:
            self._ways.clear()  # the first one may have come, the last one gone


NO_ADMISSION = Admission(())  # for what the server itself writes on behalf of a call


def _note(attributes: Attributes) -> None:
    """What plugins found worth noting goes into the request's audit event."""
    for key, value in attributes.audit.items():
        note(key, value)
