"""Every way to say who one is × every way to decide × allowed, forbidden, bad and no credentials.

[A1] [A2] One server per mode has all authenticators; what is outside runs on loopback.
"""

import asyncio
from contextlib import asynccontextmanager

import orjson
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa

from sampan.apiserver.authn.jwt import base64url
from sampan.apiserver.authn.jwt_keys import VerifyingKey
from sampan.apiserver.authn.settings import FrontProxySettings, OidcSettings
from sampan.apiserver.outside.webhook_client import Target
from sampan.apiserver.settings import ApiServerSettings
from sampan.core.clock import SystemClock
from sampan.core.http.messages import Request, Response
from sampan.core.http.server import Server
from sampan.core.tls import client_context, server_context
from tests.support.generators.api_requests import api_server
from tests.support.parts.certificates import Authority
from tests.support.worlds.control_plane import published_schema

ALLOWED, FORBIDDEN = "/api/v1/namespaces/default/services", "/api/v1/secrets"
ABAC = (
    '{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":'
    '{"group":"system:authenticated","namespace":"*","resource":"services","readonly":true}}'
)
RULE = {"verbs": ["list"], "apiGroups": [""], "resources": ["services"]}
MODES = ("AlwaysAllow", "AlwaysDeny", "ABAC", "Webhook", "RBAC", "Node")
# credential → the user's name
USERS = {
    "proxy": "from-proxy",
    "certificate": "system:node:n1",
    "token file": "from-file",
    "service account": "system:serviceaccount:default:default",
    "bootstrap token": "system:bootstrap:abcdef",
    "oidc": "from-oidc",
    "webhook": "from-webhook",
}


@pytest.fixture(scope="module")
def authorities(tmp_path_factory):
    names = ("users", "proxies", "strangers")
    users, proxies, strangers = (Authority(tmp_path_factory.mktemp(one)) for one in names)
    return users, proxies, strangers, rsa.generate_private_key(65537, 2048)


def der(pair):
    certificate = x509.load_pem_x509_certificate(pair.cert_path.read_bytes())
    return certificate.public_bytes(serialization.Encoding.DER)


def answers(key, url, request):
    """The issuer and both webhooks."""
    match request.path:
        case "/.well-known/openid-configuration":
            found = {"issuer": url, "jwks_uri": f"{url}/keys"}
        case "/keys":
            found = {"keys": [VerifyingKey(key.public_key()).jwk()]}
        case "/token":
            found = orjson.loads(request.body)
            known = found["spec"]["token"] == "webhook-token"
            found["status"] = {"authenticated": known, "user": {"username": "from-webhook"}}
        case _:
            found = orjson.loads(request.body)
            asked = found["spec"].get("resourceAttributes") or {}
            found["status"] = {"allowed": asked.get("resource") == "services"}
    return Response(200, [("content-type", "application/json")], orjson.dumps(found))


def oidc_token(key, url, **changes):
    now = int(SystemClock().now())
    body = {"iss": url, "aud": "sampan", "sub": "from-oidc", "exp": now + 60, **changes}
    header = {"alg": "RS256", "kid": VerifyingKey(key.public_key()).key_id}
    signed = f"{base64url(orjson.dumps(header))}.{base64url(orjson.dumps(body))}"
    return f"{signed}.{base64url(key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256()))}"


