"""The Webhook authorizer: another server decides.

Job: SubjectAccessReview out, allowed/denied/no opinion back; answers are remembered for a while.
Invariant: a server that cannot be asked allows nothing: the failure policy is no opinion or deny.
Invariant: at most MOST answers are remembered.
"""

from typing import TYPE_CHECKING

import orjson

from sampan.api.objects import Obj
from sampan.api.rules import selectors
from sampan.apiserver.authn.user import User
from sampan.apiserver.authz.chain import Attributes, Decision, UserRules
from sampan.apiserver.authz.settings import WebhookAuthorizerSettings
from sampan.apiserver.outside.webhook_client import Caller, CallFailed
from sampan.core.backoff import Backoff
from sampan.core.bounded import Bounded
from sampan.core.clock import Clock
from sampan.core.log import get_logger
from sampan.core.metrics import Metrics

if TYPE_CHECKING:
    from sampan.apiserver.authz.conditions import Conditions

log = get_logger(__name__)

MOST = 8192
ATTEMPTS = 5
RETRY = Backoff(first_seconds=0.5, cap_seconds=5.0)
TOO_LARGE = 10_000  # as upstream: what a caller made this long is not worth remembering


class WebhookAuthorizer:
    def __init__(
        self,
        caller: Caller,
        settings: WebhookAuthorizerSettings,
        clock: Clock,
        name: str = "",
        metrics: Metrics | None = None,
    ) -> None:
        """Raises ValueError where a match condition cannot be compiled."""
        self._caller, self._settings, self._clock = caller, settings, clock
        self._known: Bounded[bytes, tuple[float, tuple[Decision, str]]] = Bounded(MOST)
        self._conditions = _conditions(settings, name, metrics)

    async def authorize(self, attributes: Attributes) -> tuple[Decision, str]:
        review = review_of(attributes)
        if self._conditions is not None:
            met = self._conditions.met(review["spec"])
            if met is None and self._settings.denies_on_failure:
                return Decision.DENY, "a match condition of the webhook authorizer failed"
            if not met:
                return Decision.NO_OPINION, ""
        key = orjson.dumps(review)
        known = self._known.get(key)
        now = self._clock.monotonic()
        if known is not None and known[0] > now:
            return known[1]
        try:
            status = (await self._ask(review)).get("status") or {}
        except CallFailed as error:
            log.warning("the authorization webhook failed", error=error)
            on_error = Decision.DENY if self._settings.denies_on_failure else Decision.NO_OPINION
            return on_error, f"the authorization webhook failed: {error}"
        answer = _decision(status)
        good_for = (
            self._settings.allowed_seconds
            if answer[0] is Decision.ALLOW
            else self._settings.denied_seconds
        )
        if good_for > 0 and len(key) < TOO_LARGE:
            self._known[key] = (self._clock.monotonic() + good_for, answer)
        return answer

    def rules(self, _user: User, _namespace: str) -> UserRules:
        return UserRules(
            incomplete=True, trouble="webhook authorizer does not support user rule resolution"
        )

    async def _ask(self, review: Obj) -> Obj:
        for attempt in range(1, ATTEMPTS):
            try:
                return await self._caller.post(review, self._settings.timeout_seconds)
            except CallFailed:
                await self._clock.sleep(RETRY.delay(attempt))
        return await self._caller.post(review, self._settings.timeout_seconds)


def _conditions(
    settings: WebhookAuthorizerSettings, name: str, metrics: Metrics | None
) -> "Conditions | None":
    if not settings.conditions:
        return None
    # CEL is loaded for whoever writes conditions.
    from sampan.apiserver.authz.conditions import Conditions

    return Conditions(settings.conditions, name, metrics)


def review_of(attributes: Attributes) -> Obj:
    user = attributes.user
    spec: Obj = {"user": user.name, "groups": list(user.groups)}
    if user.uid:
        spec["uid"] = user.uid
    if user.extra:
        spec["extra"] = {key: list(values) for key, values in user.extra.items()}
    if attributes.path:
        spec["nonResourceAttributes"] = {"path": attributes.path, "verb": attributes.verb}
    else:
        asked = {
            "namespace": attributes.namespace, "verb": attributes.verb, "group": attributes.group,
            "resource": attributes.resource, "subresource": attributes.subresource,
            "name": attributes.name,
        }  # fmt: skip
        resource: Obj = {key: value for key, value in asked.items() if value}
        if attributes.field_selector:
            resource["fieldSelector"] = {"requirements": _requirements(attributes.field_selector)}
        spec["resourceAttributes"] = resource
    return {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "metadata": {},
        "spec": spec,
    }


def _requirements(text: str) -> list[Obj]:
    return [
        {"key": item.field, "operator": "In" if item.equal else "NotIn", "values": [item.value]}
        for item in selectors.parse_field_selector(text)
    ]


def _decision(status: Obj) -> tuple[Decision, str]:
    reason = str(status.get("reason") or "")
    if status.get("allowed") is True and not status.get("denied"):
        return Decision.ALLOW, reason
    if status.get("denied") is True:
        return Decision.DENY, reason
    return Decision.NO_OPINION, reason
