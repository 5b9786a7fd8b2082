"""What is noted of requests, and that secrets at rest are sealed. [A10]"""

import asyncio
import base64

import orjson
import pytest

from sampan.api import features
from sampan.api.calls import Call
from sampan.api.errors import Forbidden
from sampan.api.features import Release
from sampan.api.resources import NODES, PODS
from sampan.api.resources import SECRETS as SECRETS_ROW
from sampan.apiserver.audit.sinks import AuditFile, FileSink
from sampan.apiserver.authn.user import MASTERS, component
from sampan.apiserver.outside.webhook_client import Target
from sampan.apiserver.settings import ApiServerSettings
from sampan.client.inprocess import InProcessClient
from sampan.core.clock import SystemClock
from sampan.core.http.messages import Response
from sampan.core.http.server import Server
from sampan.core.metrics import Metrics
from sampan.core.tls import client_context, server_context
from tests.support.generators.api_requests import api_server, pod, request
from tests.support.parts.certificates import Authority
from tests.support.worlds.control_plane import published_schema

SECRETS = "/api/v1/namespaces/default/secrets"
POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "Metadata", "resources": [{"group": "", "resources": ["secrets"]}]},
        {"level": "RequestResponse", "verbs": ["create"], "omitManagedFields": True},
        {"level": "Metadata"},
    ],
}


def run(test, **settings):
    async def main():
        chosen = ApiServerSettings(**settings)
        async with api_server(published_schema(), settings=chosen, clock=SystemClock()) as api:
            await test(api)

    asyncio.run(main())


def events(path):
    return [orjson.loads(line) for line in path.read_bytes().splitlines()]


def test_requests_are_noted_by_policy_and_secrets_keep_theirs(tmp_path):
    path = tmp_path / "audit.log"

    async def test(api):
        data = {"password": base64.b64encode(b"hunter2").decode()}
        await api.made(SECRETS, {"metadata": {"name": "s"}, "data": data})
        await api.made("/api/v1/namespaces/default/pods", pod("a"))
        await api.send("GET", "/api/v1/pods", user="bob", group="dev")
        await api.send("GET", "/api/v1/pods", user="")
        watch = await api.watch("/api/v1/pods")
        await watch.seen(1)
        await watch.close()

    run(test, audit_policy=POLICY, audit_file=AuditFile(str(path)))
    assert oct(path.stat().st_mode)[-3:] == "600"
    assert b"aHVudGVyMg" not in path.read_bytes()
    secret, made, refused, unknown, started, watched = events(path)
    assert (secret["level"], secret["verb"]) == ("Metadata", "create")
    assert secret["objectRef"] == {
        "resource": "secrets",
        "namespace": "default",
        "apiVersion": "v1",
    }
    assert secret["user"]["username"] == "admin"
    assert made["requestObject"]["metadata"]["name"] == "a"
    assert "managedFields" not in made["responseObject"]["metadata"]
    assert made["responseStatus"]["code"] == 201
    assert made["annotations"]["pod-security.kubernetes.io/enforce-policy"] == "privileged:latest"
    assert refused["responseStatus"]["code"] == 403
    assert refused["annotations"]["authorization.k8s.io/decision"] == "forbid"
    assert unknown["responseStatus"]["code"] == 401
    assert (started["stage"], watched["stage"]) == ("ResponseStarted", "ResponseComplete")
    assert started["auditID"] == watched["auditID"]


def test_who_impersonates_whom_is_noted_refused_or_not(tmp_path):
    """An attack: whoever speaks as another leaves that one's name in the log, not their own."""
    path = tmp_path / "audit.log"

    async def test(api):
        spoken = {"impersonate-user": "jane", "impersonate-group": ["dev", "a,b"]}
        await api.send("GET", "/api/v1/pods", headers=spoken)
        await api.send("GET", "/api/v1/pods", user="eve", group="dev", headers=spoken)

    run(test, audit_policy=POLICY, audit_file=AuditFile(str(path)))
    allowed, refused = events(path)
    assert allowed["user"]["username"] == "admin"
    assert allowed["impersonatedUser"]["username"] == "jane"
    assert allowed["impersonatedUser"]["groups"] == ["dev", "a,b", "system:authenticated"]
    assert (refused["user"]["username"], refused["responseStatus"]["code"]) == ("eve", 403)
    assert "impersonatedUser" not in refused


