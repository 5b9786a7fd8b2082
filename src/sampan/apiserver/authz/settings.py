"""Settings of authorization: plain values, from flags or a configuration file.

Job: the settings of authorizers.
"""

from dataclasses import field

from sampan.apiserver.outside.webhook_client import Target
from sampan.core.fast_dataclass import dataclass

MODES = ("AlwaysAllow", "AlwaysDeny", "ABAC", "Webhook", "RBAC", "Node")


@dataclass(frozen=True, slots=True)
class WebhookAuthorizerSettings:
    allowed_seconds: float = 300.0  # 0: not remembered
    denied_seconds: float = 30.0
    timeout_seconds: float = 30.0
    denies_on_failure: bool = False
    # In CEL, over `request`: it is asked only where all are true.
    conditions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AuthorizerSettings:
    """One authorizer of the chain."""

    mode: str
    name: str = ""
    target: Target | None = None  # of a webhook
    webhook: WebhookAuthorizerSettings = field(default_factory=WebhookAuthorizerSettings)
