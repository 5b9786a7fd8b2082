"""What an attacker tries. Each test is one attack; others live beside what they attack:

forged proxy headers: tests/unit/apiserver/authn/test_front_proxy.py · escalation, impersonation,
another namespace, another node's secrets: test_authorization.py · a webhook that hangs or sends
elsewhere, nodes that write what is not theirs, lies about quota: test_admission.py
"""

import asyncio
import base64

import orjson
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from sampan.apiserver.authn.tokens import Claims, TokenSigner
from sampan.apiserver.authn.user import MASTERS
from sampan.apiserver.settings import ApiServerSettings
from sampan.core.clock import SystemClock
from sampan.core.http.messages import Limits
from sampan.core.http.server import Server
from tests.support import virtual_time
from tests.support.generators.api_requests import api_server, pod, request
from tests.support.virtual_time import LoopClock
from tests.support.worlds.control_plane import published_schema

PODS = "/api/v1/namespaces/default/pods"


def run(test, **settings):
    async def main():
        chosen = ApiServerSettings(**settings)
        async with api_server(published_schema(), settings=chosen) as api:
            await test(api)

    virtual_time.run(main())


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/namespaces/default/../kube-system/secrets",
        "/api/v1/namespaces/default/%2e%2e/kube-system/secrets",
        "/api/v1/namespaces/default%2f..%2fkube-system/secrets",
        "/api/v1/namespaces//secrets",
        "//api/v1/secrets",
        "/api//v1/secrets",
        "/api/v1/./secrets",
        "/API/v1/secrets",
        "/api/V1/secrets",
        "/api/v1/SECRETS",
        "/api/v1/namespaces/Default/secrets",
        "/api/v1/secrets%00",
        "/api/v1/namespaces/default/pods/x%2flog",
        "/healthz/../api/v1/secrets",
        "/healthz/..%2fapi/v1/secrets",
        "/readyz%2f..%2fapi%2fv1%2fsecrets",
    ],
)
def test_path_tricks_lead_nowhere(path):
    """Whoever may list secrets in `default` alone gets none of another namespace, and a path that
    starts like a public one is not public."""

    async def test(api):
        rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
        rule = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
        await api.made(f"{rbac}/roles", {"metadata": {"name": "r"}, "rules": [rule]})
        group = "rbac.authorization.k8s.io"
        await api.made(f"{rbac}/rolebindings", {
            "metadata": {"name": "r"}, "subjects": [{"kind": "User", "name": "eve"}],
            "roleRef": {"apiGroup": group, "kind": "Role", "name": "r"}})  # fmt: skip
        await api.made("/api/v1/namespaces/kube-system/secrets", {"metadata": {"name": "key"}})
        reply = await api.send("GET", path, user="eve", group="")
        assert reply.status in (400, 403, 404), reply.body
        assert b'"key"' not in reply.body
        assert (await api.send("GET", path, user="")).status in (400, 401, 404)

    run(test)


@pytest.mark.parametrize(
    "name",
    [
        "http:%2f%2fevil",
        "evil.com:80",
        "..",
        "%2e%2e",
        "a%2fb",
        "a@evil.com",
        "a?x",
        "[::1]",
        "a b",
    ],
)
@pytest.mark.parametrize("sub", ["exec?command=sh", "proxy/x", "portforward", "log", "attach"])
def test_names_that_contain_urls_reach_no_other_host(name, sub):
    async def test(api):
        reply = await api.send("GET", f"{PODS}/{name}/{sub}")
        assert reply.status >= 400
        node = await api.send("GET", f"/api/v1/nodes/{name}/proxy/pods")
        assert node.status >= 400

    run(test)


@pytest.fixture(scope="module")
def keys():
    return [
        ec.generate_private_key(ec.SECP256R1()).private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        for _ in range(2)
    ]


def part(value):
    return base64.urlsafe_b64encode(orjson.dumps(value)).rstrip(b"=").decode()


