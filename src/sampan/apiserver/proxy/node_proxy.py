"""From a pod to its node: logs, exec, attach, port-forward, and plain proxying.

Job: find the node's address and the container that is meant, build the node's URL, pass it through.
Invariant: nothing that identifies the caller to us (token, impersonation) travels on.
Invariant: what identifies us (the client certificate) is shown to kubelets only, never to pods,
    services or other ports of a node.
Invariant: where a connection leads is made of parts, never read out of a text with the caller's
    words in it.
Invariant: what cannot be had is an ApiError, worded as the original words it.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from urllib.parse import parse_qs, quote, urlencode

from sampan.api.errors import (
    ApiError,
    BadRequest,
    Failure,
    InternalError,
    ServiceUnavailable,
    from_status,
    invalid,
)
from sampan.api.log_options import is_true, options_from_query, to_query
from sampan.api.objects import Obj, name_of, namespace_of
from sampan.apiserver.outside.refusal_words import refusal_words
from sampan.apiserver.proxy.links import link_through, pages_through
from sampan.apiserver.proxy.log_messages import chosen_protocol, log_messages
from sampan.apiserver.proxy.port_translation import port_channels
from sampan.apiserver.proxy.stream_translation import (
    SPDY,
    ConnectNode,
    Wanted,
    translate,
    tunnel,
    wants_translation,
    wants_tunnel,
)
from sampan.core.digits import is_digits
from sampan.core.http.client import ClientStream, HttpClient, Upgraded
from sampan.core.http.errors import AddressNotAllowed, HttpError
from sampan.core.http.messages import Connection, Reply, Request, Response, Stream, Upgrade
from sampan.core.http.origin import Origin, Target
from sampan.core.http.relay import end_to_end, pass_upgrade, wants_upgrade
from sampan.core.http.websocket import is_websocket
from sampan.core.ip_addresses import is_proxyable

KUBELET_PORT = 10250
ERROR_BYTES = 64 * 1024
# InternalIP first: nodes of one machine or one process have names that nobody resolves.
ADDRESS_TYPES = ("InternalIP", "Hostname", "InternalDNS", "ExternalDNS", "ExternalIP")
# Packed pages could not have their links changed.
_NOT_PROXIED = frozenset({"accept-encoding"})
# A date is told once; a browser forgets nothing of this server, and lets nobody serve its pages.
_NOT_ANSWERED = frozenset({"date", "clear-site-data", "service-worker-allowed"})
_SANDBOX = "sandbox allow-scripts allow-forms allow-popups allow-downloads"
FORWARDED = "x-forwarded-for"
_NOT_ALLOWED = "address not allowed"
_PRIVATE = frozenset({"authorization", "x-remote-user", "x-remote-group", "x-remote-uid"})

GetPod = Callable[[str, str], Awaitable[Obj]]  # namespace, name; raises NotFound
GetNode = Callable[[str], Awaitable[Obj]]
# namespace, name, scheme, port → where one of the service's endpoints listens
GetServiceOrigin = Callable[[str, str, str, str], Awaitable[Origin]]


class NodeProxy:
    """`http` carries the API server's client certificate for kubelets; `insecure_http` the same
    without checking the kubelet's own, for insecureSkipTLSVerifyBackend. `backend_http` carries
    nothing of ours, checks no certificate, as upstream, and goes to proxyable addresses only."""

    def __init__(
        self,
        http: HttpClient,
        get_pod: GetPod,
        get_node: GetNode,
        *,
        backend_http: HttpClient,
        insecure_http: HttpClient | None = None,
        get_service_origin: GetServiceOrigin | None = None,
    ) -> None:
        self._http, self._insecure_http = http, insecure_http
        self._backend_http = backend_http
        self._get_pod, self._get_node = get_pod, get_node
        self._get_service_origin = get_service_origin

    async def logs(self, namespace: str, name: str, request: Request) -> Reply:
        """GET pods/NAME/log."""
        query = parse_qs(request.query, keep_blank_values=True)
        options, errors = options_from_query(query)
        if errors:
            raise invalid("PodLogOptions", "", name, errors)
        protocol = chosen_protocol(request) if is_websocket(request) else None
        pod = await self._get_pod(namespace, name)
        container = container_of(pod, query.get("container", [""])[0])
        if not node_name_of(pod):
            return Response(204)
        path = node_path("containerLogs", pod, container)
        url = await self._target(pod, f"{path}?{to_query(options)}".rstrip("?"))
        insecure = is_true(query.get("insecureSkipTLSVerifyBackend", [None])[0])
        http = self._insecure_http if insecure and self._insecure_http else self._http
        try:
            stream = await http.stream("GET", url)
        except HttpError as error:
            raise InternalError(f'Get "{url}": {error}') from error
        if stream.status >= 300:
            raise server_error(stream.status, await _text_of(stream), "pods/log", name)
        if protocol is not None:
            return log_messages(request, protocol, _chunks_of(stream))
        return Stream(200, (("content-type", "text/plain"),), _chunks_of(stream))

    async def connect(self, subresource: str, namespace: str, name: str, request: Request) -> Reply:
        """exec, attach and portforward of a pod."""
        pod = await self._get_pod(namespace, name)
        query = parse_qs(request.query, keep_blank_values=True)
        if subresource == "portforward":
            path, asked = node_path("portForward", pod), ""
        else:
            container = container_of(pod, query.get("container", [""])[0])
            path, asked = node_path(subresource, pod, container), stream_query(query)
        if not node_name_of(pod):
            raise BadRequest(f"pod {name} does not have a host assigned")
        url = await self._target(pod, f"{path}?{asked}".rstrip("?"))
        if not wants_upgrade(request):
            raise BadRequest("Upgrade request required")
        return self._then_warm(await self._stream(subresource, query, request, url), url)

    async def _stream(
        self, subresource: str, query: dict[str, list[str]], request: Request, url: Target
    ) -> Reply:
        if subresource == "portforward" and wants_tunnel(request):
            return await self._tunnel(request, url)
        if subresource == "portforward" and is_websocket(request):
            return port_channels(request, ports_of(query), self._spdy_to(url))
        if subresource != "portforward" and wants_translation(request):
            return translate(request, wanted_streams(query), self._spdy_to(url))
        return await self._pass_on(request, url, self._http)

    async def proxy(
        self, resource: str, namespace: str, name: str, path: str, request: Request
    ) -> Reply:
        """pods/NAME/proxy, services/NAME/proxy and nodes/NAME/proxy; `path` is what follows, with
        its slash."""
        origin, http = await self._backend(resource, namespace, name)
        query = f"?{request.query}" if request.query else ""
        url = Target(origin, f"{path or '/'}{query}")
        if wants_upgrade(request):
            return await self._pass_on(request, url, http)
        if not path and request.method in ("GET", "HEAD"):
            # Relative links of the page would lead out of the proxy otherwise.
            return Response(301, (("location", f"{request.path}/{query}"),))
        asked = end_to_end(public(request).headers, without=_NOT_PROXIED)
        try:
            stream = await http.stream(
                request.method, url,
                headers=[*asked, ("x-forwarded-uri", request.path)], body=request.body,
            )  # fmt: skip
        except AddressNotAllowed as error:
            raise BadRequest(_NOT_ALLOWED) from error
        except HttpError as error:
            raise ServiceUnavailable(f"error trying to reach service: {error}") from error
        reply = through(request.path.removesuffix(path), origin, stream)
        return reply if FORWARDED in request.headers else sandboxed(reply)

    async def _backend(self, resource: str, namespace: str, name: str) -> tuple[Origin, HttpClient]:
        """Where the connection leads, and who we are there."""
        scheme, bare, port = split_name(resource, name)
        if resource == "nodes":
            kubelet = kubelet_origin(await self._get_node(bare))
            if port in ("", str(kubelet.port)):
                return kubelet, self._http
            return Origin(scheme or "http", kubelet.host, port_number(port)), self._backend_http
        if resource == "services":
            if self._get_service_origin is None:
                raise ServiceUnavailable("this server has no way to services")
            origin = await self._get_service_origin(namespace, bare, scheme, port)
        else:
            origin = pod_origin(await self._get_pod(namespace, bare), scheme, port)
        if not is_proxyable(origin.host):
            raise BadRequest(_NOT_ALLOWED)
        return origin, self._backend_http

    def _then_warm(self, reply: Reply, url: Target) -> Reply:
        """A stream takes its connection with it. The next command need not wait for another
        handshake: once this one is over, there is time for it."""
        if not isinstance(reply, Upgrade):
            return reply

        async def take_over(connection: Connection) -> None:
            await reply.take_over(connection)
            await self._http.warm(url)

        return Upgrade(reply.headers, take_over)

    def _spdy_to(self, url: Target) -> ConnectNode:
        def connect(protocols: tuple[str, ...]) -> Awaitable[Upgraded]:
            offered = [("x-stream-protocol-version", protocol) for protocol in protocols]
            headers = [("connection", "Upgrade"), ("upgrade", SPDY), *offered]
            return self._http.upgrade("POST", url, headers=headers)

        return connect

    async def _tunnel(self, request: Request, url: Target) -> Reply:
        try:
            return await tunnel(request, self._spdy_to(url))
        except HttpError as error:
            raise _dialing_failed(error) from error

    async def _pass_on(self, request: Request, url: Target, http: HttpClient) -> Reply:
        try:
            return await pass_upgrade(http, public(request), url)
        except AddressNotAllowed as error:
            raise BadRequest(_NOT_ALLOWED) from error
        except HttpError as error:
            raise _dialing_failed(error) from error

    async def _target(self, pod: Obj, path: str) -> Target:
        """On the kubelet of the pod's node."""
        return Target(kubelet_origin(await self._get_node(node_name_of(pod))), path)


