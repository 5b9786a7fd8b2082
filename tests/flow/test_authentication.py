"""Who somebody is, through the whole server, with the outside parts running on loopback. [A1]"""

import asyncio
import base64
from contextlib import asynccontextmanager

import orjson
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID

from sampan.api.resources import CONFIG_MAPS, SECRETS, SERVICE_ACCOUNTS
from sampan.apiserver.authn.jwt import BadToken, base64url
from sampan.apiserver.authn.jwt_keys import VerifyingKey
from sampan.apiserver.authn.settings import OidcSettings
from sampan.apiserver.outside.webhook_client import Target
from sampan.apiserver.settings import ApiServerSettings
from sampan.client.account_identity import token_request
from sampan.client.inprocess import InProcessClient
from sampan.cmd.cluster.node_accounts import account_of
from sampan.cmd.flags.api_server_flags import SecurityChoices
from sampan.cmd.flags.security_settings import server_settings
from sampan.controllers.access import csr_requests
from sampan.controllers.access.csr_signing import Ca
from sampan.controllers.catalog import ControllerSettings, all_controllers
from sampan.core.clock import SystemClock
from sampan.core.http.messages import Response
from sampan.core.http.server import Server
from sampan.core.tasks import all_of
from sampan.core.tls import client_context, server_context
from tests.support import virtual_time
from tests.support.generators.api_requests import api_server
from tests.support.parts.certificates import Authority
from tests.support.worlds.control_plane import ControlPlane, published_schema

WHO = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


def bearer(token):
    return {"authorization": f"Bearer {token}"}


async def who(api, token):
    """The user's name and groups, or the status."""
    reply = await api.send("POST", WHO, {}, user="", headers=bearer(token))
    if reply.status != 201:
        return reply.status
    user = reply.obj["status"]["userInfo"]
    return user["username"], user["groups"]


@asynccontextmanager
async def served(authority, answer):
    """An HTTPS server on loopback that answers with what `answer` returns."""
    asked = []

    async def handle(request):
        asked.append(request)
        return answer(request)

    pair = authority.issue("outside")
    server = Server(handle, ssl_context=server_context(pair.cert_path, pair.key_path))
    port = await server.start("127.0.0.1", 0)
    try:
        yield f"https://127.0.0.1:{port}", asked
    finally:
        await server.stop(0.1)


def json_reply(document, status=200):
    return Response(status, [("content-type", "application/json")], orjson.dumps(document))


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("ca"))


class Issuer:
    """Signs like an identity provider; its keys are what it shows."""

    def __init__(self):
        self.key = rsa.generate_private_key(65537, 2048)
        self.url = ""

    def token(self, **changes):
        from cryptography.hazmat.primitives.asymmetric import padding

        now = int(SystemClock().now())
        body = {"iss": self.url, "aud": "sampan", "sub": "7", "exp": now + 60, "iat": now,
                "email": "a@example.com", "groups": ["dev"], **changes}  # fmt: skip
        header = {"alg": "RS256", "kid": VerifyingKey(self.key.public_key()).key_id}
        signed = f"{base64url(orjson.dumps(header))}.{base64url(orjson.dumps(body))}"
        signature = self.key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256())
        return f"{signed}.{base64url(signature)}"

    def answer(self, request):
        if request.path == "/.well-known/openid-configuration":
            return json_reply({"issuer": self.url, "jwks_uri": f"{self.url}/keys"})
        return json_reply({"keys": [VerifyingKey(self.key.public_key()).jwk()]})