def test_tokens_that_are_not_good_open_nothing(keys):
    """Other audience, expired, not yet valid, none, another key, changed claims, a public key used
    as a shared secret."""

    async def test(api):
        issuer = ApiServerSettings().token_issuer
        ours, theirs = (TokenSigner(one, issuer) for one in keys)
        account = await api.get("/api/v1/namespaces/default/serviceaccounts/default")
        uid = account.obj["metadata"]["uid"]
        now = LoopClock().now()

        def claims(audience=issuer, seconds=600):
            return Claims((audience,), int(now) + seconds, "default", "default", uid)

        good = ours.token(claims(), now, "id")
        head, body, signature = good.split(".")
        changed = orjson.loads(base64.urlsafe_b64decode(body + "=="))
        changed["sub"] = "system:serviceaccount:kube-system:root"
        changed["kubernetes.io"]["namespace"] = "kube-system"
        forged = {
            "another audience": ours.token(claims("https://vault"), now, "id"),
            "expired": ours.token(claims(seconds=-1), now - 700, "id"),
            "not yet valid": ours.token(claims(seconds=9000), now + 3600, "id"),
            "another key": theirs.token(claims(), now, "id"),
            "no algorithm": f"{part({'alg': 'none'})}.{body}.",
            "no algorithm, signed": f"{part({'alg': 'none'})}.{body}.{signature}",
            "shared secret": f"{part({'alg': 'HS256', 'kid': ours.key_id})}.{body}.{signature}",
            "RSA": f"{part({'alg': 'RS256', 'kid': ours.key_id})}.{body}.{signature}",
            "another key's name": f"{part({'alg': 'ES256', 'kid': theirs.key_id})}.{body}.AAAA",
            "changed": f"{head}.{part(changed)}.{signature}",
            "cut off": good[:-10],
            "nothing": "..",
            "huge": "a" * 200_000 + ".b.c",
        }
        path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"

        async def status(token):
            headers = {"authorization": f"Bearer {token}"}
            return (await api.send("POST", path, {}, user="", headers=headers)).status

        assert await status(good) == 201
        for what, token in forged.items():
            assert await status(token) == 401, what

    run(test, token_signing_key_pem=keys[0])


@pytest.mark.parametrize(
    "header", ["Bearer", "Basic YWRtaW46YWRtaW4=", "Negotiate x", "bearer  ", "Bearer a b"]
)
def test_other_ways_to_authenticate_are_no_way(header):
    async def test(api):
        for path in (PODS, "/readyz"):
            reply = await api.send("GET", path, user="", headers={"authorization": header})
            assert reply.status == 401

    run(test)


@pytest.mark.parametrize(
    "raw",
    [
        b"GET /api/v1/pods HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /healthz HTTP/1.1\r\nHost: a\r\n\r\n",
        b"POST /api/v1/pods HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n"
        b"Content-Length: 6\r\n\r\nabcdef",
        b"GET /api/v1/pods HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
        b"GET /api/v1/pods HTTP/1.1\r\nHost: a\r\nX-Remote-User : admin\r\n\r\n",
        b"GET /api/v1/pods HTTP/1.1\r\nHost: a\r\nA: b\r\n folded: c\r\n\r\n",
        b"GET /api/v1/pods HTTP/1.1\r\nHost: a\r\n"
        b"Authorization: Bearer a\nX-Remote-User: b\r\n\r\n",
        b"GET /api/v1/pods\x00 HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET http://evil/api/v1/pods HTTP/1.1\r\nHost: a\r\n\r\n",
    ],
)
@pytest.mark.slow
def test_smuggled_requests_and_headers_get_one_refusal(raw):
    """What two servers could read differently is answered once, and then the connection closes."""

    async def main():
        async with api_server(published_schema(), clock=SystemClock()) as api:
            server = Server(api.server.handle_http)
            port = await server.start("127.0.0.1", 0)
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(raw)
            if writer.can_write_eof():
                writer.write_eof()
            answer = await asyncio.wait_for(reader.read(), 60)
            writer.close()
            await server.stop(0.1)
            statuses = [line for line in answer.split(b"\r\n") if line.startswith(b"HTTP/1.1 ")]
            assert len(statuses) <= 1, answer
            assert not statuses or statuses[0].split()[1] in (b"400", b"401", b"404", b"501")

    asyncio.run(main())


