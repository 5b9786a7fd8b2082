"""tokencleaner: deletes bootstrap tokens that have expired.

Job: one secret → delete it, or look again when it expires. As upstream's tokencleaner.go; off
    unless --controllers names it.
"""

from sampan.api.objects import Obj, is_deleted
from sampan.api.resources import SECRETS
from sampan.api.rules.tokens.bootstrap_tokens import seconds_left, token_data
from sampan.controllers.access.bootstrap_signer import is_token
from sampan.controllers.actions import NOTHING, Plan, deletion
from sampan.controllers.controller import Caches, Controller, View, own_key


def token_cleaner_controller() -> Controller:
    return Controller(
        name="token-cleaner-controller",
        component="token-cleaner",
        aliases=("tokencleaner",),
        is_named_only=True,
        wakes={SECRETS: _own},
        planned=_plan_key,
        workers=1,
    )


def plan(secret: Obj, now: float) -> Plan:
    left = seconds_left(token_data(secret), now)
    if left == 0:
        return Plan([deletion(SECRETS, secret)])
    return Plan(again_seconds=left)


async def _plan_key(view: View, key: str) -> Plan:
    secret = view.cache(SECRETS).get(key)
    if secret is None or not is_token(secret) or is_deleted(secret):
        return NOTHING
    return plan(secret, view.now)


def _own(caches: Caches, old: Obj | None, new: Obj | None) -> list[str]:
    return [*own_key(caches, old, new)] if new is not None and is_token(new) else []
