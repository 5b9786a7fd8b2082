"""The token that every pod has: its node replaces it every hour, and old clients go on. [A1]"""

import asyncio

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from sampan.api.objects import seconds_of
from sampan.apiserver.authn.jwt import parse
from sampan.apiserver.settings import ApiServerSettings
from tests.support import virtual_time
from tests.support.generators.api_requests import api_server, pod
from tests.support.worlds.control_plane import published_schema

TOKEN = "/api/v1/namespaces/default/serviceaccounts/default/token"
WHO = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
DEFAULT = 3607
YEAR = 365 * 24 * 3600


def pem_key():
    key = ec.generate_private_key(ec.SECP256R1())
    plain = serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)


def with_server(test, **more):
    async def main():
        settings = ApiServerSettings(token_signing_key_pem=pem_key(), **more)
        async with api_server(published_schema(), settings=settings) as api:
            made = await api.made("/api/v1/namespaces/default/pods", pod("p"))
            reference = {"kind": "Pod", "apiVersion": "v1", "name": "p",
                         "uid": made["metadata"]["uid"]}  # fmt: skip
            await test(api, reference)

    virtual_time.run(main())


async def asked(api, reference, seconds=DEFAULT, **more):
    """(the token, how long it lasts, how long it says that it lasts, when it warns)."""
    spec = {"expirationSeconds": seconds, "boundObjectRef": reference, **more}
    status = (await api.made(TOKEN, {"spec": spec}))["status"]
    body = parse(status["token"]).body
    told = seconds_of(status["expirationTimestamp"]) - body["iat"]
    return status["token"], body["exp"] - body["iat"], told, body["kubernetes.io"].get("warnafter")


def test_a_pods_default_token_lasts_a_year_and_says_an_hour():
    async def test(api, reference):
        token, lasts, told, warns = await asked(api, reference)
        assert (lasts, told) == (YEAR, DEFAULT)
        assert warns == parse(token).body["iat"] + DEFAULT
        await asyncio.sleep(2 * DEFAULT)
        headers = {"authorization": f"Bearer {token}"}
        assert (await api.send("POST", WHO, {}, user="", headers=headers)).status == 201
        metrics = (await api.send("GET", "/metrics")).body.decode()
        assert "serviceaccount_stale_tokens_total 1" in metrics

    with_server(test)


@pytest.mark.parametrize(
    "more", [{"seconds": 3600}, {"audiences": ["vault"]}, {"boundObjectRef": None}]
)
def test_any_other_token_lasts_as_long_as_it_says(more):
    async def test(api, reference):
        _, lasts, told, warns = await asked(api, reference, **more)
        assert lasts == told == more.get("seconds", DEFAULT)
        assert warns is None

    with_server(test)


def test_extending_can_be_switched_off():
    async def test(api, reference):
        _, lasts, told, warns = await asked(api, reference)
        assert (lasts, told, warns) == (DEFAULT, DEFAULT, None)

    with_server(test, token_extend=False)


def test_a_node_gets_tokens_for_whom_its_pods_want_them_and_for_nobody_else():
    """An attack: a kubelet asks for a token of its pod's account with which to enter elsewhere."""

    async def test(api, _reference):
        await api.made("/api/v1/nodes", {"metadata": {"name": "n1"}})
        wanted = {"serviceAccountToken": {"path": "t", "audience": "vault"}}
        volumes = [
            {"name": "t", "projected": {"sources": [wanted]}},
            {"name": "c", "csi": {"driver": "driver.example.com"}},
        ]
        requests = [{"audience": "driver"}]
        driver = {"metadata": {"name": "driver.example.com"}, "spec": {"tokenRequests": requests}}
        await api.made("/apis/storage.k8s.io/v1/csidrivers", driver)
        body = pod("own", nodeName="n1", serviceAccountName="default", volumes=volumes)
        uid = (await api.made("/api/v1/namespaces/default/pods", body))["metadata"]["uid"]
        reference = {"kind": "Pod", "apiVersion": "v1", "name": "own", "uid": uid}

        async def asked(*audiences):
            spec = {"audiences": list(audiences), "boundObjectRef": reference}
            return await api.send(
                "POST", TOKEN, {"spec": spec}, user="system:node:n1", group="system:nodes"
            )

        assert [(await asked(each)).status for each in ("vault", "driver")] == [201, 201]
        refused = await asked("elsewhere")
        assert refused.status == 403
        assert refused.message == (
            'serviceaccounts "default" is forbidden: audience "elsewhere" not found in pod spec '
            "volume, system:node:n1 is not authorized to request tokens for this audience"
        )
        assert (await asked("vault", "driver")).message.endswith(
            "node may only request 0 or 1 audiences"
        )
        rbac, group = "/apis/rbac.authorization.k8s.io/v1", "rbac.authorization.k8s.io"
        rule = {"verbs": ["request-serviceaccounts-token-audience"], "apiGroups": [""],
                "resources": ["elsewhere"]}  # fmt: skip
        await api.made(f"{rbac}/clusterroles", {"metadata": {"name": "a"}, "rules": [rule]})
        nodes = {"kind": "Group", "apiGroup": group, "name": "system:nodes"}
        role = {"apiGroup": group, "kind": "ClusterRole", "name": "a"}
        bound = {"metadata": {"name": "a"}, "roleRef": role, "subjects": [nodes]}
        await api.made(f"{rbac}/clusterrolebindings", bound)
        assert (await asked("elsewhere")).status == 201

    with_server(test)