@pytest.mark.slow
def test_a_user_of_an_openid_issuer(authority):
    issuer = Issuer()

    async def test():
        async with served(authority, issuer.answer) as (url, asked):
            issuer.url = url
            oidc = OidcSettings(
                url, ("sampan",), lambda: client_context(ca_path=authority.ca_path),
                username_claim="email", groups_claim="groups", groups_prefix="oidc:",
                required_claims=(("tier", "gold"),),
            )  # fmt: skip
            settings = ApiServerSettings(oidc=(oidc,))
            async with api_server(
                published_schema(), settings=settings, clock=SystemClock()
            ) as api:
                good = issuer.token(tier="gold")
                expected = ("a@example.com", ["oidc:dev", "system:authenticated"])
                # Who comes while the issuer is asked waits for its answer, too.
                assert await all_of(who(api, good) for _ in range(5)) == [expected] * 5
                assert len(asked) == 2  # discovery and keys, once
                for wrong in (
                    {"tier": "tin"},
                    {"tier": "gold", "aud": "other"},
                    {"tier": "gold", "aud": 5},
                    {"tier": "gold", "aud": {"sampan": True}},
                    {"tier": "gold", "aud": [["sampan"]]},
                    {"tier": "gold", "exp": 1},
                    {"tier": "gold", "iss": "https://elsewhere"},
                    {"tier": "gold", "email_verified": False},
                    {"tier": "gold", "email": None},
                ):
                    assert await who(api, issuer.token(**wrong)) == 401, wrong
                issuer.key = rsa.generate_private_key(65537, 2048)  # a key it does not show us yet
                assert await who(api, issuer.token(tier="gold")) == 401  # asked too recently
                head, body, _ = good.split(".")
                none = base64url(orjson.dumps({"alg": "none"}))
                for forged in (f"{none}.{body}.", f"{head}.{body}.AAAA", f"{head}.{body}"):
                    assert await who(api, forged) == 401

    asyncio.run(test())


@pytest.mark.slow
def test_an_openid_issuer_has_bounds(authority):
    issuer, more = Issuer(), {}

    def answer(request):
        found = orjson.loads(issuer.answer(request).body)
        return json_reply({**more, **found})

    async def seen():
        async with served(authority, answer) as (url, _):
            issuer.url = url
            oidc = OidcSettings(url, ("sampan",), lambda: client_context(ca_path=authority.ca_path))
            settings = ApiServerSettings(oidc=(oidc,))
            async with api_server(
                published_schema(), settings=settings, clock=SystemClock()
            ) as api:
                return await who(api, issuer.token())

    assert asyncio.run(seen()) != 401
    more["filler"] = "x" * 300_000
    assert asyncio.run(seen()) == 401


@pytest.mark.slow
def test_a_webhook_that_knows_tokens_is_asked_once(authority):
    def answer(request):
        review = orjson.loads(request.body)
        token = review["spec"]["token"]
        if token == "boom":
            return Response(302, [("location", "https://127.0.0.1:1/")], b"")
        user = {"username": "alice", "uid": "7", "groups": ["dev"], "extra": {"k": ["v"]}}
        known = {"authenticated": True, "user": user}
        review["status"] = known if token == "known" else {"authenticated": False}
        return json_reply(review)

    async def test():
        async with served(authority, answer) as (url, asked):
            hook = Target(f"{url}/review", lambda: client_context(ca_path=authority.ca_path))
            settings = ApiServerSettings(token_webhook=hook)
            async with api_server(
                published_schema(), settings=settings, clock=SystemClock()
            ) as api:
                for _ in range(3):
                    assert await who(api, "known") == ("alice", ["dev", "system:authenticated"])
                    assert await who(api, "unknown") == 401
                assert len(asked) == 2
                assert await who(api, "boom") == 401  # a redirect is not followed

    asyncio.run(test())


def test_a_token_file_names_users():
    settings = ApiServerSettings(token_file='t1,alice,1,"dev,ops"\n')

    async def test():
        async with api_server(published_schema(), settings=settings) as api:
            assert await who(api, "t1") == ("alice", ["dev", "ops", "system:authenticated"])
            assert await who(api, "t2") == 401

    virtual_time.run(test())


@pytest.mark.parametrize(
    ("paths", "health", "pods"),
    [
        (frozenset({"/readyz"}), 200, 401),
        (frozenset(), 401, 401),
        (None, 200, 403),
    ],
)
def test_who_shows_nothing_is_anonymous_where_the_settings_say_so(paths, health, pods):
    async def test():
        settings = ApiServerSettings(anonymous_paths=paths)
        async with api_server(published_schema(), settings=settings) as api:
            assert (await api.send("GET", "/readyz", user="")).status == health
            reply = await api.send("GET", "/api/v1/pods", user="")
            assert reply.status == pods
            if pods == 403:
                assert 'User "system:anonymous" cannot list' in reply.message

    virtual_time.run(test())


