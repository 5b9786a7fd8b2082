"""From a pod to its node: which URL, which words, and a whole way through."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from sampan.api.errors import (
    ApiError,
    BadRequest,
    Failure,
    InternalError,
    Invalid,
    NotFound,
    not_found,
)
from sampan.api.objects import Obj
from sampan.apiserver.proxy.node_proxy import (
    NodeProxy,
    container_of,
    kubelet_origin,
    pod_origin,
    port_number,
    ports_of,
    public,
    server_error,
    split_name,
    stream_query,
)
from sampan.core import tls
from sampan.core.http.client import HttpClient
from sampan.core.http.messages import Connection, Reply, Request, Response, Stream, Upgrade
from sampan.core.http.origin import Origin
from sampan.core.http.server import Server
from sampan.core.ip_addresses import is_proxyable
from tests.support.parts.certificates import Authority

UPGRADE = {"connection": "Upgrade", "upgrade": "SPDY/3.1", "host": "a"}


def pod(*names: str, node: str = "n1", **more: object) -> Obj:
    return {
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"nodeName": node, "containers": [{"name": name} for name in names], **more},
        "status": {},
    }


def test_the_only_container_is_meant_when_none_is_named():
    assert container_of(pod("main"), "") == "main"
    assert container_of(pod("main", initContainers=[{"name": "init"}]), "init") == "init"


@pytest.mark.parametrize(
    ("made", "asked", "message"),
    [
        (
            pod("a", "b", initContainers=[{"name": "i"}], ephemeralContainers=[{"name": "e"}]),
            "",
            "a container name must be specified for pod web, choose one of: [i a b e]",
        ),
        (pod(), "", "a container name must be specified for pod web"),
        (pod("a"), "x", "container x is not valid for pod web"),
    ],
)
def test_a_container_that_is_not_clear_is_a_bad_request(made, asked, message):
    """[A5]"""
    with pytest.raises(BadRequest) as raised:
        container_of(made, asked)
    assert raised.value.message == message


def test_streams_are_named_as_the_node_names_them():
    query = {"stdin": ["true"], "stdout": ["1"], "stderr": ["false"], "tty": ["true"]}
    assert stream_query(query) == "input=1&output=1&tty=1"
    assert stream_query({"command": ["sh", "-c", "a b"]}) == "command=sh&command=-c&command=a+b"
    assert ports_of({"ports": ["80", "81,82"]}) == ["80", "81", "82"]


def test_a_node_is_reached_at_its_internal_address_and_port():
    node = {
        "status": {
            "addresses": [
                {"type": "Hostname", "address": "n1"},
                {"type": "InternalIP", "address": "fd00::1"},
            ],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 1234}},
        }
    }
    assert str(kubelet_origin(node)) == "https://[fd00::1]:1234"
    only_name = {"status": {"addresses": [{"type": "Hostname", "address": "n1"}]}}
    assert str(kubelet_origin(only_name)) == "https://n1:10250"
    with pytest.raises(Failure, match="no preferred addresses"):
        kubelet_origin({"status": {}})


def test_a_pod_is_reached_at_its_own_address_only():
    made = pod("main")
    made["status"] = {"podIPs": [{"ip": "10.244.0.5"}]}
    assert str(pod_origin(made, "", "")) == "http://10.244.0.5"
    assert str(pod_origin(made, "https", "8443")) == "https://10.244.0.5:8443"
    made["spec"]["containers"][0]["ports"] = [{"containerPort": 8080}]
    assert str(pod_origin(made, "", "")) == "http://10.244.0.5:8080"


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "::1", "::ffff:127.0.0.1", "169.254.169.254", "::ffff:169.254.169.254", "",
     "64:ff9b::7f00:1", "2002:7f00:1::", "0.0.0.0", "0.1.2.3", "fd00:ec2::254", "fe80::1",
     "fe80::1%eth0", "224.0.0.1", "localhost", "example.com", "2130706433", "0x7f.1"],
)  # fmt: skip
@pytest.mark.parametrize("resource", ["pods", "services"])
def test_a_disguised_address_is_not_reached(resource, address):
    async def story():
        async def get_pod(namespace: str, name: str) -> Obj:
            return {"spec": {}, "status": {"podIPs": [{"ip": address}]}}

        async def get_service_origin(*asked: str) -> Origin:
            return Origin("http", address, 80)

        http = HttpClient()
        proxy = NodeProxy(
            http, get_pod, nobody, backend_http=http, get_service_origin=get_service_origin
        )
        with pytest.raises(BadRequest, match="address not allowed"):
            await proxy.proxy(resource, "default", "web:80", "/", Request("GET", "/", "", {}))

    asyncio.run(story())


async def nobody(name: str) -> Obj:
    raise AssertionError(name)


@pytest.mark.parametrize(
    "port",
    ["@127.0.0.1", "80@127.0.0.1", "0", "65536", "-1", "+80", " 80", "８０", "80/x", "80#", "http",
     "1e3", "1_0", "9" * 5000],
)  # fmt: skip
@pytest.mark.parametrize("resource", ["pods", "nodes"])
def test_a_port_is_digits(resource, port):
    """`pods/web:@HOST/proxy` once led to HOST."""

    async def story():
        async def get_pod(namespace: str, name: str) -> Obj:
            return {"spec": {}, "status": {"podIPs": [{"ip": "10.0.0.1"}]}}

        async def get_node(name: str) -> Obj:
            return {"status": {"addresses": [{"type": "InternalIP", "address": "10.0.0.1"}]}}

        http = HttpClient()
        proxy = NodeProxy(http, get_pod, get_node, backend_http=http)
        with pytest.raises(BadRequest, match="invalid port"):
            await proxy.proxy(resource, "", f"web:{port}", "/", Request("GET", "/", "", {}))
        with pytest.raises(BadRequest, match="invalid port"):
            port_number(port)

    asyncio.run(story())


def test_only_the_kubelet_sees_our_certificate(tmp_path):
    """Another port of the node is anybody's: it is asked by somebody without a name."""

    async def story():
        authority = Authority(tmp_path)
        pair, own = authority.issue("node"), authority.issue("kube-apiserver")
        context = tls.server_context(pair.cert_path, pair.key_path, authority.ca_path)

        async def who(request: Request) -> Reply:
            return Response(200, (), b"nobody" if request.peer_certificate is None else b"us")

        kubelet, other = Server(who, ssl_context=context), Server(who, ssl_context=context)
        port, other_port = await kubelet.start("127.0.0.1", 0), await other.start("127.0.0.1", 0)

        async def get_node(name: str) -> Obj:
            address = {"type": "InternalIP", "address": "127.0.0.1"}
            endpoint = {"kubeletEndpoint": {"Port": port}}
            return {"status": {"addresses": [address], "daemonEndpoints": endpoint}}

        http = HttpClient(
            ssl_context=tls.client_context(
                ca_path=authority.ca_path, cert_path=own.cert_path, key_path=own.key_path
            )
        )
        plain = HttpClient(ssl_context=tls.client_context(verify=False))
        proxy = NodeProxy(http, no_pod, get_node, backend_http=plain)
        request = Request("GET", "/x", "", {})
        for name, seen in (
            ("n1", b"us"),
            (f"n1:{port}", b"us"),
            (f"https:n1:{other_port}", b"nobody"),
        ):
            reply = await proxy.proxy("nodes", "", name, "/x", request)
            assert isinstance(reply, Stream)
            assert b"".join([chunk async for chunk in reply.chunks]) == seen
        careful = HttpClient(ssl_context=tls.client_context(verify=False), allows=is_proxyable)
        proxy = NodeProxy(http, no_pod, get_node, backend_http=careful)
        with pytest.raises(BadRequest, match="address not allowed"):
            await proxy.proxy("nodes", "", f"https:n1:{other_port}", "/x", request)
        for client in (http, plain, careful):
            await client.close()
        await kubelet.stop(1.0)
        await other.stop(1.0)

    asyncio.run(story())


