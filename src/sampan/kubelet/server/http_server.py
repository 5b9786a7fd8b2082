"""The kubelet's HTTP server: logs, exec, attach, port-forward, pods, health and metrics.

Job: ask who comes and what they may (access.py); route; turn what is not available into a
    status code.
Invariant: no route is served to a caller who was not let in.
Owner: the node agent starts and stops it.
"""

import os
import ssl
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from functools import partial
from typing import Protocol
from urllib.parse import parse_qs, unquote

import orjson

from sampan.api.log_options import options_from_query
from sampan.api.objects import Obj
from sampan.core.clock import Clock
from sampan.core.digits import is_digits
from sampan.core.file_events import FileEvents
from sampan.core.health_checks import HealthChecks, nothing_wrong
from sampan.core.http.messages import Headers, Reply, Request, Response, Stream
from sampan.core.http.server import Server
from sampan.core.metrics import Metrics
from sampan.kubelet.contracts.runtime import Runtime, RuntimeFailure
from sampan.kubelet.server.access import ServerAccess
from sampan.kubelet.server.logs import has_log, read_log
from sampan.kubelet.server.lookup import FoundContainer, NotAvailable, PodLookup
from sampan.kubelet.server.node_logs import NodeLogs
from sampan.kubelet.server.streams import Streams, Target
from sampan.kubelet.settings import KubeletSettings
from sampan.kubelet.stats.node_stats import NodeStats

RUN_SECONDS = 120.0
_TEXT: Headers = (("content-type", "text/plain; charset=utf-8"),)
_JSON: Headers = (("content-type", "application/json"),)
_FIGURES: Headers = (("content-type", "text/plain; version=0.0.4"),)
# What enableDebuggingHandlers: false turns off, as upstream.
_DEBUGGING = frozenset(
    {"run", "exec", "attach", "portForward", "containerLogs", "runningpods", "logs"}
)


class Measured(Protocol):
    """What the server asks of the agent when somebody wants figures."""

    @property
    def settings(self) -> KubeletSettings: ...

    def stats(self) -> NodeStats: ...

    async def summary(self) -> Obj: ...

    async def cadvisor(self) -> str: ...

    def probe_metrics(self) -> str: ...

    async def volume_metrics(self) -> str: ...