def pem_key():
    return ec.generate_private_key(ec.SECP256R1()).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def test_the_cluster_is_an_issuer_that_others_can_verify():
    async def test():
        settings = ApiServerSettings(
            token_signing_key_pem=pem_key(), token_other_keys_pem=pem_key()
        )
        async with api_server(published_schema(), settings=settings) as api:
            found = (await api.get("/.well-known/openid-configuration")).obj
            assert found["issuer"] == settings.token_issuer
            keys = (await api.get("/openid/v1/jwks")).obj["keys"]
            assert [one["kty"] for one in keys] == ["EC", "EC"]
            accounts = "/api/v1/namespaces/default/serviceaccounts"
            token = (await api.made(f"{accounts}/default/token", {}))["status"]["token"]
            own = await api.send("GET", "/openid/v1/jwks", user="", headers=bearer(token))
            assert own.status == 200
            assert (await api.send("GET", "/openid/v1/jwks", user="bob", group="")).status == 403

    virtual_time.run(test())


def test_a_bound_token_dies_with_its_pod():
    async def test():
        settings = ApiServerSettings(token_signing_key_pem=pem_key())
        async with api_server(published_schema(), settings=settings) as api:
            pods = "/api/v1/namespaces/default/pods"
            node = {"metadata": {"name": "n1"}}
            node_uid = (await api.made("/api/v1/nodes", node))["metadata"]["uid"]
            container = {"name": "c", "image": "i"}
            body = {
                "metadata": {"name": "p"},
                "spec": {"nodeName": "n1", "containers": [container]},
            }
            uid = (await api.made(pods, body))["metadata"]["uid"]
            reference = {"kind": "Pod", "apiVersion": "v1", "name": "p", "uid": uid}
            path = "/api/v1/namespaces/default/serviceaccounts/default/token"
            asked = {"spec": {"boundObjectRef": reference}}
            token = (await api.made(path, asked))["status"]["token"]
            reply = await api.send("POST", WHO, {}, user="", headers=bearer(token))
            extra = reply.obj["status"]["userInfo"]["extra"]
            start = "authentication.kubernetes.io/"
            assert extra[f"{start}pod-uid"] == [uid]
            assert extra[f"{start}node-name"] == ["n1"]
            assert extra[f"{start}node-uid"] == [node_uid]
            assert extra[f"{start}credential-id"][0].startswith("JTI=")
            stale = {"spec": {"boundObjectRef": {**reference, "uid": "other"}}}
            assert (await api.post(path, stale)).status == 409
            for meta, code in (({"name": "other"}, 422), ({"uid": "other"}, 409)):
                assert (await api.post(path, {"metadata": meta, "spec": {}})).status == code
            others = "/api/v1/namespaces/default/serviceaccounts"
            await api.made(others, {"metadata": {"name": "other"}})
            refused = await api.post(f"{others}/other/token", asked)
            assert refused.status == 400
            assert "pod running with different serviceaccount name." in refused.obj["message"]
            for version, text in (("apps/v1", "apps/v1"), ("v1", "/v1")):
                map_ = {"kind": "ConfigMap", "apiVersion": version, "name": "p"}
                refused = await api.post(path, {"spec": {"boundObjectRef": map_}})
                why = f"cannot bind token to object of type {text}, Kind=ConfigMap"
                assert (refused.status, refused.obj["message"]) == (400, why)
            await api.delete(f"{pods}/p?gracePeriodSeconds=0")
            assert await who(api, token) == 401
            await api.made(pods, body)  # another pod of that name is another pod
            assert await who(api, token) == 401

    virtual_time.run(test())