def test_the_constraint_of_an_impersonation_is_noted(tmp_path):
    path = tmp_path / "audit.log"

    async def test(api):
        spoken = {"impersonate-user": "system:node:n1"}
        await api.send("GET", "/api/v1/pods", headers=spoken)

    with features.used(Release(gates={"ConstrainedImpersonation": True})):
        run(test, audit_policy=POLICY, audit_file=AuditFile(str(path)))
    (noted,) = events(path)
    assert noted["impersonatedUser"] == {
        "username": "system:node:n1",
        "groups": ["system:nodes", "system:authenticated"]
    }  # fmt: skip
    assert noted["authenticationMetadata"] == {
        "impersonationConstraint": "impersonate:arbitrary-node"
    }


def test_bodies_are_noted_in_whatever_form_they_came(tmp_path):
    path = tmp_path / "audit.log"

    async def test(api):
        maps = "/api/v1/namespaces/default/configmaps"
        yaml = b"metadata: {name: a}\ndata: {k: v}\n"
        await api.send("POST", maps, yaml, headers={"content-type": "application/yaml"})
        await api.send("POST", maps, b"{{{", headers={"content-type": "application/json"})

    run(test, audit_policy=POLICY, audit_file=AuditFile(str(path)))
    made, broken = events(path)
    assert made["requestObject"] == {"metadata": {"name": "a"}, "data": {"k": "v"}}
    assert broken["responseStatus"]["code"] == 400
    assert "requestObject" not in broken


def test_the_log_is_rotated(tmp_path):
    path = tmp_path / "audit.log"

    async def test(api):
        for _ in range(4):
            await api.get("/api/v1/pods")
            await asyncio.sleep(0.05)

    chosen = AuditFile(str(path), max_bytes=700, max_backups=2, compress=True)
    run(test, audit_policy=POLICY, audit_file=chosen)
    backups = sorted(one.name for one in tmp_path.glob("audit-*.log.gz"))
    assert len(backups) == 2
    assert len(events(path)) == 1


@pytest.mark.slow
def test_a_webhook_gets_events_in_batches(tmp_path):
    authority = Authority(tmp_path)
    batches = []

    async def handle(request):
        batches.append(orjson.loads(request.body)["items"])
        return Response(200, [], b"{}")

    async def main():
        pair = authority.issue("hook")
        server = Server(handle, ssl_context=server_context(pair.cert_path, pair.key_path))
        port = await server.start("127.0.0.1", 0)
        hook = Target(
            f"https://127.0.0.1:{port}/", lambda: client_context(ca_path=authority.ca_path)
        )
        settings = ApiServerSettings(audit_policy=POLICY, audit_webhook=hook)
        async with api_server(published_schema(), settings=settings, clock=SystemClock()) as api:
            for _ in range(20):
                await api.get("/api/v1/pods")
        await server.stop(0.1)

    asyncio.run(main())
    assert sum(len(one) for one in batches) == 20
    assert len(batches) < 20


