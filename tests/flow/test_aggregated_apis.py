"""API servers behind APIServices: what is passed on to them, and what is shown of them [A6]."""

import asyncio
import base64
import os
from contextlib import asynccontextmanager

import orjson
import pytest

from sampan.api.errors import MethodNotAllowed
from sampan.api.resources import POD_METRICS
from sampan.api.schema.published import Schema
from sampan.apiserver.aggregation import asking, checks
from sampan.apiserver.authn.settings import ProxyClientSettings
from sampan.apiserver.authn.user import User
from sampan.apiserver.settings import ApiServerSettings
from sampan.client.inprocess import InProcessClient
from sampan.core.clock import SystemClock
from sampan.core.http.messages import Response, Stream, Upgrade
from tests.support.generators.api_requests import MERGE, api_server, request
from tests.support.parts.aggregated_server import GROUP, PATH, TeaServer, tea_listener
from tests.support.parts.certificates import Authority

pytestmark = pytest.mark.slow

API_SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
NAME = f"v1.{GROUP}"
V2 = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
TEAS = f"{PATH}/namespaces/default/teas"


class World:
    """An API server, and one behind it."""

    def __init__(self, api, teas, port, authorities):
        self.api, self.teas, self.port = api, teas, port
        self.authority, self.proxies = authorities

    async def register(self, **spec):
        await self.api.made(
            "/api/v1/namespaces/default/services",
            {
                "metadata": {"name": "tea"},
                "spec": {"type": "ExternalName", "externalName": "localhost"},
            },
        )
        await self.api.made(API_SERVICES, self.api_service(**spec))

    def api_service(self, **spec):
        bundle = base64.b64encode(self.authority.ca_path.read_bytes()).decode()
        return {
            "metadata": {"name": NAME},
            "spec": {
                "group": GROUP,
                "version": "v1",
                "groupPriorityMinimum": 2000,
                "versionPriority": 10,
                "caBundle": bundle,
                "service": {"namespace": "default", "name": "tea", "port": self.port},
                **spec,
            },
        }

    async def condition(self, name=NAME):
        found = (await self.api.get(f"{API_SERVICES}/{name}")).obj
        [condition] = found.get("status", {}).get("conditions") or [{}]
        return condition.get("status", ""), condition.get("reason", ""), condition.get("message")

    async def until(self, reason, name=NAME):
        """The condition has the reason; its message."""
        async with asyncio.timeout(60):
            while (found := await self.condition(name))[1] != reason:
                await asyncio.sleep(0.02)
        return found[2]

    async def reply(self, method, path, body=None, user="admin", **headers):
        asked = request(method, path, body, user, "system:masters", headers)
        return await self.api.server.handle_http(asked)


@asynccontextmanager
async def world(tmp_path, teas=None, **settings):
    authority = Authority(tmp_path)
    (tmp_path / "proxy").mkdir()
    proxies = Authority(tmp_path / "proxy", "front-proxy-ca")
    own = proxies.issue("front-proxy-client")
    client = ProxyClientSettings(
        str(own.cert_path), str(own.key_path), proxies.ca_path.read_text(), "front-proxy-client"
    )
    teas = teas or TeaServer()
    listener = tea_listener(
        teas, authority.issue("tea", names=["tea.default.svc"]), proxies.ca_path
    )
    port = await listener.start("127.0.0.1", 0)
    chosen = ApiServerSettings(
        proxy_client=client, **{"proxied_address": lambda address: True, **settings}
    )
    try:
        async with api_server(Schema.load(), settings=chosen, clock=SystemClock()) as api:
            yield World(api, teas, port, (authority, proxies))
    finally:
        await listener.stop(0.1)


def story(tmp_path, test, **settings):
    async def main():
        async with world(tmp_path, **settings) as there:
            await test(there)

    asyncio.run(main())


def test_a_registered_server_answers_for_its_group_and_knows_who_asks(tmp_path):
    async def test(there):
        await there.register()
        assert await there.until("Passed") == "all checks passed"
        made = await there.api.made(TEAS, {"metadata": {"name": "assam"}, "leaves": "black"})
        assert made["metadata"]["uid"] == "tea-1"
        assert (await there.api.get(TEAS)).items == ["assam"]
        table = (await there.api.get(TEAS, "application/json;as=Table;v=v1;g=meta.k8s.io")).obj
        assert table["rows"][0]["cells"] == ["assam", "black"]
        missing = await there.api.get(f"{TEAS}/none")
        assert (missing.status, missing.message) == (404, f'teas.{GROUP} "none" not found')
        asked = there.teas.asked[-1]
        assert asked.headers["x-remote-user"] == "admin"
        assert list(asked.values("x-remote-group")) == ["system:masters", "system:authenticated"]
        assert b"front-proxy-client" in asked.peer_certificate

    story(tmp_path, test)