def test_the_network_of_a_node_has_an_account_of_its_own():
    """Its token is bound to the node that asked for it, and goes with the node."""

    async def test():
        settings = ApiServerSettings(token_signing_key_pem=pem_key())
        async with api_server(published_schema(), settings=settings) as api:
            for name in ("n1", "n2"):
                await api.made("/api/v1/nodes", {"metadata": {"name": name}})
            accounts = "/api/v1/namespaces/kube-system/serviceaccounts"
            path = f"{accounts}/sampan-node-network/token"

            async def asked(body, where=path):
                return await api.send(
                    "POST", where, body, user="system:node:n1", group="system:nodes"
                )

            mine = token_request(account_of("sampan-node-network", "n1"))
            wrong = (
                token_request(account_of("sampan-node-network", "n2")),
                {**mine, "spec": {"expirationSeconds": 3600}},
                {**mine, "spec": {**mine["spec"], "audiences": ["vault"]}},
            )
            assert [(await asked(body)).status for body in wrong] == [403] * 3
            assert (await asked(mine, f"{accounts}/default/token")).status == 403
            headers = bearer((await asked(mine)).obj["status"]["token"])

            async def seen(where, method="GET", body=None):
                return (await api.send(method, where, body, user="", headers=headers)).status

            network = "/apis/networking.k8s.io/v1/networkpolicies"
            for kind in ("services", "pods", "namespaces", "nodes"):
                assert await seen(f"/api/v1/{kind}") == 200
            assert await seen(network) == 200
            for kind in ("secrets", "configmaps", "serviceaccounts", "events"):
                assert await seen(f"/api/v1/{kind}") == 403
            assert await seen(path, "POST", mine) == 403
            await api.delete("/api/v1/nodes/n1")
            assert await seen(network) == 401

    virtual_time.run(test())


def local_volume(name, node):
    expression = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
    affinity = {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}
    meta = {"name": name, "finalizers": ["sampan.io/local-volume", "example.com/mine"]}
    spec = {
        "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
        "local": {"path": "/volumes/x"}, "nodeAffinity": affinity,
        "storageClassName": "standard", "persistentVolumeReclaimPolicy": "Delete",
    }  # fmt: skip
    return {"metadata": meta, "spec": spec}


def test_a_node_lets_go_of_its_own_volumes_and_of_nothing_else():
    """By an account whose token is bound to the node; nobody else's volume is touched."""

    async def test():
        settings = ApiServerSettings(token_signing_key_pem=pem_key())
        async with api_server(published_schema(), settings=settings) as api:
            volumes = "/api/v1/persistentvolumes"
            for name in ("n1", "n2"):
                await api.made("/api/v1/nodes", {"metadata": {"name": name}})
                await api.made(volumes, local_volume(f"on-{name}", name))
            path = "/api/v1/namespaces/kube-system/serviceaccounts/sampan-node-volumes/token"
            mine = token_request(account_of("sampan-node-volumes", "n1"))
            asked = await api.send("POST", path, mine, user="system:node:n1", group="system:nodes")
            headers = bearer(asked.obj["status"]["token"])
            merge = {**headers, "content-type": "application/merge-patch+json"}

            async def patched(name, **changes):
                where = f"{volumes}/{name}"
                reply = await api.send("PATCH", where, changes, user="", headers=merge)
                return reply.status

            kept = ["example.com/mine", "kubernetes.io/pv-protection"]
            released = {"finalizers": kept}
            assert await patched("on-n2", metadata=released) == 403
            assert await patched("on-n1", metadata={"finalizers": []}) == 403
            assert await patched("on-n1", metadata={**released, "labels": {"a": "b"}}) == 403
            spec = {"persistentVolumeReclaimPolicy": "Retain"}
            assert await patched("on-n1", metadata=released, spec=spec) == 403
            assert await patched("on-n1", metadata=released) == 200
            assert (await api.send("GET", volumes, None, user="", headers=headers)).status == 200
            gone = await api.send("DELETE", f"{volumes}/on-n1", None, user="", headers=headers)
            assert gone.status == 403

    virtual_time.run(test())


def request_for(name, organization, key):
    parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization),
             x509.NameAttribute(NameOID.COMMON_NAME, name)]  # fmt: skip
    built = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(parts))
    pem = built.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    return base64.b64encode(pem).decode()


