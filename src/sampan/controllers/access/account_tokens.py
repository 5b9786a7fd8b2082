"""Secrets of type kubernetes.io/service-account-token: filled in, and gone with their account.

Job: put the token, the CA bundle and the namespace into such a secret.
Invariant: a secret whose account is missing or another one is deleted, not filled.
"""

from base64 import b64encode
from collections.abc import Callable, Iterable

from sampan.api.objects import (
    Obj,
    annotations_of,
    is_deleted,
    meta_of,
    name_of,
    namespace_of,
    uid_of,
)
from sampan.api.resources import SECRETS, SERVICE_ACCOUNTS
from sampan.client.indexer import by_namespace
from sampan.controllers.actions import NOTHING, Plan, Update, deletion
from sampan.controllers.controller import Caches, Controller, View

TYPE = "kubernetes.io/service-account-token"
_NAME, _UID = "kubernetes.io/service-account.name", "kubernetes.io/service-account.uid"
# (namespace, account, its uid, secret) → the token
Sign = Callable[[str, str, str, str], str]


def account_tokens_controller(sign: Sign, root_ca: str) -> Controller:
    async def planned(view: View, key: str) -> Plan:
        secret = view.cache(SECRETS).get(key)
        if secret is None or secret.get("type") != TYPE or is_deleted(secret):
            return NOTHING
        account = f"{namespace_of(secret)}/{annotations_of(secret).get(_NAME, '')}"
        return plan(secret, view.cache(SERVICE_ACCOUNTS).get(account), sign, root_ca)

    return Controller(
        name="serviceaccount-token-controller",
        component="serviceaccount-token-controller",
        aliases=("serviceaccount-token",),
        wakes={SECRETS: _own, SERVICE_ACCOUNTS: _of_account},
        indices={SECRETS: {"namespace": by_namespace}},
        planned=planned,
    )


def plan(secret: Obj, account: Obj | None, sign: Sign, root_ca: str) -> Plan:
    annotations = annotations_of(secret)
    if account is None or annotations.get(_UID, uid_of(account)) != uid_of(account):
        return Plan([deletion(SECRETS, secret)])
    namespace, data = namespace_of(secret), dict(secret.get("data") or {})
    wanted = {"ca.crt": root_ca.encode(), "namespace": namespace.encode()}
    data |= {key: b64encode(value).decode() for key, value in wanted.items()}
    if not data.get("token"):
        token = sign(namespace, name_of(account), uid_of(account), name_of(secret))
        data["token"] = b64encode(token.encode()).decode()
    noted = {**annotations, _UID: uid_of(account)}
    if data == (secret.get("data") or {}) and noted == annotations:
        return NOTHING
    meta = {**meta_of(secret), "annotations": noted}
    return Plan([Update(SECRETS, {**secret, "metadata": meta, "data": data})])


def _own(_caches: Caches, _old: Obj | None, new: Obj | None) -> Iterable[str]:
    if new is None or new.get("type") != TYPE:
        return ()
    return (f"{namespace_of(new)}/{name_of(new)}",)


def _of_account(caches: Caches, old: Obj | None, new: Obj | None) -> Iterable[str]:
    account = new if new is not None else old
    if account is None:
        return ()
    return [
        f"{namespace_of(secret)}/{name_of(secret)}"
        for secret in caches(SECRETS).by("namespace", namespace_of(account))
        if secret.get("type") == TYPE and annotations_of(secret).get(_NAME) == name_of(account)
    ]