@pytest.mark.slow
def test_oversized_headers_and_bodies_are_refused_before_they_are_read():
    async def main():
        async with api_server(published_schema(), clock=SystemClock()) as api:
            server = Server(api.server.handle_http, limits=Limits(body_bytes=1000))
            port = await server.start("127.0.0.1", 0)
            head = b"POST /api/v1/namespaces HTTP/1.1\r\nHost: a\r\n"
            for rest, codes in (
                (b"A: " + b"x" * 100_000 + b"\r\n\r\n", (b"400", b"431")),
                (b"Content-Length: 100000000\r\n\r\n", (b"401", b"413")),
            ):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(head + rest)
                answer = await asyncio.wait_for(reader.read(4096), 60)
                writer.close()
                assert answer.split()[1] in codes, answer[:100]
            await server.stop(0.1)

    asyncio.run(main())


def test_a_body_within_the_limit_but_nested_without_end_is_refused():
    async def test(api):
        deep = b'{"metadata":' * 100_000
        assert (await api.send("POST", PODS, deep)).status == 400

    run(test)


@pytest.mark.parametrize("media", ["application/yaml", "application/json", "text/css", "x/y"])
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_a_body_is_not_read_for_somebody_without_rights(method, media):
    """Whatever is wrong with it: the refusal comes first, and costs nothing."""

    async def test(api):
        path = PODS if method == "POST" else f"{PODS}/web"
        body = b"a0: &a0 [x]\n" + b"b: {<<: [*a0, *a0" * 100_000
        got = await api.send(
            method, path, body, user="eve", group="nobodies", headers={"content-type": media}
        )
        assert got.status == 403

    run(test)


def test_a_large_body_is_read_for_those_who_may_send_it():
    """It is asked on the head: strangers and people without rights fill no memory."""

    async def test(api):
        async def wanted(user, group, method="POST", path=PODS, **headers):
            return await api.server.wants_body(request(method, path, b"", user, group, headers))

        assert await wanted("admin", MASTERS)
        assert await wanted("admin", MASTERS, "PUT", f"{PODS}/a:80/proxy/x?limit=abc")
        assert not await wanted("", "")
        assert not await wanted("eve", "nobodies")
        assert not await wanted("eve", "nobodies", **{"impersonate-user": "admin"})
        assert not await wanted("admin", MASTERS, **{"impersonate-user": "eve"})
        assert not await wanted("admin", MASTERS, "POST", "/nothing/here")

    run(test)


def test_a_long_body_is_read_beside_the_loop():
    """The loop's other work goes on, and comes to its end first."""

    async def main():
        async with api_server(published_schema()) as api:
            body = b"kind: Pod\nmetadata: {name: a}\nspec: [" + b"a," * 20_000 + b"a]"
            sent = asyncio.ensure_future(  # noqa: TID251
                api.send("POST", PODS, body, headers={"content-type": "application/yaml"})
            )
            await asyncio.sleep(0)
            assert (await api.get(PODS)).status == 200
            assert not sent.done()
            assert (await sent).status == 400

    asyncio.run(main())


def test_credentials_do_not_leave_the_server():
    """What was meant for us alone is gone before a request is passed on to a node or a pod."""
    from sampan.apiserver.proxy.node_proxy import public
    from sampan.core.http.messages import Request

    headers = {
        "authorization": "Bearer secret",
        "impersonate-user": "x",
        "x-remote-user": "y",
        "x-remote-extra-a": "z",
        "accept": "text/plain",
    }
    kept = public(Request("GET", "/", "", headers)).headers
    assert kept == {"accept": "text/plain"}


def test_a_pod_cannot_be_made_to_look_like_anothers():
    """A name or namespace in the body that is not the path's is refused."""

    async def test(api):
        made = pod("a")
        made["metadata"]["namespace"] = "kube-system"
        assert (await api.post(PODS, made)).status == 400
        await api.made(PODS, pod("b"))
        stolen = pod("c")
        assert (await api.put(f"{PODS}/b", stolen)).status == 400

    run(test)