def csr(name, request, signer=csr_requests.KUBELET_CLIENT):
    return {
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "CertificateSigningRequest",
        "metadata": {"name": name},
        "spec": {
            "request": request,
            "signerName": signer,
            "usages": ["client auth", "digital signature"],
            "expirationSeconds": 3600,
        },
    }


BOOTSTRAP = {
    "apiVersion": "v1",
    "kind": "Secret",
    "type": "bootstrap.kubernetes.io/token",
    "metadata": {"name": "bootstrap-token-abcdef", "namespace": "kube-system"},
    "stringData": {
        "token-id": "abcdef",
        "token-secret": "0123456789abcdef",
        "usage-bootstrap-authentication": "true",
    },
}


def test_a_new_node_comes_in_with_a_bootstrap_token(authority):
    """[A1] Token → certificate request → approved and signed → a certificate of its own."""
    ca = Ca(authority.ca_path.read_bytes(), authority.ca_key_pem())
    settings = ApiServerSettings(bootstrap_tokens=True, ca_bundle_pem="PEM")
    names = (
        "certificatesigningrequest-approving-controller",
        "certificatesigningrequest-signing-controller",
    )

    def controllers():
        all_ = all_controllers(ControllerSettings(root_ca="PEM", ca=ca))
        return [one for one in all_ if one.name in names]

    async def test():
        async with ControlPlane(controllers, settings) as plane:
            await plane.client.create(SECRETS, BOOTSTRAP, "kube-system")
            user = await plane.server.token_user("abcdef.0123456789abcdef")
            assert user.name == "system:bootstrap:abcdef"
            node = InProcessClient(plane.server.as_user(user))
            key = ec.generate_private_key(ec.SECP256R1())
            asked = csr("n1", request_for("system:node:n1", "system:nodes", key))
            await node.create(csr_requests.REQUESTS, asked)
            greedy = csr("root", request_for("admin", "system:masters", key))
            await node.create(csr_requests.REQUESTS, greedy)
            await plane.settled()
            made = await node.get(csr_requests.REQUESTS, "", "n1")
            assert made["spec"]["username"] == "system:bootstrap:abcdef"
            [approved] = made["status"]["conditions"]
            assert (approved["type"], approved["reason"]) == ("Approved", "AutoApproved")
            pem = base64.b64decode(made["status"]["certificate"])
            certificate = x509.load_pem_x509_certificate(pem)
            certificate.verify_directly_issued_by(
                x509.load_pem_x509_certificate(authority.ca_path.read_bytes())
            )
            lives = certificate.not_valid_after_utc - certificate.not_valid_before_utc
            assert lives.total_seconds() == 3600 + 300
            refused = await node.get(csr_requests.REQUESTS, "", "root")
            assert not refused.get("status", {}).get("certificate")

    virtual_time.run(test())


def test_a_secret_for_a_token_is_filled_and_goes_with_its_account():
    settings = ApiServerSettings(token_signing_key_pem=pem_key(), ca_bundle_pem="PEM")
    planes = []

    def controllers():
        sign = planes[0].server.sign_account_token
        all_ = all_controllers(ControllerSettings(root_ca="PEM", sign_account_token=sign))
        return [one for one in all_ if one.name == "serviceaccount-token-controller"]

    async def test():
        plane = ControlPlane(controllers, settings)
        planes.append(plane)
        async with plane:
            meta = {"name": "bot", "namespace": "default"}
            await plane.client.create(SERVICE_ACCOUNTS, {"metadata": meta}, "default")
            note = {"kubernetes.io/service-account.name": "bot"}
            secret = {
                "type": "kubernetes.io/service-account-token",
                "metadata": {"name": "bot-token", "namespace": "default", "annotations": note},
            }
            await plane.client.create(SECRETS, secret, "default")
            await plane.settled()
            filled = await plane.client.get(SECRETS, "default", "bot-token")
            token = base64.b64decode(filled["data"]["token"]).decode()
            user = await plane.server.token_user(token)
            assert user.name == "system:serviceaccount:default:bot"
            await asyncio.sleep(1)
            day = plane.time_text()[:10]
            used = await plane.client.get(SECRETS, "default", "bot-token")
            assert used["metadata"]["labels"] == {"kubernetes.io/legacy-token-last-used": day}
            await plane.server.token_user(token)
            await asyncio.sleep(1)
            assert await plane.client.get(SECRETS, "default", "bot-token") == used
            invalid = {"metadata": {"labels": {"kubernetes.io/legacy-token-invalid-since": day}}}
            await plane.client.patch(SECRETS, "default", "bot-token", invalid)
            with pytest.raises(BadToken, match="has been marked invalid"):
                await plane.server.token_user(token)
            await plane.client.delete(SERVICE_ACCOUNTS, "default", "bot")
            await plane.settled()
            assert not (await plane.client.list(SECRETS, "default")).items

    virtual_time.run(test())