def test_nobody_says_by_headers_who_they_are(tmp_path):
    async def test(there):
        await there.register()
        await there.until("Passed")
        forged = {
            "x-remote-user": "root",
            "x-remote-group": "system:masters",
            "x-remote-uid": "1",
            "x-remote-extra-scopes": "all",
            "x-custom": "kept",
        }
        asked = request("GET", TEAS, None, "bob", "system:masters", forged)
        assert (await there.api.server.handle_http(asked)).status == 200
        seen = there.teas.asked[-1].headers
        assert seen["x-remote-user"] == "bob"
        assert "x-remote-uid" not in seen
        assert "x-remote-extra-scopes" not in seen
        assert seen["x-custom"] == "kept"
        spoken_for = {"impersonate-user": "eve", "impersonate-group": "dev",
                      "impersonate-uid": "7", "impersonate-extra-a.b%2fc": "x"}  # fmt: skip
        assert (await there.reply("GET", PATH, **spoken_for)).status == 200
        seen = there.teas.asked[-1]
        assert (seen.headers["x-remote-user"], seen.headers["x-remote-uid"]) == ("eve", "7")
        assert "dev" in seen.values("x-remote-group")
        assert seen.headers["x-remote-extra-a.b%2fc"] == "x"
        assert not [name for name in seen.headers if name.startswith("impersonate")]

    story(tmp_path, test)


def test_who_may_ask_is_said_in_front(tmp_path):
    async def test(there):
        await there.register()
        await there.until("Passed")
        before = len(there.teas.asked)
        for method, path, verb in (
            ("GET", TEAS, "list"),
            ("GET", f"{TEAS}?watch=true", "watch"),
            ("GET", f"{TEAS}/assam", "get"),
            ("DELETE", TEAS, "deletecollection"),
            ("PUT", f"{TEAS}/assam", "update"),
        ):
            asked = request(method, path, None, "bob", "dev", {})
            reply = await there.api.server.handle_http(asked)
            assert reply.status == 403
            words = f'User "bob" cannot {verb} resource "teas" in API group "{GROUP}"'.encode()
            assert words in reply.body.replace(b'\\"', b'"')
        tricky = request("GET", f"{PATH}/namespaces/default/../teas", None, "admin", "x", {})
        assert (await there.api.server.handle_http(tricky)).status in (403, 404)
        assert len(there.teas.asked) == before

    story(tmp_path, test)


def test_of_several_field_selectors_the_one_is_authorized_that_the_server_takes(tmp_path):
    """Go's servers take the first."""

    async def test(there):
        await there.register()
        await there.until("Passed")
        rule = {
            "apiGroups": [GROUP], "resources": ["teas"], "verbs": ["list"],
            "resourceNames": ["assam"],
        }  # fmt: skip
        access, role = "/apis/rbac.authorization.k8s.io/v1", {"metadata": {"name": "one-tea"}}
        await there.api.post(f"{access}/clusterroles", {**role, "rules": [rule]})
        reference = {"kind": "ClusterRole", "name": "one-tea", "apiGroup": access.split("/")[2]}
        subject = {"kind": "User", "name": "bob", "apiGroup": access.split("/")[2]}
        bound = {**role, "roleRef": reference, "subjects": [subject]}
        assert (await there.api.post(f"{access}/clusterrolebindings", bound)).status == 201
        own, other = "fieldSelector=metadata.name%3Dassam", "fieldSelector=metadata.name%3Dgreen"
        for query, refused in (
            (own, False),
            (f"{own}&{other}", False),
            (f"{other}&{own}", True),
            (f"fieldSelector=&{own}", True),
        ):
            asked = request("GET", f"{TEAS}?{query}", None, "bob", "dev", {})
            reply = await there.api.server.handle_http(asked)
            assert (reply.status == 403) is refused, query

    story(tmp_path, test)