async def no_pod(namespace: str, name: str) -> Obj:
    raise AssertionError(name)


def test_a_proxied_name_may_carry_scheme_and_port():
    assert split_name("pods", "web") == ("", "web", "")
    assert split_name("pods", "web:80") == ("", "web", "80")
    assert split_name("pods", "https:web:443") == ("https", "web", "443")
    with pytest.raises(BadRequest, match='invalid pod request "ftp:web:1"'):
        split_name("pods", "ftp:web:1")


def test_what_identifies_the_caller_stays_here():
    request = Request(
        "GET", "/", "", {"authorization": "x", "impersonate-user": "y", "accept": "z"}
    )
    assert public(request).headers == {"accept": "z"}


def test_refusals_of_a_node_are_worded_for_the_client():
    waiting = 'container "a" in pod "web" is waiting to start: ContainerCreating'
    assert server_error(400, waiting, "pods/log", "web").message == waiting
    missing = server_error(404, "x", "pods/log", "web")
    assert isinstance(missing, NotFound)
    assert missing.message == "the server could not find the requested resource ( pods/log web)"
    broken = server_error(500, 'no "log"', "pods/log", "web")
    assert broken.message == (
        'an error on the server ("no \\"log\\"") has prevented the request from succeeding'
        " ( pods/log web)"
    )