def _dialing_failed(error: HttpError) -> InternalError:
    return InternalError(f"Internal error occurred: error dialing backend: {error}")


def public(request: Request) -> Request:
    """The request without what was meant for us alone."""
    kept = {
        name: value
        for name, value in request.headers.items()
        if name not in _PRIVATE and not name.startswith(("impersonate-", "x-remote-extra-"))
    }
    return replace(request, headers=kept)


def node_name_of(pod: Obj) -> str:
    return str((pod.get("spec") or {}).get("nodeName") or "")


def container_of(pod: Obj, asked: str) -> str:
    """The container that is meant. Raises BadRequest."""
    spec = pod.get("spec") or {}
    lists = ("initContainers", "containers", "ephemeralContainers")
    names = [item["name"] for part in lists for item in spec.get(part) or ()]
    if asked:
        if asked not in names:
            raise BadRequest(f"container {asked} is not valid for pod {name_of(pod)}")
        return asked
    normal = spec.get("containers") or []
    if len(normal) == 1:
        return str(normal[0]["name"])
    message = f"a container name must be specified for pod {name_of(pod)}"
    raise BadRequest(f"{message}, choose one of: [{' '.join(names)}]" if normal else message)


def node_path(verb: str, pod: Obj, container: str = "") -> str:
    parts = (verb, namespace_of(pod), name_of(pod), *((container,) if container else ()))
    return "".join(f"/{quote(part, safe='')}" for part in parts)