@asynccontextmanager
async def world(mode, authorities):
    """(api, credential → (certificate, headers), the same for bad ones)."""
    users, proxies, strangers, key = authorities
    urls = []

    async def handle(request):
        return answers(key, urls[0], request)

    pair = users.issue("outside")
    outside = Server(handle, ssl_context=server_context(pair.cert_path, pair.key_path))
    urls.append(f"https://127.0.0.1:{await outside.start('127.0.0.1', 0)}")
    url = urls[0]

    def tls():
        return client_context(ca_path=users.ca_path)

    signing = ec.generate_private_key(ec.SECP256R1()).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    settings = ApiServerSettings(
        authorization_modes=(mode,), abac_policy=ABAC, token_signing_key_pem=signing,
        authorization_webhook=Target(f"{url}/sar", tls), token_webhook=Target(f"{url}/token", tls),
        token_file="file-token,from-file,1", bootstrap_tokens=True,
        oidc=(OidcSettings(url, ("sampan",), tls, username_prefix="-"),),
        front_proxy=FrontProxySettings(proxies.ca_path.read_bytes()),
        client_ca_pem=users.ca_path.read_bytes(),
    )  # fmt: skip
    async with api_server(published_schema(), settings=settings, clock=SystemClock()) as api:
        master = der(users.issue("admin", "system:masters"))

        async def made(path, body):
            reply = await sent(api, "POST", path, master, {}, body)
            assert reply.status == 201, reply.body
            return orjson.loads(reply.body)

        data = {"token-id": "abcdef", "token-secret": "0123456789abcdef",
                "usage-bootstrap-authentication": "true"}  # fmt: skip
        await made("/api/v1/namespaces/kube-system/secrets", {
            "metadata": {"name": "bootstrap-token-abcdef"}, "stringData": data,
            "type": "bootstrap.kubernetes.io/token"})  # fmt: skip
        rbac, group = "/apis/rbac.authorization.k8s.io/v1", "rbac.authorization.k8s.io"
        await made(f"{rbac}/clusterroles", {"metadata": {"name": "r"}, "rules": [RULE]})
        subject = {"kind": "Group", "apiGroup": group, "name": "system:authenticated"}
        await made(f"{rbac}/clusterrolebindings", {
            "metadata": {"name": "r"}, "subjects": [subject],
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "r"}})  # fmt: skip
        path = "/api/v1/namespaces/default/serviceaccounts/default/token"
        account = (await made(path, {}))["status"]["token"]
        node = der(users.issue("system:node:n1", "system:nodes"))
        proxy = der(proxies.issue("front"))
        good = {
            "proxy": (proxy, {"x-remote-user": "from-proxy"}),
            "certificate": (node, {}),
            "token file": (None, bearer("file-token")),
            "service account": (None, bearer(account)),
            "bootstrap token": (None, bearer("abcdef.0123456789abcdef")),
            "oidc": (None, bearer(oidc_token(key, url))),
            "webhook": (None, bearer("webhook-token")),
        }
        bad = {
            "proxy": (proxy, {}),  # it names nobody
            "certificate": (der(strangers.issue("system:node:n1", "system:nodes")), {}),
            "token file": (None, bearer("file-tokem")),
            "service account": (None, bearer(account[:-4] + "AAAA")),
            "bootstrap token": (None, bearer("abcdef.ffffffffffffffff")),
            "oidc": (None, bearer(oidc_token(key, url, aud="other"))),
            "webhook": (None, bearer("webhook-tokem")),
        }
        yield api, good, bad
    await outside.stop(0.1)


def bearer(token):
    return {"authorization": f"Bearer {token}"}


async def sent(api, method, path, certificate, headers, body=None):
    data = b"" if body is None else orjson.dumps(body)
    asked = Request(method, path, "", headers, data, peer_certificate=certificate)
    return await api.server.handle_http(asked)


def expected(mode, credential, path):
    if mode == "AlwaysAllow":
        return 200
    if mode == "Node":
        return 200 if credential == "certificate" and path == ALLOWED else 403
    return 200 if mode != "AlwaysDeny" and path == ALLOWED else 403


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_every_credential_meets_every_mode(authorities, mode):
    async def test():
        async with world(mode, authorities) as (api, good, bad):
            for credential, (certificate, headers) in good.items():
                for path in (ALLOWED, FORBIDDEN):
                    reply = await sent(api, "GET", path, certificate, headers)
                    where = (mode, credential, path)
                    assert reply.status == expected(*where), (where, reply.body)
                    if reply.status == 403:
                        check_refusal(mode, credential, path, orjson.loads(reply.body))
            for credential, (certificate, headers) in bad.items():
                for path in (ALLOWED, FORBIDDEN):
                    reply = await sent(api, "GET", path, certificate, headers)
                    assert reply.status == 401, (mode, credential)
                    assert orjson.loads(reply.body)["message"] == "Unauthorized"
                if "authorization" in headers:  # bad credentials never become anonymous
                    assert (await sent(api, "GET", "/readyz", None, headers)).status == 401
            for path in (ALLOWED, FORBIDDEN):
                assert (await sent(api, "GET", path, None, {})).status == 401
            assert (await sent(api, "GET", "/readyz", None, {})).status == 200

    asyncio.run(test())


def check_refusal(mode, credential, path, status):
    plural = path.rpartition("/")[2]
    where = 'in the namespace "default"' if "namespaces" in path else "at the cluster scope"
    start = (
        f'{plural} is forbidden: User "{USERS[credential]}" cannot list resource "{plural}" in API '
        f'group "" {where}'
    )
    assert status["message"].startswith(start)
    assert (status["reason"], status["code"]) == ("Forbidden", 403)
    if mode == "AlwaysDeny":
        assert status["message"] == f"{start}: Everything is forbidden."