def test_a_watch_and_an_upgrade_go_through(tmp_path):
    async def test(there):
        await there.register()
        await there.until("Passed")
        watch = await there.api.watch(TEAS)
        await there.api.made(TEAS, {"metadata": {"name": "assam"}})
        await there.api.delete(f"{TEAS}/assam")
        async with asyncio.timeout(60):
            assert await watch.seen(2) == [("ADDED", "assam"), ("DELETED", "assam")]
        await watch.close()
        reply = await there.reply("GET", f"{TEAS}/x/steep", connection="Upgrade", upgrade="tea")
        assert isinstance(reply, Upgrade)
        near = Pipe(b"hot water")
        async with asyncio.timeout(60):
            await reply.take_over(near)
        assert near.written == b"hot water"

    story(tmp_path, test)


class Pipe:
    """A client's end: sends a text, waits for as much, and goes."""

    def __init__(self, text):
        self._text, self.written, self._back = text, b"", asyncio.Event()

    async def read(self):
        text, self._text = self._text, b""
        if not text:
            await self._back.wait()
        return text

    async def write(self, data):
        self.written += data
        if len(self.written) >= 9:
            self._back.set()

    def write_eof(self):
        return False

    def close(self):
        self._back.set()


def test_a_server_that_goes_is_503_and_stale_until_it_comes_back(tmp_path):
    async def test(there):
        await there.register()
        await there.until("Passed")
        await shown(there, ["teas"])
        there.teas.is_healthy = False
        # Nobody tells of that: the next check is made when the APIService is touched.
        await there.api.patch(
            f"{API_SERVICES}/{NAME}",
            {"spec": {"versionPriority": 11}},
            MERGE,
        )
        message = await there.until("FailedDiscoveryCheck")
        url = f"https://localhost:{there.port}{PATH}"
        assert message == f"failing or missing response from {url}: bad status from {url}: 500"
        gone = await there.api.get(TEAS)
        assert (gone.status, gone.body) == (503, b"service unavailable\n")
        await shown(there, None)
        there.teas.is_healthy = True
        await there.until("Passed")
        assert (await there.api.get(TEAS)).status == 200
        await shown(there, ["teas"])
        await there.api.delete(f"{API_SERVICES}/{NAME}")
        assert (await there.api.get(TEAS)).status == 404
        assert (await there.api.get(f"/apis/{GROUP}")).status == 404

    story(tmp_path, test)


async def shown(there, resources):
    """What the merged discovery says of the group, once it says that."""
    async with asyncio.timeout(60):
        while True:
            groups = (await there.api.get("/apis", V2)).obj["items"]
            [group] = [item for item in groups if item["metadata"].get("name") == GROUP]
            [version] = group["versions"]
            if resources is None and version == {"version": "v1", "freshness": "Stale"}:
                return
            found = [item["resource"] for item in version.get("resources", ())]
            if version["freshness"] == "Current" and found == resources:
                return
            await asyncio.sleep(0.02)


def test_discovery_is_one_for_all(tmp_path):
    async def test(there):
        await there.register()
        await there.until("Passed")
        await shown(there, ["teas"])
        groups = (await there.api.get("/apis", V2)).obj["items"]
        names = [item["metadata"].get("name") for item in groups]
        assert names[:3] == ["apiregistration.k8s.io", "apps", "events.k8s.io"]
        assert names[-1] == "metrics.k8s.io" or names[-1] == GROUP
        [group] = [item for item in groups if item["metadata"].get("name") == GROUP]
        [resource] = group["versions"][0]["resources"]
        assert resource == {
            "resource": "teas",
            "responseKind": {"group": GROUP, "version": "v1", "kind": "Tea"},
            "scope": "Namespaced",
            "singularResource": "tea",
            "verbs": ["create", "delete", "get", "list", "watch"],
            "shortNames": ["cuppa"],
            "categories": ["drinks"],
            "subresources": [
                {
                    "subresource": "steep",
                    "responseKind": {"group": GROUP, "version": "v1", "kind": "Tea"},
                    "verbs": ["get"],
                }
            ],
        }
        legacy = (await there.api.get("/apis")).obj["groups"]
        assert GROUP in [item["name"] for item in legacy]
        one = (await there.api.get(f"/apis/{GROUP}")).obj
        assert one["preferredVersion"] == {"groupVersion": f"{GROUP}/v1", "version": "v1"}
        resources = (await there.api.get(PATH)).obj["resources"]
        assert [item["name"] for item in resources] == ["teas", "teas/steep"]

    story(tmp_path, test)