def test_secrets_are_sealed_in_the_store_of_a_running_server(tmp_path):
    key = {"name": "one", "secret": base64.b64encode(b"k" * 32).decode()}
    row = {"resources": ["secrets"], "providers": [{"aesgcm": {"keys": [key]}}, {"identity": {}}]}
    chosen = {"kind": "EncryptionConfiguration", "resources": [row]}
    url = f"sqlite:///{tmp_path / 'store.db'}"

    async def main():
        data = {"password": base64.b64encode(b"hunter2").decode()}
        async with api_server(published_schema(), url, clock=SystemClock()) as api:
            await api.made(SECRETS, {"metadata": {"name": "old"}, "data": data})
        settings = ApiServerSettings(encryption=chosen)
        async with api_server(published_schema(), url, settings, SystemClock()) as api:
            await api.made(SECRETS, {"metadata": {"name": "new"}, "data": data})
            for name in ("old", "new"):
                raw = await api.store.get(f"/registry/secrets/default/{name}")
                assert raw.value.startswith(b"k8s:enc:aesgcm:v1:one:")
                shown = (await api.get(f"{SECRETS}/{name}")).obj
                assert shown["data"] == data
            assert (await api.delete(f"{SECRETS}/old")).status == 200

    asyncio.run(main())


def test_nothing_is_lost_when_the_server_stops_while_it_writes(tmp_path):
    async def main():
        path = tmp_path / "audit.log"
        sink = FileSink(AuditFile(str(path)), SystemClock(), Metrics())
        for number in range(3):
            sink.write(str(number).encode())
            await asyncio.sleep(0)  # the writer has taken it, and is at it
        await sink.close()
        assert path.read_bytes().split() == [b"0", b"1", b"2"]

    for _ in range(20):
        asyncio.run(main())
        (tmp_path / "audit.log").unlink()


def test_components_in_the_same_process_are_noted_under_their_names(tmp_path):
    """[A10] What a component does is noted as if it ran elsewhere."""
    path = tmp_path / "audit.log"

    async def test(api):
        def client(name):
            return InProcessClient(api.server.as_user(component(name)))

        scheduler = client("system:kube-scheduler")
        with pytest.raises(Forbidden):
            await scheduler.get(SECRETS_ROW, "default", "s")
        await client("system:node:n1").create(NODES, {"metadata": {"name": "n1"}})
        await api.made("/api/v1/namespaces/default/pods", pod("a"))
        watch = await api.server.as_user(component("system:kube-scheduler")).watch(
            Call("watch", PODS)
        )
        watch.close()

    run(test, audit_policy=POLICY, audit_file=AuditFile(str(path)))
    refused, node, _, started, watched = events(path)
    assert refused["user"]["username"] == "system:kube-scheduler"
    assert refused["requestURI"] == "/api/v1/namespaces/default/secrets/s"
    assert refused["objectRef"]["resource"] == "secrets"
    assert refused["responseStatus"]["code"] == 403
    assert refused["annotations"]["authorization.k8s.io/decision"] == "forbid"
    assert (node["verb"], node["user"]["groups"]) == (
        "create", ["system:nodes", "system:authenticated"],
    )  # fmt: skip
    assert node["level"] == "RequestResponse"
    assert node["requestObject"]["metadata"]["name"] == "n1"
    assert node["responseObject"]["metadata"]["uid"]
    assert [started["stage"], watched["stage"]] == ["ResponseStarted", "ResponseComplete"]
    assert watched["requestURI"] == "/api/v1/pods?watch=true"


def test_a_watch_that_nobody_reads_is_closed_and_noted_as_over(tmp_path):
    """Whose client is gone at once: the server closes what it never began to read."""
    path = tmp_path / "audit.log"

    async def test(api):
        asked = request("GET", "/api/v1/pods?watch=1", None, "ann", MASTERS, None)
        watchers = api.server._registry.kind(PODS).watcher_count
        before = watchers()
        reply = await api.server.handle_http(asked)
        assert watchers() == before + 1
        await reply.chunks.aclose()
        await reply.chunks.aclose()
        assert watchers() == before

    run(test, audit_policy=POLICY, audit_file=AuditFile(str(path)))
    stages = [one["stage"] for one in events(path) if one["verb"] == "watch"]
    assert stages == ["ResponseStarted", "ResponseComplete"]
