"""Legacy token cleaner: unused token Secrets are marked invalid, and deleted a year later.

Job: decide once a day for each token that was made by itself. As upstream.
Invariant: a token that a person asked for (its account does not list it) is never touched, nor one
    that a pod refers to.
Invariant: nothing is called unused before its use was followed for a whole period.
"""

from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta

from sampan.api.errors import NotFound
from sampan.api.objects import (
    Obj,
    annotations_of,
    is_deleted,
    labels_of,
    meta_of,
    name_of,
    namespace_of,
    seconds_of,
    uid_of,
)
from sampan.api.resources import CONFIG_MAPS, PODS, SECRETS, SERVICE_ACCOUNTS
from sampan.api.rules.pods import secret_names
from sampan.client.indexer import by_namespace
from sampan.controllers.actions import NOTHING, Plan, deletion, merge_patch
from sampan.controllers.controller import Caches, Controller, View

TYPE = "kubernetes.io/service-account-token"
LAST_USED = "kubernetes.io/legacy-token-last-used"
INVALID_SINCE = "kubernetes.io/legacy-token-invalid-since"
TRACKING = ("kube-system", "kube-apiserver-legacy-service-account-token-tracking")
PERIOD = timedelta(days=365)
DAY_SECONDS = 24 * 3600.0
_NAME, _UID = "kubernetes.io/service-account.name", "kubernetes.io/service-account.uid"
_LATER = Plan(again_seconds=DAY_SECONDS)


def legacy_token_cleaner_controller() -> Controller:
    return Controller(
        name="legacy-serviceaccount-token-cleaner-controller",
        component="legacy-service-account-token-cleaner",
        aliases=("legacy-service-account-token-cleaner",),
        wakes={SECRETS: _own, SERVICE_ACCOUNTS: _of_account},
        indices={PODS: {"namespace": by_namespace}},
        planned=_plan_key,
        workers=1,
    )


def plan(secret: Obj, is_mounted: bool, tracked_since: str, now: float) -> Plan:
    """Of a token that was made by itself; `tracked_since`: the day, as the server tells it."""
    today = datetime.fromtimestamp(now, UTC).date()
    tracked = _day(tracked_since)
    # Whole days: the first one counts for nothing.
    if tracked is None or today < tracked + timedelta(days=1) + PERIOD:
        return _LATER
    if seconds_of(meta_of(secret)["creationTimestamp"]) >= now - PERIOD.total_seconds():
        return _LATER
    kept_since, labels = today - PERIOD, labels_of(secret)
    used = _day(labels.get(LAST_USED, ""))
    if LAST_USED in labels and (used is None or used >= kept_since):
        return _LATER
    if is_mounted:
        return _LATER
    invalid = _day(labels.get(INVALID_SINCE, ""))
    if invalid is None:
        marked = {"metadata": {"labels": {INVALID_SINCE: today.isoformat()}}}
        return Plan([merge_patch(SECRETS, secret, marked)], again_seconds=DAY_SECONDS)
    if invalid >= kept_since:
        return _LATER
    return Plan([deletion(SECRETS, secret)])


def made_itself(secret: Obj, account: Obj | None) -> bool:
    """Such tokens are listed by their account; others were asked for by somebody."""
    if account is None or annotations_of(secret).get(_UID, uid_of(account)) != uid_of(account):
        return False
    return any(item.get("name") == name_of(secret) for item in account.get("secrets") or ())


async def _plan_key(view: View, key: str) -> Plan:
    secret = view.cache(SECRETS).get(key)
    if secret is None or secret.get("type") != TYPE or is_deleted(secret):
        return NOTHING
    namespace = namespace_of(secret)
    account = f"{namespace}/{annotations_of(secret).get(_NAME, '')}"
    if not made_itself(secret, view.cache(SERVICE_ACCOUNTS).get(account)):
        return NOTHING
    try:
        tracking = await view.client.get(CONFIG_MAPS, *TRACKING)
    except NotFound:
        return _LATER
    pods = view.cache(PODS).by("namespace", namespace)
    is_mounted = any(name_of(secret) in secret_names(pod) for pod in pods)
    return plan(secret, is_mounted, (tracking.get("data") or {}).get("since") or "", view.now)


def _own(_caches: Caches, _old: Obj | None, new: Obj | None) -> Iterable[str]:
    if new is None or new.get("type") != TYPE:
        return ()
    return (f"{namespace_of(new)}/{name_of(new)}",)


def _of_account(_caches: Caches, old: Obj | None, new: Obj | None) -> Iterable[str]:
    """Those that it has begun to list."""
    if new is None or (old or {}).get("secrets") == new.get("secrets"):
        return ()
    return [f"{namespace_of(new)}/{item.get('name')}" for item in new.get("secrets") or ()]


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None
