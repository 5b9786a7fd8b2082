"""bootstrapsigner: signs the ConfigMap cluster-info of kube-public with bootstrap tokens.

Job: its data and the tokens → its data with their signatures (JWS with detached content), so that a
    new node that knows nothing but a token can believe it. As upstream's bootstrapsigner.go; off
    unless --controllers names it.
Invariant: a signature of a token that is gone, has expired or may not sign does not stay.
"""

import hashlib
import hmac
from base64 import urlsafe_b64encode
from collections.abc import Iterable

import orjson

from sampan.api.errors import Conflict, NotFound
from sampan.api.objects import Obj, copy_of, name_of, namespace_of
from sampan.api.resources import CONFIG_MAPS, SECRETS
from sampan.api.rules.tokens.bootstrap_tokens import (
    NAMESPACE,
    PREFIX,
    TYPE,
    seconds_left,
    token_data,
)
from sampan.client.indexer import by_namespace
from sampan.controllers.actions import NOTHING, Plan, Update
from sampan.controllers.controller import Caches, Controller, View

KEY = "kube-public/cluster-info"
KUBECONFIG = "kubeconfig"
SIGNATURE = "jws-kubeconfig-"
_ID_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789")
_ID_LENGTH = 6


def bootstrap_signer_controller() -> Controller:
    return Controller(
        name="bootstrap-signer-controller",
        component="bootstrap-signer",
        aliases=("bootstrapsigner",),
        is_named_only=True,
        wakes={CONFIG_MAPS: _of_info, SECRETS: _of_token},
        indices={SECRETS: {"namespace": by_namespace}},
        planned=_plan_key,
        workers=1,
    )


def plan(info: Obj, secrets: Iterable[Obj], now: float) -> Plan:
    data = info.get("data") or {}
    if KUBECONFIG not in data:
        return NOTHING
    tokens = dict(sorted(filter(None, (_signing(secret, now) for secret in secrets))))
    signed = {name: text for name, text in data.items() if not name.startswith(SIGNATURE)}
    for token_id, secret in tokens.items():
        signed[f"{SIGNATURE}{token_id}"] = signature(data[KUBECONFIG], token_id, secret)
    if signed == data:
        return NOTHING
    updated = copy_of(info)
    updated["data"] = signed
    return Plan([Update(CONFIG_MAPS, updated, settled=(Conflict, NotFound))])


def signature(content: str, token_id: str, secret: str) -> str:
    """As RFC 7515 has it in its appendix F."""
    header = _text(orjson.dumps({"alg": "HS256", "kid": token_id}))
    signed = f"{header}.{_text(content.encode())}".encode()
    return f"{header}..{_text(hmac.digest(secret.encode(), signed, hashlib.sha256))}"


def is_token(secret: Obj) -> bool:
    return secret.get("type") == TYPE and namespace_of(secret) == NAMESPACE


def _signing(secret: Obj, now: float) -> tuple[str, str] | None:
    """Id and secret of a token that may sign."""
    if not is_token(secret):
        return None
    data, token_id = token_data(secret), name_of(secret).removeprefix(PREFIX)
    if name_of(secret) == token_id or data.get("token-id") != token_id:
        return None
    if len(token_id) != _ID_LENGTH or not _ID_LETTERS.issuperset(token_id):
        return None
    if not data.get("token-secret") or seconds_left(data, now) == 0:
        return None
    if data.get("usage-bootstrap-signing") != "true":
        return None
    return token_id, data["token-secret"]


async def _plan_key(view: View, key: str) -> Plan:
    info = view.cache(CONFIG_MAPS).get(key)
    if info is None:
        return NOTHING
    return plan(info, view.cache(SECRETS).by("namespace", NAMESPACE), view.now)


def _of_info(_caches: Caches, _old: Obj | None, new: Obj | None) -> Iterable[str]:
    named = new is not None and f"{namespace_of(new)}/{name_of(new)}" == KEY
    return (KEY,) if named else ()


def _of_token(_caches: Caches, old: Obj | None, new: Obj | None) -> Iterable[str]:
    return (KEY,) if any(one is not None and is_token(one) for one in (old, new)) else ()


def _text(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()
