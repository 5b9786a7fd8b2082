"""Which authorizers a server has, by the names of --authorization-mode.

Job: build the chain; connect what must follow the watch cache.
"""

from collections.abc import Sequence

from sampan.api.calls import Item
from sampan.api.resources import PODS
from sampan.apiserver.authn.user import MASTERS, User
from sampan.apiserver.authz.bootstrap.objects import CLUSTER_ROLE_BINDINGS, ROLE_BINDINGS
from sampan.apiserver.authz.chain import (
    Attributes,
    Authorization,
    Authorizer,
    AuthorizerChain,
    Decision,
    Rules,
    UserRules,
    masters,
)
from sampan.apiserver.authz.node import NodeAuthorizer, NodeGraph, node_of
from sampan.apiserver.authz.rbac import RBAC_KINDS, Rbac
from sampan.apiserver.authz.settings import AuthorizerSettings
from sampan.apiserver.outside.webhook_client import Caller
from sampan.apiserver.registry.generic import Registry
from sampan.apiserver.watch.listener import follow
from sampan.core.clock import Clock
from sampan.core.metrics import Metrics

_EVERYTHING = UserRules(
    [
        {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
        {"verbs": ["*"], "nonResourceURLs": ["*"]},
    ]
)


def always_allow(_: Attributes) -> tuple[Decision, str]:
    return Decision.ALLOW, ""


def always_deny(_: Attributes) -> tuple[Decision, str]:
    return Decision.NO_OPINION, "Everything is forbidden."


def followed_rbac(registry: Registry) -> Rbac:
    """Needed in every mode: who may hand rights on is asked of the roles."""
    rbac = Rbac(registry.find, registry.find_all)

    def bindings_changed(before: Item | None, now: Item | None) -> None:
        old, new = (None if item is None else item.obj for item in (before, now))
        rbac.binding_changed(old, new)

    for kind in RBAC_KINDS:
        binds = kind in (CLUSTER_ROLE_BINDINGS, ROLE_BINDINGS)
        changed = bindings_changed if binds else lambda _before, _now: rbac.changed()
        follow(registry.kind(kind), changed, rbac.reloaded)
    return rbac


def followed_graph(registry: Registry) -> NodeGraph:
    kind = registry.kind(PODS)
    graph = NodeGraph(registry.find, lambda: list(kind.items.values()))
    follow(kind, graph.changed, graph.reloaded)
    return graph


class Modes:
    """Builds chains: at the start, and again when the configuration file says something else."""

    def __init__(
        self, registry: Registry, rbac: Rbac, abac_policy: str, clock: Clock, metrics: Metrics
    ) -> None:
        self._registry, self._rbac, self._abac_policy = registry, rbac, abac_policy
        self._clock, self._metrics = clock, metrics
        self._node: NodeAuthorizer | None = None
        self._callers: list[Caller] = []

    def authorization(self, chosen: Sequence[AuthorizerSettings]) -> Authorization:
        chain = self._chain(chosen)
        made = Authorization(chain.authorizers, chain.rules, chain.steady)
        self._rbac.on_change = made.forget
        return made

    async def replace(
        self, authorization: Authorization, chosen: Sequence[AuthorizerSettings]
    ) -> None:
        """Raises ValueError, and changes nothing then."""
        former, self._callers = self._callers, []
        try:
            chain = self._chain(chosen)
        except ValueError:
            self._callers = former
            raise
        authorization.replace(chain)
        for item in former:
            await item.close()

    async def close(self) -> None:
        for caller in self._callers:
            await caller.close()

    def _chain(self, chosen: Sequence[AuthorizerSettings]) -> AuthorizerChain:
        """In the order given; system:masters come first, as upstream's privileged group."""
        modes = [item.mode for item in chosen]
        rules: list[Rules] = [] if "RBAC" in modes else [_rules_of_masters]
        built = [self._build(item) for item in chosen]
        rules += [item for _, item in built if item is not None]
        # What a webhook says holds for a while only, and what a node may changes with its pods.
        steady = None if "Webhook" in modes else (lambda user: node_of(user) is None)
        return AuthorizerChain((masters, *(item for item, _ in built)), tuple(rules), steady)

    def _build(self, chosen: AuthorizerSettings) -> tuple[Authorizer, Rules | None]:
        match chosen.mode:
            case "AlwaysAllow":
                return always_allow, lambda _user, _namespace: _EVERYTHING
            case "AlwaysDeny":
                return always_deny, None
            case "RBAC":
                return self._rbac.authorize, self._rbac.rules
            case "Node":
                if self._node is None:
                    self._node = NodeAuthorizer(followed_graph(self._registry))
                return self._node.authorize, self._node.rules
            case "ABAC":
                from sampan.apiserver.authz import abac

                by_file = abac.Abac(abac.policies(self._abac_policy))
                return by_file.authorize, by_file.rules
            case "Webhook":
                return self._webhook(chosen)
        raise ValueError(f'"{chosen.mode}" is not a valid mode')

    def _webhook(self, chosen: AuthorizerSettings) -> tuple[Authorizer, Rules]:
        from sampan.apiserver.authz.webhook import WebhookAuthorizer

        if chosen.target is None:
            raise ValueError("the mode Webhook needs a webhook to ask")
        self._callers.append(Caller(chosen.target))
        asking = WebhookAuthorizer(
            self._callers[-1], chosen.webhook, self._clock, chosen.name, self._metrics
        )
        return asking.authorize, asking.rules


def _rules_of_masters(user: User, _namespace: str) -> UserRules:
    return _EVERYTHING if MASTERS in user.groups else UserRules()
