"""Policies in force: each with its bindings and parameters, compiled once.

Job: which policies, bindings and parameters a write concerns.
Invariant: a policy is compiled when it is first needed after a change, and not again before the
    next one; beside the loop where they are large or many.
Invariant: policies and their bindings are never judged by policies: nobody can lock themselves out.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from functools import partial

import orjson

from sampan.api.cel.policies import CompiledPolicy
from sampan.api.kinds import Kinds
from sampan.api.objects import Obj, labels_of, name_of, spec_of
from sampan.api.resources import Resource
from sampan.api.rules import selectors
from sampan.apiserver.admission.chain import Attributes
from sampan.apiserver.admission.matching import rules as matching
from sampan.apiserver.admission.plugin_initializer import Aid
from sampan.apiserver.registry.generic import Registry
from sampan.core.fast_dataclass import dataclass

Compile = Callable[[Obj], CompiledPolicy]


class Misconfigured(Exception):
    """The policy or binding cannot be used as it is; the failure policy decides."""


@dataclass(frozen=True, slots=True)
class Policy:
    obj: Obj
    compiled: CompiledPolicy
    bindings: tuple[Obj, ...]

    @property
    def name(self) -> str:
        return name_of(self.obj)

    @property
    def spec(self) -> Obj:
        spec: Obj = self.obj.get("spec") or {}
        return spec

    @property
    def ignores_failure(self) -> bool:
        return self.spec.get("failurePolicy") == "Ignore"


class Policies:
    """Those of one mode; to be told by `changed` when a policy or binding is another one."""

    def __init__(
        self, registry: Registry, policies: Resource, bindings: Resource, compile_: Compile
    ) -> None:
        self._registry, self._compile = registry, compile_
        self._policies, self._bindings = policies, bindings
        self._compiled: dict[str, tuple[Obj, CompiledPolicy]] = {}
        self._bound: list[Policy] | None = None
        self._compiling = asyncio.Lock()  # several writes may come at once

    def changed(self) -> None:
        self._bound = None

    @property
    def is_compiled(self) -> bool:
        return self._bound is not None

    async def compile(self, aid: Aid) -> list[Policy]:
        """All that are bound, compiled, by name."""
        async with self._compiling:
            while self._bound is None:
                missing = [policy for policy in self._bound_policies() if not self._knows(policy)]
                total = sum(len(orjson.dumps(spec_of(policy))) for policy in missing)
                for policy in missing:
                    compiled = await aid.compile(total, partial(self._compile, spec_of(policy)))
                    self._compiled[name_of(policy)] = policy, compiled
                self._bind()
            return self._bound

    def _bind(self) -> None:
        """By name, if none has changed meanwhile. A policy that nothing binds does nothing."""
        policies, bindings = self._bound_policies(), self._bindings_by_policy()
        if all(self._knows(policy) for policy in policies):
            self._compiled = {
                name_of(policy): self._compiled[name_of(policy)] for policy in policies
            }
            self._bound = [
                Policy(policy, self._compiled[name_of(policy)][1], tuple(bindings[name_of(policy)]))
                for policy in sorted(policies, key=name_of)
            ]

    def _bound_policies(self) -> list[Obj]:
        bindings = self._bindings_by_policy()
        return [
            item for item in self._registry.find_all(self._policies) if name_of(item) in bindings
        ]

    def _bindings_by_policy(self) -> dict[str, list[Obj]]:
        bindings: dict[str, list[Obj]] = {}
        for item in sorted(self._registry.find_all(self._bindings), key=name_of):
            bindings.setdefault(spec_of(item).get("policyName") or "", []).append(item)
        return bindings

    def _knows(self, policy: Obj) -> bool:
        before = self._compiled.get(name_of(policy))
        return before is not None and before[0] is policy

    def matched(self, attributes: Attributes) -> Iterator[tuple[Policy, matching.Matched]]:
        assert self._bound is not None, "compiled before"
        for policy in self._bound:
            found = self._matches(policy.spec.get("matchConstraints") or {}, attributes)
            if found is not None:
                yield policy, found

    def binding_matches(self, binding: Obj, attributes: Attributes) -> bool:
        wanted = (binding.get("spec") or {}).get("matchResources")
        return wanted is None or self._matches(wanted, attributes) is not None

    def _matches(self, wanted: Obj, attributes: Attributes) -> matching.Matched | None:
        """As upstream's matcher: selectors, then what is excluded, then what is included."""
        equivalent = wanted.get("matchPolicy") != "Exact"
        rules = wanted.get("resourceRules")
        found: matching.Matched | None = matching.Matched(attributes.resource)
        if rules:
            found = matching.match_rules(rules, attributes, equivalent)
        excluded = wanted.get("excludeResourceRules")
        if found is None or (excluded and matching.is_excluded(excluded, attributes, equivalent)):
            return None
        if not matching.object_matches(wanted.get("objectSelector"), attributes):
            return None
        selector = wanted.get("namespaceSelector")
        if not matching.namespace_matches(selector, attributes, self._registry.find):
            return None
        return found

    def unknown_kind(self, spec: Obj) -> str:
        return unknown_kind(self._registry.kinds, spec)

    def parameters(self, policy: Policy, binding: Obj, namespace: str) -> list[Obj | None]:
        """One for each evaluation; None: without any. Raises Misconfigured."""
        kind, reference = policy.spec.get("paramKind"), (binding.get("spec") or {}).get("paramRef")
        if kind is None or reference is None:
            return [None]
        kinds = self._registry.kinds
        resource = kinds.by_kind(kind.get("apiVersion") or "", kind.get("kind") or "")
        assert resource is not None, "looked at before: unknown_kind"
        found: list[Obj | None] = list(self._find(resource, reference, namespace))
        if not found and reference.get("parameterNotFoundAction") == "Deny":
            raise Misconfigured(
                "no params found for policy binding with `Deny` parameterNotFoundAction"
            )
        return found

    def _find(self, resource: Resource, reference: Obj, namespace: str) -> Iterable[Obj]:
        where = reference.get("namespace") or ""
        if where and not resource.namespaced:
            raise Misconfigured(
                "paramRef.namespace must not be provided for a cluster-scoped `paramKind`"
            )
        if resource.namespaced and not where:
            where = namespace
            if not where:
                raise Misconfigured(
                    "cannot use namespaced paramRef in policy binding that matches "
                    "cluster-scoped resources"
                )
        if reference.get("name"):
            one = self._registry.find(resource, where, reference["name"])
            return [] if one is None else [matching.shown_object(resource, one)]
        wanted = selectors.from_object(reference.get("selector") or {})
        kind = self._registry.kind(resource)
        keys = kind.keys(where) if where else list(kind.items)
        items = [kind.items[key].obj for key in sorted(keys)]
        return [
            matching.shown_object(resource, item)
            for item in items
            if wanted.matches(labels_of(item))
        ]


def unknown_kind(kinds: Kinds, spec: Obj) -> str:
    """What is wrong with a policy's paramKind; nothing where there is such a kind, or none is asked
    for."""
    kind = spec.get("paramKind")
    if kind is None:
        return ""
    if kinds.by_kind(kind.get("apiVersion") or "", kind.get("kind") or "") is not None:
        return ""
    group, _, version = (kind.get("apiVersion") or "").rpartition("/")
    shown = f"{group}/{version}, Kind={kind.get('kind')}"
    return f"failed to find resource referenced by paramKind: '{shown}'"