async def node_handler(request: Request) -> Reply:
    """A node that says what it was asked."""
    seen = f"{request.path}?{request.query}"
    if request.path.endswith("/waiting"):
        return Response(400, (), b"is waiting to start")
    if request.path.startswith("/containerLogs/"):

        async def chunks() -> AsyncIterator[bytes]:
            yield seen.encode()
            yield b" more"

        return Stream(200, (("content-type", "text/plain"),), chunks())
    if "upgrade" not in request.headers:
        return Response(200, (("x-seen", seen),), request.body)

    async def say(connection: Connection) -> None:
        await connection.write(seen.encode())
        await connection.read()

    return Upgrade((("connection", "Upgrade"), ("upgrade", "SPDY/3.1")), say)


@asynccontextmanager
async def proxied(tmp_path, made: Obj) -> AsyncIterator[tuple[NodeProxy, HttpClient, str]]:
    """The proxy itself, and a client of a server that answers with it."""
    authority = Authority(tmp_path)
    pair, own = authority.issue("node"), authority.issue("kube-apiserver", "system:masters")
    context = tls.server_context(
        pair.cert_path, pair.key_path, authority.ca_path, require_client_cert=True
    )
    node = Server(node_handler, ssl_context=context)
    port = await node.start("127.0.0.1", 0)
    status = {
        "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
    }

    async def get_pod(namespace: str, name: str) -> Obj:
        if name != "web":
            raise not_found("pods", "", name)
        return made

    async def get_node(name: str) -> Obj:
        return {"metadata": {"name": name}, "status": status}

    http = HttpClient(
        ssl_context=tls.client_context(
            ca_path=authority.ca_path, cert_path=own.cert_path, key_path=own.key_path
        )
    )
    proxy = NodeProxy(http, get_pod, get_node, backend_http=http)

    async def front(request: Request) -> Reply:
        *_, name, subresource = request.path.split("/")
        try:
            if subresource == "log":
                return await proxy.logs("default", name, request)
            if subresource == "proxy":
                return await proxy.proxy("nodes", "", name, "/pods", request)
            return await proxy.connect(subresource, "default", name, request)
        except ApiError as error:
            return Response(error.code, (), error.message.encode())

    server, client = Server(front), HttpClient()
    url = f"http://127.0.0.1:{await server.start('127.0.0.1', 0)}"
    try:
        yield proxy, client, url
    finally:
        await client.close()
        await server.stop(1.0)
        await http.close()
        await node.stop(1.0)


def test_logs_come_from_the_pods_node(tmp_path):
    async def story():
        async with proxied(tmp_path, pod("main", "waiting")) as (proxy, client, url):
            asked = f"{url}/web/log?container=main&follow=true&tailLines=3&junk=1"
            answer = await client.request("GET", asked)
            assert answer.body == b"/containerLogs/default/web/main?follow=true&tailLines=3 more"
            assert answer.headers["content-type"] == "text/plain"
            waiting = await client.request("GET", f"{url}/web/log?container=waiting")
            assert (waiting.status, waiting.body) == (400, b"is waiting to start")
            with pytest.raises(Invalid, match='PodLogOptions "web" is invalid: tailLines'):
                await proxy.logs("default", "web", Request("GET", "/", "tailLines=-1", {}))
            with pytest.raises(NotFound):
                await proxy.logs("default", "gone", Request("GET", "/", "", {}))

    asyncio.run(story())


def test_a_pod_without_a_node_has_no_logs_and_no_streams(tmp_path):
    async def story():
        async with proxied(tmp_path, pod("main", node="")) as (proxy, _, _):
            request = Request("GET", "/", "", UPGRADE)
            assert await proxy.logs("default", "web", request) == Response(204)
            with pytest.raises(BadRequest, match="pod web does not have a host assigned"):
                await proxy.connect("exec", "default", "web", request)

    asyncio.run(story())


