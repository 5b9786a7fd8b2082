"""Certificate requests, service accounts and their tokens, aggregated roles, bootstrap tokens."""

from typing import Any

from sampan.api.objects import Obj
from tests.support.workload_lives.manifests import made, pod
from tests.support.workload_lives.steps import (
    Change,
    Life,
    Post,
    change,
    change_meta,
    create,
    life,
    remove,
    wait,
)
from tests.support.workload_lives.transport import MERGE

_REQUESTS = ("certificatesigningrequests",)
_CLIENT = ["digital signature", "key encipherment", "client auth"]
_SERVING = ["digital signature", "key encipherment", "server auth"]
_KUBELET, _KUBELET_SERVING = (
    "kubernetes.io/kube-apiserver-client-kubelet",
    "kubernetes.io/kubelet-serving",
)
_API_CLIENT = "kubernetes.io/kube-apiserver-client"


def _request(words: str, signer: str, usages: list[str], **spec: Any) -> Obj:
    return made("certificates.k8s.io/v1", "CertificateSigningRequest", "{life}.r", {
        "request": f"{{csr {words}}}", "signerName": signer, "usages": usages, **spec,
    })  # fmt: skip


def _judged(kind: str, reason: str = "ByHand", message: str = "so") -> Change:
    condition = {"type": kind, "status": "True", "reason": reason, "message": message}
    patch = {"status": {"conditions": [condition]}}
    return Change("certificatesigningrequests/approval", "{life}.r", patch, MERGE)


def _asked(*steps: Any, **words: Any) -> Life:
    return life(*steps, shows=_REQUESTS, **words)


_NODE: dict[str, Any] = {
    "user": "system:node:n7",
    "groups": ("system:nodes", "system:authenticated"),
}
_BOOTSTRAP: dict[str, Any] = {
    "user": "system:bootstrap:abcdef",
    "groups": ("system:bootstrappers", "system:authenticated"),
}

_CERTIFICATES = {
    "csr-approved": _asked(
        create(_request("alice dev", _API_CLIENT, _CLIENT)), wait(2), _judged("Approved"), wait(4)
    ),
    "csr-denied": _asked(
        create(_request("alice dev", _API_CLIENT, _CLIENT)), wait(2), _judged("Denied"), wait(3),
        _judged("Approved"), wait(2),
    ),
    "csr-waits": _asked(create(_request("alice dev", _API_CLIENT, _CLIENT)), wait(4)),
    "csr-of-masters": _asked(
        create(_request("root system:masters", _API_CLIENT, _CLIENT)), wait(2), _judged("Approved"),
        wait(3),
    ),
    "csr-wrong-usages": _asked(
        create(_request("alice dev", _API_CLIENT, _SERVING)), wait(2), _judged("Approved"), wait(4)
    ),
    "csr-own-signer": _asked(
        create(_request("alice dev", "example.com/mine", _CLIENT)), wait(2), _judged("Approved"),
        wait(3),
    ),
    "csr-legacy-signer": _asked(
        create(_request("alice dev", "kubernetes.io/legacy-unknown", _CLIENT)), wait(2)
    ),
    "csr-short": _asked(
        create(_request("alice dev", _API_CLIENT, _CLIENT, expirationSeconds=600)), wait(1),
        _judged("Approved"), wait(3),
    ),
    "csr-too-short": _asked(
        create(_request("alice dev", _API_CLIENT, _CLIENT, expirationSeconds=60)), wait(1)
    ),
    "csr-of-a-node": _asked(
        create(_request("system:node:n7 system:nodes", _KUBELET, _CLIENT), **_NODE), wait(4)
    ),
    "csr-of-another-node": _asked(
        create(_request("system:node:n8 system:nodes", _KUBELET, _CLIENT), **_NODE), wait(4)
    ),
    "csr-of-a-bootstrap": _asked(
        create(_request("system:node:n7 system:nodes", _KUBELET, _CLIENT), **_BOOTSTRAP), wait(4)
    ),
    "csr-kubelet-wrong-organization": _asked(
        create(_request("system:node:n7 other", _KUBELET, _CLIENT)), wait(2), _judged("Approved"),
        wait(4),
    ),
    "csr-kubelet-wrong-name": _asked(
        create(_request("n7 system:nodes", _KUBELET, _CLIENT)), wait(2), _judged("Approved"),
        wait(4),
    ),
    "csr-kubelet-with-names": _asked(
        create(_request("system:node:n7 system:nodes dns:n7", _KUBELET, _CLIENT)), wait(2),
        _judged("Approved"), wait(4),
    ),
    "csr-serving": _asked(
        create(_request("system:node:n7 system:nodes dns:n7 ip:10.0.0.7", _KUBELET_SERVING,
                        _SERVING), **_NODE),
        wait(3), _judged("Approved"), wait(4),
    ),
    "csr-serving-without-names": _asked(
        create(_request("system:node:n7 system:nodes", _KUBELET_SERVING, _SERVING), **_NODE),
        wait(2), _judged("Approved"), wait(4),
    ),
    "csr-serving-client-auth": _asked(
        create(_request("system:node:n7 system:nodes dns:n7", _KUBELET_SERVING, _CLIENT), **_NODE),
        wait(2), _judged("Approved"), wait(4),
    ),
    "csr-key-usage-missing": _asked(
        create(_request("alice dev", _API_CLIENT, ["client auth"])), wait(1), _judged("Approved"),
        wait(3),
    ),
    "csr-bad-request": _asked(
        create(made("certificates.k8s.io/v1", "CertificateSigningRequest", "{life}.r", {
            "request": "eA==", "signerName": _API_CLIENT, "usages": _CLIENT})),
        wait(1),
    ),
}  # fmt: skip