def test_a_token_in_a_secret_that_nobody_uses_becomes_invalid_and_goes():
    """[A1] Only one that its account lists; looked at once a day, or when it changes."""
    wanted = "legacy-serviceaccount-token-cleaner-controller"

    def controllers():
        all_ = all_controllers(ControllerSettings(root_ca="PEM"))
        return [one for one in all_ if one.name == wanted]

    async def test():
        async with ControlPlane(controllers) as plane:
            listed = {"metadata": {"name": "bot"}, "secrets": [{"name": "made-itself"}]}
            await plane.client.create(SERVICE_ACCOUNTS, listed, "default")
            for name in ("made-itself", "asked-for"):
                note = {"kubernetes.io/service-account.name": "bot"}
                secret = {
                    "type": "kubernetes.io/service-account-token",
                    "metadata": {"name": name, "annotations": note},
                }
                await plane.client.create(SECRETS, secret, "default")
            await plane.settled()
            seen = []
            for _ in range(2):
                plane.clock.jump(400 * 86400)
                touch = {"metadata": {"annotations": {"touched": plane.time_text()}}}
                for secret in (await plane.client.list(SECRETS, "default")).items:
                    await plane.client.patch(SECRETS, "default", secret["metadata"]["name"], touch)
                await plane.settled()
                left = (await plane.client.list(SECRETS, "default")).items
                seen.append({one["metadata"]["name"]: "labels" in one["metadata"] for one in left})
            assert seen == [{"asked-for": False, "made-itself": True}, {"asked-for": False}]

    virtual_time.run(test())


def test_since_when_tokens_in_secrets_are_followed_is_said_and_kept():
    where = ("kube-system", "kube-apiserver-legacy-service-account-token-tracking")

    async def test():
        async with ControlPlane() as plane:
            day = plane.time_text()[:10]
            assert (await plane.client.get(CONFIG_MAPS, *where))["data"] == {"since": day}
            await plane.client.patch(CONFIG_MAPS, *where, {"data": {"since": "long ago"}})
            await asyncio.sleep(1)
            assert (await plane.client.get(CONFIG_MAPS, *where))["data"] == {"since": day}
            await plane.client.delete(CONFIG_MAPS, *where)
            await asyncio.sleep(1801)
            assert (await plane.client.get(CONFIG_MAPS, *where))["data"]["since"]

    virtual_time.run(test())


def configuration(*issuers):
    kind = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration"}
    return {**kind, "jwt": list(issuers)}


