"""Which authorizers a server has, by the names of --authorization-mode.

Job: build the chain; connect what must follow the watch cache.
"""

from collections.abc import Callable, Sequence

from sampan.api.calls import Item
from sampan.api.resources import PODS
from sampan.apiserver.authn.user import MASTERS, User
from sampan.apiserver.authz import abac
from sampan.apiserver.authz.bootstrap.objects import CLUSTER_ROLE_BINDINGS, ROLE_BINDINGS
from sampan.apiserver.authz.chain import (
    Attributes,
    Authorization,
    Authorizer,
    Decision,
    Rules,
    UserRules,
    masters,
)
from sampan.apiserver.authz.followed import follow
from sampan.apiserver.authz.node import NodeAuthorizer, NodeGraph, node_of
from sampan.apiserver.authz.rbac import RBAC_KINDS, Rbac
from sampan.apiserver.authz.webhook import WebhookAuthorizer, WebhookAuthorizerSettings
from sampan.apiserver.outbound import Caller
from sampan.apiserver.registry.generic import Registry
from sampan.core.clock import Clock

MODES = ("AlwaysAllow", "AlwaysDeny", "ABAC", "Webhook", "RBAC", "Node")
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

    def listener(of_bindings: bool) -> Callable[[Item | None, Item | None], None]:
        return lambda _before, _now: rbac.changed(of_bindings)

    for kind in RBAC_KINDS:
        binds = kind in (CLUSTER_ROLE_BINDINGS, ROLE_BINDINGS)
        follow(registry.kind(kind), listener(binds), lambda: rbac.changed(of_bindings=True))
    return rbac


def followed_graph(registry: Registry) -> NodeGraph:
    kind = registry.kind(PODS)
    graph = NodeGraph(registry.find, lambda: list(kind.items.values()))
    follow(kind, graph.changed, graph.reloaded)
    return graph


def authorization(
    modes: Sequence[str],
    registry: Registry,
    rbac: Rbac,
    abac_policy: str,
    webhook: tuple[Caller, WebhookAuthorizerSettings] | None,
    clock: Clock,
) -> Authorization:
    """In the order of the modes; system:masters come first, as upstream's privileged group."""
    authorizers: list[Authorizer] = [masters]
    rules: list[Rules] = [] if "RBAC" in modes else [_rules_of_masters]
    for mode in modes:
        match mode:
            case "AlwaysAllow":
                authorizers.append(always_allow)
                rules.append(lambda _user, _namespace: _EVERYTHING)
            case "AlwaysDeny":
                authorizers.append(always_deny)
            case "RBAC":
                authorizers.append(rbac.authorize)
                rules.append(rbac.rules)
            case "Node":
                node = NodeAuthorizer(followed_graph(registry))
                authorizers.append(node.authorize)
                rules.append(node.rules)
            case "ABAC":
                by_file = abac.Abac(abac.policies(abac_policy))
                authorizers.append(by_file.authorize)
                rules.append(by_file.rules)
            case "Webhook":
                if webhook is None:
                    raise ValueError("the mode Webhook needs a webhook to ask")
                asking = WebhookAuthorizer(*webhook, clock)
                authorizers.append(asking.authorize)
                rules.append(asking.rules)
            case _:
                raise ValueError(f'"{mode}" is not a valid mode')
    # What a webhook says holds for a while only, and what a node may changes with its pods.
    steady = None if "Webhook" in modes else (lambda user: node_of(user) is None)
    made = Authorization(authorizers, rules, steady)
    rbac.on_change = made.forget
    return made


def _rules_of_masters(user: User, _namespace: str) -> UserRules:
    return _EVERYTHING if MASTERS in user.groups else UserRules()