def _token_secret(account: str = "bot", **meta: Any) -> Obj:
    notes = {"kubernetes.io/service-account.name": account, **meta}
    return made("v1", "Secret", "t", None, meta={"annotations": notes},
                type="kubernetes.io/service-account-token")  # fmt: skip


def _token(name: str, **spec: Any) -> Post:
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
    return Post("serviceaccounts/token", name, body)


_ACCOUNTS = {
    "account-token": life(create(made("v1", "ServiceAccount", "bot"), _token_secret()), wait(3)),
    "account-token-comes-first": life(
        create(_token_secret()), wait(2), create(made("v1", "ServiceAccount", "bot")), wait(3)
    ),
    "account-token-goes": life(
        create(made("v1", "ServiceAccount", "bot"), _token_secret()), wait(3),
        remove("serviceaccounts", "bot"), wait(4),
    ),
    "account-token-wrong-uid": life(
        create(made("v1", "ServiceAccount", "bot")),
        create(_token_secret(**{"kubernetes.io/service-account.uid": "other"})), wait(4),
    ),
    "account-token-emptied": life(
        create(made("v1", "ServiceAccount", "bot"), _token_secret()), wait(3),
        change("secrets", "t", data={"token": None, "ca.crt": None}), wait(3),
    ),
    "account-token-spoilt": life(
        create(made("v1", "ServiceAccount", "bot"), _token_secret()), wait(3),
        change("secrets", "t", data={"namespace": "eA=="}), wait(3),
    ),
    "account-token-referenced": life(
        create(made("v1", "ServiceAccount", "bot"), _token_secret()), wait(3),
        change("serviceaccounts", "bot", secrets=[{"name": "t"}]), wait(1), remove("secrets", "t"),
        wait(4),
    ),
    "account-recreated": life(
        create(made("v1", "ServiceAccount", "bot"), _token_secret()), wait(3),
        remove("serviceaccounts", "bot"), create(made("v1", "ServiceAccount", "bot")), wait(4),
    ),
    "account-tokens-asked": life(
        create(made("v1", "ServiceAccount", "bot")), wait(1), _token("bot"),
        _token("bot", expirationSeconds=60), _token("bot", expirationSeconds=3600),
        _token("nobody"), _token("bot", boundObjectRef={
            "apiVersion": "v1", "kind": "Pod", "name": "none"}),
        _token("bot", boundObjectRef={"apiVersion": "v1", "kind": "ConfigMap", "name": "x"}),
        _token("bot", audiences=["a", "b"]), wait(1),
    ),
    "account-token-bound": life(
        create(pod("x", serviceAccountName="default"), made("v1", "Secret", "s")), wait(3),
        _token("default", boundObjectRef={"apiVersion": "v1", "kind": "Pod", "name": "x"}),
        _token("default", boundObjectRef={
            "apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "other"}),
        _token("default", boundObjectRef={"apiVersion": "v1", "kind": "Secret", "name": "s"}),
        wait(1),
    ),
    "account-unmounted": life(
        create({**made("v1", "ServiceAccount", "bot"), "automountServiceAccountToken": False,
                "imagePullSecrets": [{"name": "pull"}]}),
        wait(1), create(pod("x", serviceAccountName="bot")), wait(3),
    ),
}  # fmt: skip


def _role(name: str, labels: dict[str, str] | None = None, **rest: Any) -> Obj:
    return made("rbac.authorization.k8s.io/v1", "ClusterRole", name, None,
                meta={"labels": labels or {}}, **rest)  # fmt: skip


_RULE = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
_SUM = {"clusterRoleSelectors": [{"matchLabels": {"to": "{life}"}}]}
_ROLES = {
    "role-aggregated": life(
        create(_role("{life}.sum", aggregationRule=_SUM, rules=[])), wait(1),
        create(_role("{life}.a", {"to": "{life}"}, rules=[_RULE])),
        create(_role("{life}.b", {"to": "{life}"}, rules=[{**_RULE, "verbs": ["list"]}])), wait(3),
        shows=("clusterroles",),
    ),
    "role-aggregated-less": life(
        create(_role("{life}.a", {"to": "{life}"}, rules=[_RULE])),
        create(_role("{life}.b", {"to": "{life}"}, rules=[{**_RULE, "verbs": ["list"]}])),
        create(_role("{life}.sum", aggregationRule=_SUM, rules=[])), wait(3),
        remove("clusterroles", "{life}.a"), change_meta("clusterroles", "{life}.b", labels=None),
        wait(3), shows=("clusterroles",),
    ),
    "role-aggregated-spoilt": life(
        create(_role("{life}.a", {"to": "{life}"}, rules=[_RULE])),
        create(_role("{life}.sum", aggregationRule=_SUM, rules=[])), wait(3),
        change("clusterroles", "{life}.sum", rules=[]), wait(3), shows=("clusterroles",),
    ),
}  # fmt: skip

LIVES: dict[str, Life] = {**_CERTIFICATES, **_ACCOUNTS, **_ROLES}