@pytest.mark.parametrize("bundle", ["right", "wrong", "skipped"])
def test_the_server_must_prove_the_services_name(tmp_path, bundle):
    (tmp_path / "other").mkdir()
    other = Authority(tmp_path / "other", "other")

    async def test(there):
        wrong = base64.b64encode(other.ca_path.read_bytes()).decode()
        spec = {
            "right": {},
            "wrong": {"caBundle": wrong},
            "skipped": {"caBundle": None, "insecureSkipTLSVerify": True},
        }[bundle]
        await there.register(**spec)
        await there.until("Passed")  # the check itself believes anybody, as upstream
        reply = await there.api.get(TEAS)
        if bundle == "wrong":
            assert reply.status == 503
            why = "tls: failed to verify certificate: x509: certificate signed by unknown authority"
            assert reply.body.decode() == f"error trying to reach service: {why}\n"
        else:
            assert reply.status == 200

    story(tmp_path, test)


def test_addresses_that_may_not_be_proxied_to_are_refused_after_resolution(tmp_path):
    """[A6] Whoever may write a Service sends this server to nothing on its own machine."""

    async def test(there):
        await there.register()
        message = await there.until("FailedDiscoveryCheck")
        assert message.endswith("address not allowed")
        assert there.teas.asked == []

    from sampan.core.ip_addresses import is_proxyable

    story(tmp_path, test, proxied_address=is_proxyable)


@pytest.mark.parametrize(
    ("spec", "slices", "reason", "message"),
    [
        (None, [], "ServiceNotFound", 'service/tea in "default" is not present'),
        ({"ports": [{"port": 1}]}, [], "ServicePortError", "is not listening on port"),
        ({"ports": [{}]}, [], "EndpointsNotFound", "cannot find endpointslices for service/tea"),
        (
            {"ports": [{"name": "web"}]},
            [{"ports": [{"name": "other", "port": 1}]}],
            "MissingEndpoints",
            'endpointslices for service/tea in "default" have no addresses with port name "web"',
        ),
    ],
)
def test_what_is_missing_is_named(tmp_path, spec, slices, reason, message):
    async def test(there):
        if spec is not None:
            ports = [{"port": there.port, **port} for port in spec["ports"]]
            service = {"metadata": {"name": "tea"}, "spec": {"ports": ports}}
            await there.api.made("/api/v1/namespaces/default/services", service)
        for part in slices:
            metadata = {"name": "tea", "labels": {"kubernetes.io/service-name": "tea"}}
            endpoints = [{"addresses": ["10.0.0.1"]}]
            body = {"metadata": metadata, "addressType": "IPv4", "endpoints": endpoints, **part}
            await there.api.made(
                "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", body
            )
        await there.api.made(API_SERVICES, there.api_service())
        assert message in await there.until(reason)
        reply = await there.api.get(TEAS)
        assert (reply.status, reply.body) == (503, b"service unavailable\n")

    story(tmp_path, test)


def test_a_redirect_is_not_passed_on(tmp_path):
    async def test(there):
        await there.register()
        await there.until("Passed")
        there.teas.answer = Response(302, [("location", "https://evil.example/")])
        reply = await there.api.get(TEAS)
        assert reply.status == 502
        assert reply.body.startswith(b"the backend attempted to redirect this request")
        assert "location" not in reply.headers

    story(tmp_path, test)


def test_a_server_that_hangs_holds_up_nobody(tmp_path):
    """Nor takes the seats of others: the one that there is is free while the work is not ours."""

    async def test(there):
        waiting, never = asyncio.Event(), asyncio.Event()
        usual = there.teas.handle

        async def hang(request):
            if request.path == f"{TEAS}/hangs":
                waiting.set()
                await never.wait()
            return await usual(request)

        there.teas.handle = hang
        listener = tea_listener(
            there.teas, there.authority.issue("tea", names=["tea.default.svc"]),
            there.proxies.ca_path,
        )  # fmt: skip
        there.port = await listener.start("127.0.0.1", 0)
        await there.register()
        await there.until("Passed")
        async with asyncio.TaskGroup() as group:
            stuck = group.create_task(there.api.get(f"{TEAS}/hangs"))
            async with asyncio.timeout(60):
                await waiting.wait()
            assert (await there.api.get("/api/v1/namespaces")).status == 200
            assert (await there.api.get(TEAS)).status == 200
            never.set()
            assert (await stuck).status == 404
        await listener.stop(0.1)

    story(tmp_path, test, request_seats=0, max_requests_in_flight=1)