def stream_query(query: dict[str, list[str]]) -> str:
    """PodExecOptions and PodAttachOptions, as the node names them."""
    names = (("input", "stdin"), ("output", "stdout"), ("error", "stderr"), ("tty", "tty"))
    given = [(theirs, "1") for theirs, ours in names if is_true(query.get(ours, [None])[0])]
    return urlencode(given + [("command", part) for part in query.get("command", ())])


def wanted_streams(query: dict[str, list[str]]) -> Wanted:
    def asked(name: str) -> bool:
        return is_true(query.get(name, [None])[0])

    return Wanted(asked("stdin"), asked("stdout"), asked("stderr"), asked("tty"))


def ports_of(query: dict[str, list[str]]) -> list[str]:
    return [port for part in query.get("ports", ()) for port in part.split(",") if port]


def kubelet_origin(node: Obj) -> Origin:
    """Where the node agent listens. Raises Failure where the node does not say."""
    status = node.get("status") or {}
    addresses: dict[str, str] = {}
    for entry in status.get("addresses") or ():
        addresses.setdefault(entry.get("type") or "", entry.get("address") or "")
    host = next((addresses[kind] for kind in ADDRESS_TYPES if addresses.get(kind)), None)
    if host is None:
        raise Failure(f"no preferred addresses found; known addresses: {[*addresses]}")
    endpoint = (status.get("daemonEndpoints") or {}).get("kubeletEndpoint") or {}
    return Origin("https", str(host), port_number(str(endpoint.get("Port") or KUBELET_PORT)))