class KubeletServer:
    def __init__(
        self,
        lookup: PodLookup,
        runtime: Runtime,
        *,
        clock: Clock,
        metrics: Metrics,
        healthy: Callable[[], str] = lambda: "",
        agent: Callable[[], Measured | None] = lambda: None,
        access: ServerAccess | None = None,
        checkpoints: str = "/var/lib/kubelet/checkpoints",
        pretends: bool = False,
    ) -> None:
        """`healthy`: what is wrong with the agent, or nothing. `agent`: who answers for figures,
        and knows what is to be served, once it is there. `access`: None lets in the cluster's
        masters by their certificates, and nobody else. `pretends`: logs may be missing."""
        self._pretends = pretends
        self._lookup, self._runtime = lookup, runtime
        self._clock, self._metrics = clock, metrics
        self._agent = agent
        checks = {"ping": nothing_wrong, "log": nothing_wrong, "syncloop": healthy}
        self._checks = HealthChecks(lambda _: checks)
        self._access, self._checkpoints = access or ServerAccess("", None, clock), checkpoints
        self._events, self._node_logs = FileEvents(), NodeLogs()
        self._streams = Streams(lookup, runtime)
        self._server: Server | None = None
        self._health_server: Server | None = None

    async def start(self, host: str, port: int, ssl_context: ssl.SSLContext) -> int:
        """`ssl_context` verifies client certificates against the cluster's CA."""
        self._server = Server(
            self.answer, ssl_context=ssl_context, clock=self._clock, name="kubelet http",
            knows_callers=True,
        )  # fmt: skip
        return await self._server.start(host, port)

    async def start_health(self, host: str, port: int) -> None:
        """For those of the machine who only ask whether it lives. Raises OSError."""
        server = Server(self._answer_health, clock=self._clock, name="kubelet health")
        await server.start(host, port)
        self._health_server = server

    async def _answer_health(self, request: Request) -> Reply:
        if request.path.split("/")[1] == "healthz":
            return self._checks.reply(request)
        return Response(404, _TEXT, b"404 page not found\n")

    async def stop(self, grace_seconds: float) -> None:
        for server in (self._server, self._health_server):
            if server is not None:
                await server.stop(grace_seconds)
        await self._streams.close()
        self._events.close()

    async def answer(self, request: Request) -> Reply:
        refused = await self._access.refusal(request)
        if refused is not None:
            return refused
        parts = [unquote(part) for part in request.path.split("/")[1:]]
        try:
            return self._is_off(parts[0]) or await self._route(parts, request)
        except NotAvailable as error:
            return Response(error.status, _TEXT, f"{error}".encode())
        except RuntimeFailure as error:
            return Response(500, _TEXT, f"{error}".encode())

    def _is_off(self, first: str) -> Response | None:
        agent = self._agent()
        if agent is None:
            return None
        if first in _DEBUGGING and not agent.settings.debugging_handlers:
            return Response(405, _TEXT, b"Debug endpoints are disabled.\n")
        if first == "logs" and not agent.settings.system_logs:
            return Response(405, _TEXT, b"logs endpoint is disabled.\n")
        return None

    def _takes_queries(self) -> bool:
        agent = self._agent()
        return agent is not None and agent.settings.system_log_queries

    def _shown_configuration(self) -> Obj:
        # Rarely asked for: what a configuration can say is not loaded for every node.
        from sampan.kubelet.configuration import own_values
        from sampan.kubelet.configuration_fields import shown_configuration

        agent = self._agent()
        if agent is None:
            return {}
        return dict(agent.settings.shown) or shown_configuration({}, own_values(agent.settings))

    async def _route(self, parts: list[str], request: Request) -> Reply:
        reading = request.method in ("GET", "HEAD")
        match parts:
            case ["healthz", *_] if reading:
                return self._checks.reply(request)
            case ["metrics"] if reading:
                return await self._rendered()
            case ["metrics", ("resource" | "cadvisor" | "probes" | "slis") as what] if reading:
                return await self._measured(what)
            case ["stats", "summary"] if reading:
                agent = self._agent()
                return Response(503, _TEXT) if agent is None else _json(await agent.summary())
            case ["configz"] if reading:
                return _json({"kubeletconfig": self._shown_configuration()})
            case ["logs", *place] if reading and not self._pretends:
                return await self._node_logs.answer(place, request, queries=self._takes_queries())
            case ["pods"] | ["pods", ""] if reading:
                return _json(_pod_list(self._lookup.pods()))
            case ["runningpods"] | ["runningpods", ""] if reading:
                return _json(_pod_list(await self._running_pods()))
            case ["containerLogs", namespace, pod, container] if reading:
                return await self._container_logs(Target(namespace, pod, container), request)
            case ["run", namespace, pod, *uid, container] if len(uid) < 2:
                return await self._run(Target(namespace, pod, container, "".join(uid)), request)
            case [("exec" | "attach") as verb, namespace, pod, *uid, container] if len(uid) < 2:
                target = Target(namespace, pod, container, "".join(uid))
                return await self._stream(verb, target, request)
            case ["checkpoint", namespace, pod, container]:
                return await self._checkpoint(Target(namespace, pod, container), request)
            case ["portForward", namespace, pod, *uid] if len(uid) < 2:
                target = Target(namespace, pod, uid="".join(uid))
                return await self._streams.port_forward(target, request)
        return Response(404, _TEXT, b"404 page not found\n")

    async def _rendered(self) -> Response:
        agent = self._agent()
        volumes = await agent.volume_metrics() if agent is not None else ""
        return Response(200, _FIGURES, (self._metrics.render() + volumes).encode())

    async def _measured(self, what: str) -> Response:
        if what == "slis":
            return Response(200, _FIGURES, self._checks.slis().encode())
        agent = self._agent()
        if agent is None:
            return Response(503, _TEXT, b"the node agent is starting")
        match what:
            case "resource":
                text = agent.stats().resource_metrics()
            case "cadvisor":
                text = await agent.cadvisor()
            case _:
                text = agent.probe_metrics()
        return Response(200, _FIGURES, text.encode())

    async def _stream(self, verb: str, target: Target, request: Request) -> Reply:
        if request.method not in ("GET", "POST"):
            return Response(405, _TEXT, b"405: Method Not Allowed")
        perform: Callable[[Target, Request], Awaitable[Reply]] = (
            self._streams.run_in_container if verb == "exec" else self._streams.attach
        )
        return await perform(target, request)

    async def _container_logs(self, target: Target, request: Request) -> Reply:
        query = parse_qs(request.query, keep_blank_values=True)
        options, errors = options_from_query(query)
        if errors:
            return Response(422, _TEXT, b'{"message": "Invalid request."}')
        found = await self._found(target, options.previous)
        if not has_log(found.log_path) and self._pretends:
            return Response(200, _TEXT, b"")  # it was not told to speak
        if not has_log(found.log_path):
            raise NotAvailable(f"no log file of container {found.id}", status=500)
        chunks = read_log(
            found.log_path,
            options,
            now=self._clock.now(),
            events=self._events,
            is_running=partial(self._still_runs, target, found.id),
        )
        return Stream(200, _TEXT, chunks)

    async def _found(self, target: Target, previous: bool) -> FoundContainer:
        return await self._lookup.find_container(
            target.namespace, target.pod, target.container, previous
        )

    async def _still_runs(self, target: Target, container_id: str) -> bool:
        try:
            found = await self._found(target, False)
        except NotAvailable:
            return False  # the pod is gone, and its containers with it
        except RuntimeFailure:
            return True  # nobody can say: ask again
        return found.running and found.id == container_id

    async def _run(self, target: Target, request: Request) -> Reply:
        if request.method != "POST":
            return Response(405, _TEXT, b"405: Method Not Allowed")
        command = parse_qs(request.query).get("cmd", [""])[0].split(" ")
        found = await self._lookup.find_container(
            target.namespace, target.pod, target.container, uid=target.uid
        )
        result = await self._runtime.exec_sync(found.id, command, RUN_SECONDS)
        output = result.stdout + result.stderr
        if result.exit_code:
            why = f"command '{' '.join(command)}' exited with {result.exit_code}: ".encode()
            return Response(500, _TEXT, why + output)
        return Response(200, _TEXT, output)

    async def _checkpoint(self, target: Target, request: Request) -> Reply:
        """A running container's state as a file of the node, where the runtime can write it."""
        if request.method != "POST":
            return Response(405, _TEXT, b"405: Method Not Allowed")
        given = parse_qs(request.query).get("timeout", ["0"])[0]
        if not is_digits(given):
            raise NotAvailable("cannot parse value of timeout parameter")
        found = await self._found(target, False)
        named = f"{target.namespace}/{target.pod}/{target.container}"
        stamp = datetime.fromtimestamp(self._clock.now(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        name = f"checkpoint-{target.pod}_{target.namespace}-{target.container}-{stamp}.tar"
        path = f"{self._checkpoints}/{name}"
        try:
            os.makedirs(self._checkpoints, mode=0o700, exist_ok=True)
            await self._runtime.checkpoint(found.id, path, float(given))
        except (OSError, RuntimeFailure) as error:
            raise NotAvailable(f"checkpointing of {named} failed ({error})", status=500) from error
        return _json({"items": [path]})

    async def _running_pods(self) -> list[Obj]:
        return [
            {
                "metadata": {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid},
                "spec": {
                    "containers": [
                        {"name": container.name, "image": container.image}
                        for container in pod.containers
                        if container.state == "running"
                    ]
                },
                "status": {},
            }
            for pod in await self._runtime.pods()
        ]


def _pod_list(pods: list[Obj]) -> Obj:
    return {"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": pods}


def _json(value: Obj) -> Response:
    return Response(200, _JSON, orjson.dumps(value))