def test_an_answer_without_an_end_is_passed_on_as_it_comes(tmp_path):
    async def test(there):
        await there.register()
        await there.until("Passed")
        stuck = asyncio.Event()

        async def nothing():
            await stuck.wait()
            yield b""

        there.teas.answer = Stream(200, (), nothing())
        reply = await there.reply("GET", TEAS)
        assert isinstance(reply, Stream)
        assert (await there.api.get("/api/v1/namespaces")).status == 200
        await reply.chunks.aclose()
        stuck.set()

    story(tmp_path, test)


def test_the_core_group_is_not_given_away(tmp_path):
    async def test(there):
        core = there.api_service(group="")
        core["metadata"]["name"] = "v1."
        await there.api.delete(f"{API_SERVICES}/v1.")
        refused = await there.api.post(API_SERVICES, core)
        assert refused.status == 422
        assert "the core group is served by this server" in refused.message
        assert (await there.api.get("/api/v1/namespaces")).status == 200

    story(tmp_path, test)


class Hesitant(TeaServer):
    """Is silent when it is asked for one of its documents, until somebody has given up."""

    silent_at = ""

    async def handle(self, request):
        if request.path == self.silent_at:
            self.silent_at = ""
            self.asked.append(request)
            await asyncio.Event().wait()
        return await super().handle(request)


@pytest.mark.parametrize("document", ["/openapi/v3", "/openapi/v2"])
def test_openapi_that_did_not_come_in_time_is_asked_for_again_soon(tmp_path, monkeypatch, document):
    """As upstream, where no answer is another thing than no document."""
    monkeypatch.setattr(asking, "ASK_SECONDS", 1.0)
    monkeypatch.setattr(checks, "EVERY_SECONDS", 3600.0)

    async def test(there):
        there.teas.silent_at = document
        await there.register()
        async with asyncio.timeout(60):
            while PATH[1:] not in (await there.api.get("/openapi/v3")).obj["paths"]:
                await asyncio.sleep(0.02)
        assert "com.example.tea.v1.Tea" in (await there.api.get("/openapi/v2")).obj["definitions"]

    story(tmp_path, test, teas=Hesitant())


def test_openapi_has_what_the_other_server_says_of_its_group(tmp_path):
    async def test(there):
        before = (await there.api.get("/openapi/v2")).headers["etag"]
        await there.register()
        name = PATH[1:]
        async with asyncio.timeout(60):
            while name not in (await there.api.get("/openapi/v3")).obj["paths"]:
                await asyncio.sleep(0.02)
        url = (await there.api.get("/openapi/v3")).obj["paths"][name]["serverRelativeURL"]
        assert url == f"/openapi/v3/{name}?hash=1"
        document = (await there.api.get(url)).obj
        assert "com.example.tea.v1.Tea" in document["components"]["schemas"]
        second = await there.api.get("/openapi/v2")
        assert second.headers["etag"] != before
        assert "com.example.tea.v1.Tea" in second.obj["definitions"]
        assert "com.example.Unused" not in second.obj["definitions"]
        assert f"{PATH}/namespaces/{{namespace}}/teas/{{name}}" in second.obj["paths"]
        protobuf = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
        assert b"com.example.tea.v1.Tea" in (await there.api.get("/openapi/v2", protobuf)).body
        await there.api.delete(f"{API_SERVICES}/{NAME}")
        assert name not in (await there.api.get("/openapi/v3")).obj["paths"]
        assert (await there.api.get("/openapi/v2")).headers["etag"] == before

    story(tmp_path, test)


class MetricsServer(TeaServer):
    """Somebody's own metrics-server, as far as autoscalers ask it."""

    async def handle(self, request):
        self.asked.append(request)
        pod = {"metadata": {"name": "theirs", "namespace": "default"}, "containers": []}
        head = {"apiVersion": "metrics.k8s.io/v1beta1", "kind": "PodMetricsList", "metadata": {}}
        match request.path.split("/")[4:]:
            case []:
                row = {"name": "pods", "namespaced": True, "kind": "PodMetrics", "verbs": ["list"]}
                answer = {"kind": "APIResourceList", "resources": [row]}
            case ["namespaces", "default", "pods"]:
                answer = {**head, "items": [pod]}
            case _:
                return Response(404, (), b"{}")
        return Response(200, (("content-type", "application/json"),), orjson.dumps(answer))