@pytest.mark.slow
def test_several_issuers_from_a_file_that_is_read_again(authority, tmp_path):
    """[A1] AuthenticationConfiguration: claims checked and mapped in CEL; a file that is not good
    changes nothing, and a good one takes over without a restart."""
    first, second = Issuer(), Issuer()
    path = tmp_path / "authentication.yaml"

    def wanted(issuer, **more):
        trust = authority.ca_path.read_text()
        where = {"url": issuer.url, "audiences": ["sampan"], "certificateAuthority": trust}
        name = {"username": {"expression": f"'{more.pop('prefix')}' + claims.sub"}}
        return {"issuer": where, "claimMappings": name, **more}

    async def test():
        async with (
            served(authority, first.answer) as (url, _),
            served(authority, second.answer) as (other, _),
        ):
            first.url, second.url = url, other
            gold = {"expression": "claims.tier == 'gold'", "message": "gold only"}
            both = [
                wanted(first, prefix="one:", claimValidationRules=[gold]),
                wanted(second, prefix="two:"),
            ]
            path.write_bytes(orjson.dumps(configuration(*both)))
            chosen = SecurityChoices(authentication_config=str(path))
            settings = ApiServerSettings(**server_settings(chosen, b""))
            async with api_server(
                published_schema(), settings=settings, clock=SystemClock()
            ) as api:
                assert (await who(api, first.token(tier="gold")))[0] == "one:7"
                assert await who(api, first.token(tier="tin")) == 401
                assert (await who(api, second.token()))[0] == "two:7"
                (followed,) = api.server.followed_files
                path.write_text("kind: Nonsense")
                await followed.once()
                assert (await who(api, second.token()))[0] == "two:7"
                path.write_bytes(orjson.dumps(configuration(both[0])))
                await followed.once()
                assert (await who(api, first.token(tier="gold")))[0] == "one:7"
                assert await who(api, second.token()) == 401

    asyncio.run(test())


KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: x
contexts: [{{name: x, context: {{cluster: x, user: x}}}}]
clusters: [{{name: x, cluster: {{server: "{url}", certificate-authority: "{ca}"}}}}]
users: [{{name: x, user: {{}}}}]
"""


@pytest.mark.slow
def test_webhooks_that_are_asked_about_what_they_are_meant_for(authority, tmp_path):
    """[A2] AuthorizationConfiguration: two webhooks with conditions before RBAC; read again."""
    path, hook = tmp_path / "authorization.yaml", tmp_path / "hook"

    def answer(request):
        review = orjson.loads(request.body)
        name = request.path[1:]
        review["status"] = {"allowed": name == "allow", "denied": name == "deny", "reason": name}
        return json_reply(review)

    def webhook(name, *conditions):
        return {
            "type": "Webhook",
            "name": name,
            "webhook": {
                "timeout": "3s",
                "subjectAccessReviewVersion": "v1",
                "matchConditionSubjectAccessReviewVersion": "v1",
                "failurePolicy": "Deny",
                "cacheAuthorizedRequests": False,
                "cacheUnauthorizedRequests": False,
                "connectionInfo": {"type": "KubeConfigFile", "kubeConfigFile": f"{hook}-{name}"},
                "matchConditions": [{"expression": one} for one in conditions],
            },
        }

    def write(*authorizers):
        kind = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthorizationConfiguration"}
        path.write_bytes(orjson.dumps({**kind, "authorizers": list(authorizers)}))

    async def test():
        async with served(authority, answer) as (url, asked):
            for name in ("allow", "deny"):
                text = KUBECONFIG.format(url=f"{url}/{name}", ca=authority.ca_path)
                (tmp_path / f"hook-{name}").write_text(text)
            of_secrets = "request.resourceAttributes.resource == 'secrets'"
            rbac = {"type": "RBAC", "name": "rbac"}
            deny = webhook("deny", "has(request.resourceAttributes)", of_secrets)
            write(deny, webhook("allow", "request.user == 'ann'"), rbac)
            chosen = SecurityChoices(authorization_config=str(path))
            settings = ApiServerSettings(**server_settings(chosen, b""))
            async with api_server(
                published_schema(), settings=settings, clock=SystemClock()
            ) as api:

                async def status(user, what):
                    where = f"/api/v1/namespaces/default/{what}"
                    return (await api.send("GET", where, user=user, group="dev")).status

                assert await status("ann", "pods") == 200
                assert [one.path for one in asked] == ["/allow"]
                assert await status("ann", "secrets") == 403  # the first that denies ends it
                assert await status("bob", "pods") == 403
                assert [one.path for one in asked] == ["/allow", "/deny"]  # nobody about bob
                (followed,) = api.server.followed_files
                write({"type": "Webhook", "name": "broken"})
                await followed.once()
                assert await status("ann", "pods") == 200  # the former chain holds
                write(rbac)
                await followed.once()
                assert await status("ann", "pods") == 403
                assert (await api.get("/api/v1/namespaces/default/pods")).status == 200

    asyncio.run(test())