@pytest.mark.parametrize(
    ("subresource", "query", "asked"),
    [
        (
            "exec",
            "command=ls&stdout=true&stderr=true",
            b"/exec/default/web/main?output=1&error=1&command=ls",
        ),
        ("attach", "stdin=true&tty=true", b"/attach/default/web/main?input=1&tty=1"),
        ("portforward", "", b"/portForward/default/web?"),
    ],
)
def test_streams_go_to_the_pods_node(tmp_path, subresource, query, asked):
    async def story():
        async with proxied(tmp_path, pod("main")) as (_, client, url):
            answer = await client.upgrade(
                "POST",
                f"{url}/web/{subresource}?{query}",
                headers=[("connection", "Upgrade"), ("upgrade", "SPDY/3.1")],
            )
            assert answer.status == 101
            assert answer.connection is not None
            assert await answer.connection.read() == asked
            answer.connection.close()
            plain = await client.request("POST", f"{url}/web/{subresource}?{query}")
            assert (plain.status, plain.body) == (400, b"Upgrade request required")

    asyncio.run(story())


def test_a_node_can_be_asked_anything(tmp_path):
    async def story():
        async with proxied(tmp_path, pod("main")) as (_, client, url):
            answer = await client.request("POST", f"{url}/n1/proxy?a=b", body=b"hi")
            assert (answer.status, answer.body) == (200, b"hi")
            assert answer.headers["x-seen"] == "/pods?a=b"

    asyncio.run(story())


def test_what_is_proxied_is_no_part_of_this_servers_origin():
    said = {
        "content-type": "text/plain", "set-cookie": "a=b; Path=/", "service-worker-allowed": "/",
        "clear-site-data": "*", "x-own": "kept",
    }  # fmt: skip

    async def story():
        async def backend(_: Request) -> Reply:
            return Response(200, tuple(said.items()), b"hi")

        async def get_node(name: str) -> Obj:
            addresses = [{"type": "InternalIP", "address": "127.0.0.1"}]
            return {"metadata": {"name": name}, "status": {"addresses": addresses}}

        server, http = Server(backend), HttpClient()
        port = await server.start("127.0.0.1", 0)
        proxy = NodeProxy(http, nobody, get_node, backend_http=http)
        for sent, kept in (({}, set()), ({"x-forwarded-for": "127.0.0.1"}, {"set-cookie"})):
            request = Request("GET", f"/api/v1/nodes/n:{port}/proxy/", "", sent)
            reply = await proxy.proxy("nodes", "", f"n:{port}", "/", request)
            headers = dict(reply.headers)
            assert b"".join([chunk async for chunk in reply.chunks]) == b"hi"
            assert (headers["content-type"], headers["x-own"]) == ("text/plain", "kept")
            assert kept == headers.keys() & (said.keys() - {"content-type", "x-own"})
            policy = headers.get("content-security-policy", "")
            assert policy.startswith("sandbox ") is not bool(sent)
            assert "allow-same-origin" not in policy
        await http.close()
        await server.stop(0.1)

    asyncio.run(story())


def test_a_proxied_path_without_its_slash_is_redirected():
    """As the original: relative links of the page would lead elsewhere otherwise."""

    async def story():
        async def get_pod(namespace: str, name: str) -> Obj:
            return {"status": {"podIPs": [{"ip": "10.0.0.1"}]}}

        proxy = NodeProxy(HttpClient(), get_pod, nobody, backend_http=HttpClient())
        path = "/api/v1/namespaces/default/pods/web/proxy"
        reply = await proxy.proxy("pods", "default", "web", "", Request("GET", path, "a=b", {}))
        assert reply == Response(301, (("location", f"{path}/?a=b"),))

    asyncio.run(story())


def test_a_node_that_does_not_answer_is_an_internal_error(tmp_path):
    async def story():
        async def get_pod(namespace: str, name: str) -> Obj:
            return pod("main")

        async def get_node(name: str) -> Obj:
            endpoint = {"kubeletEndpoint": {"Port": 1}}
            address = {"type": "InternalIP", "address": "127.0.0.1"}
            return {"status": {"addresses": [address], "daemonEndpoints": endpoint}}

        http = HttpClient(ssl_context=tls.client_context(verify=False))
        proxy = NodeProxy(http, get_pod, get_node, backend_http=http)
        request = Request("POST", "/", "stdout=1", UPGRADE)
        with pytest.raises(InternalError, match=r"error dialing backend: dial 127\.0\.0\.1:1"):
            await proxy.connect("exec", "default", "web", request)
        with pytest.raises(InternalError, match='Get "https://127'):
            await proxy.logs("default", "web", request)
        await http.close()

    asyncio.run(story())