def test_somebodys_own_metrics_server_takes_the_place_of_ours(tmp_path):
    name, path = "v1beta1.metrics.k8s.io", "/apis/metrics.k8s.io/v1beta1/namespaces/default/pods"

    async def test(there):
        ours = (await there.api.get(f"{API_SERVICES}/{name}")).obj
        assert ours["spec"]["groupPriorityMinimum"] == 100
        assert ours["status"]["conditions"][0]["reason"] == "Local"
        assert (await there.api.get(path)).items == []
        await there.register()
        spec = {"service": {"namespace": "default", "name": "tea", "port": there.port},
                "insecureSkipTLSVerify": True}  # fmt: skip
        await there.api.patch(f"{API_SERVICES}/{name}", {"spec": spec}, MERGE)
        await there.until("Passed", name)
        assert (await there.api.get(path)).items == ["theirs"]
        inside = InProcessClient(there.api.server.as_user(User("admin", ("system:masters",))))
        listed = await inside.list(POD_METRICS, "default", label_selector="app=x")
        assert [item["metadata"]["name"] for item in listed.items] == ["theirs"]
        assert listed.items[0]["kind"] == "PodMetrics"
        assert there.teas.asked[-1].query == "labelSelector=app%3Dx"
        with pytest.raises(MethodNotAllowed):
            await anext(inside.watch(POD_METRICS, "default", revision=0))
        back = {"spec": {"service": None, "insecureSkipTLSVerify": None}}
        await there.api.patch(f"{API_SERVICES}/{name}", back, MERGE)
        await there.until("Local", name)
        assert (await there.api.get(path)).items == []

    story(tmp_path, test, teas=MetricsServer())


def test_a_renewed_certificate_is_shown_from_then_on(tmp_path):
    async def test(there):
        await there.register()
        await there.until("Passed")
        renewed = there.proxies.issue("front-proxy-renewed")
        own = tmp_path / "proxy" / "front-proxy-client-"
        own.with_suffix(".key").write_bytes(renewed.key_path.read_bytes())
        own.with_suffix(".crt").write_bytes(renewed.cert_path.read_bytes())
        os.utime(own.with_suffix(".crt"), ns=(1, 1))
        async with asyncio.timeout(60):
            while b"front-proxy-renewed" not in there.teas.asked[-1].peer_certificate:
                await there.api.patch(
                    f"{API_SERVICES}/{NAME}",
                    {"spec": {"versionPriority": 10 + len(there.teas.asked) % 900}},
                    MERGE,
                )  # the certificate is looked at with the next check
                watch = await there.api.watch(TEAS)  # takes a connection: the next one is new
                other = await there.api.watch(TEAS)
                await watch.close()
                await other.close()

    story(tmp_path, test)


def test_a_server_that_hangs_is_not_available(tmp_path):
    async def test(there):
        over = asyncio.Event()

        async def hang(request):
            await over.wait()
            return Response(200)

        there.teas.handle = hang
        listener = tea_listener(there.teas, there.authority.issue("tea"), there.proxies.ca_path)
        there.port = await listener.start("127.0.0.1", 0)
        await there.register()
        message = await there.until("FailedDiscoveryCheck")
        assert message.endswith("context deadline exceeded")
        over.set()
        await listener.stop(0.1)

    story(tmp_path, test)


@pytest.mark.parametrize("body", [b"[" * 500_000, b"x" * 3_000_000, b'{"kind":"APIResourceList"}'])
def test_a_server_whose_discovery_is_of_no_use_is_there_and_stale(tmp_path, body):
    class Odd(TeaServer):
        async def handle(self, request):
            return Response(200, (("content-type", "application/json"),), body)

    async def test(there):
        await there.register()
        await there.until("Passed")
        await shown(there, None)
        assert (await there.api.get("/openapi/v2")).status == 200
        assert (await there.api.get("/openapi/v3")).status == 200

    story(tmp_path, test, teas=Odd())