def pod_origin(pod: Obj, scheme: str, port: str) -> Origin:
    """As ResourceLocation: the given port, else the first that any container declares."""
    containers = (pod.get("spec") or {}).get("containers") or ()
    declared = [item["containerPort"] for part in containers for item in part.get("ports") or ()]
    port = port or (str(declared[0]) if declared else "443" if scheme == "https" else "80")
    ips: list[Obj] = (pod.get("status") or {}).get("podIPs") or [{}]
    return Origin(scheme or "http", str(ips[0].get("ip") or ""), port_number(port))


def port_number(text: str) -> int:
    """Raises BadRequest."""
    if is_digits(text) and 1 <= int(text) <= 65535:
        return int(text)
    raise BadRequest(f'invalid port "{text}": must be between 1 and 65535, inclusive')


def split_name(resource: str, name: str) -> tuple[str, str, str]:
    """`name`, `name:port` or `scheme:name:port`."""
    match name.split(":"):
        case [bare]:
            return "", bare, ""
        case [bare, port]:
            return "", bare, port
        case ["http" | "https" | "" as scheme, bare, port]:
            return scheme, bare, port
    kind = resource.removesuffix("s")
    raise BadRequest(f'invalid {kind} request "{name}"')


def server_error(code: int, body: str, resource: str, name: str) -> ApiError:
    """As apimachinery's NewGenericServerResponse: another server's refusal, for our client."""
    if code == 400:
        return BadRequest(body)
    message = refusal_words(code, body)
    details = {
        "name": name,
        "kind": resource,
        "causes": [{"reason": "UnexpectedServerResponse", "message": body}],
    }
    told = {"message": f"{message} ( {resource} {name})", "code": code, "details": details}
    return from_status(told, code)


def through(prefix: str, origin: Origin, stream: ClientStream) -> Stream:
    """The proxied server's answer; its links lead back through the proxy, whose path is `prefix`.
    It has no say in which pages of others may read this server, nor in what a browser keeps of it
    or lets work for it."""
    headers = []
    host = origin.authority
    for name, value in end_to_end(stream.headers):
        if name.startswith("access-control-") or name in _NOT_ANSWERED:
            continue
        headers.append((name, link_through(prefix, value, host) if name == "location" else value))
    chunks = _chunks_of(stream)
    media = stream.headers.get("content-type", "").partition(";")[0].strip()
    if media == "text/html" and not stream.headers.get("content-encoding"):
        chunks = pages_through(prefix, chunks, host)
    return Stream(stream.status, headers, chunks)


def sandboxed(reply: Stream) -> Stream:
    """For who asks directly: what a pod serves is no part of this server's origin, where the page
    is, and a browser may have a certificate. Who comes by way of a proxy of their own (`kubectl
    proxy`) has the origin of that proxy: no page can make a browser say that it does."""
    headers = [(name, value) for name, value in reply.headers if name != "set-cookie"]
    return Stream(reply.status, [*headers, ("content-security-policy", _SANDBOX)], reply.chunks)


async def _chunks_of(stream: ClientStream) -> AsyncIterator[bytes]:
    try:
        async for chunk in stream:
            yield chunk
    finally:
        await stream.aclose()


async def _text_of(stream: ClientStream) -> str:
    whole = b""
    try:
        async for chunk in stream:
            whole += chunk
            if len(whole) > ERROR_BYTES:
                break
    finally:
        await stream.aclose()
    return whole[:ERROR_BYTES].decode(errors="replace")
