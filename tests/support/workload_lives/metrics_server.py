"""The played metrics as an aggregated API server, for a cluster that is elsewhere.

Job: serve them by TLS at an address that the cluster reaches; register the APIServices.
"""

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from urllib.parse import unquote

import orjson

from sampan.api.objects import Obj
from sampan.core.http.messages import Reply, Request, Response
from sampan.core.http.server import Server
from sampan.core.tls import server_context
from tests.support.parts.certificates import Authority
from tests.support.workload_lives.played_metrics import VERSIONS, PlayedMetrics, replied
from tests.support.workload_lives.transport import Transport

NAMESPACE, NAME = "kube-system", "played-metrics"


class MetricsServer:
    """`async with MetricsServer(metrics, transport, "10.0.0.1"): …`."""

    def __init__(self, metrics: PlayedMetrics, transport: Transport, address: str) -> None:
        self._metrics, self._transport, self._address = metrics, transport, address
        with TemporaryDirectory() as directory:
            pair = Authority(Path(directory)).issue("metrics", names=["metrics"])
            context = server_context(pair.cert_path, pair.key_path)
        self._server = Server(self._handle, ssl_context=context)

    async def __aenter__(self) -> "MetricsServer":
        port = await self._server.start(self._address, 0)
        for path, body in _registration(self._address, port):
            await self._transport.call("DELETE", f"{path}/{body['metadata']['name']}")
            code, answer = await self._transport.call("POST", path, body)
            assert code == 201, answer
        await asyncio.sleep(3)
        return self

    async def __aexit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        for path, body in _registration(self._address, 1):
            await self._transport.call("DELETE", f"{path}/{body['metadata']['name']}")
        await self._server.stop(0.1)

    async def _handle(self, request: Request) -> Reply:
        path = unquote(request.path)  # Go writes the star of all pods as %2A
        code, body = replied(path, await self._metrics.answer(path, request.query))
        return Response(code, (("content-type", "application/json"),), orjson.dumps(body))


def _registration(address: str, port: int) -> list[tuple[str, Obj]]:
    core = f"/api/v1/namespaces/{NAMESPACE}"
    service = {"ports": [{"name": "https", "port": 443, "targetPort": port}]}
    labels = {"kubernetes.io/service-name": NAME}
    found: list[tuple[str, Obj]] = [
        (f"{core}/services", _object("v1", "Service", NAME, spec=service)),
        (
            f"/apis/discovery.k8s.io/v1/namespaces/{NAMESPACE}/endpointslices",
            {
                **_object("discovery.k8s.io/v1", "EndpointSlice", NAME),
                "metadata": {"name": NAME, "labels": labels},
                "addressType": "IPv4",
                "endpoints": [{"addresses": [address], "conditions": {"ready": True}}],
                "ports": [{"name": "https", "port": port}],
            },
        ),
    ]
    for group, version in VERSIONS.items():
        spec = {
            "group": group, "version": version, "insecureSkipTLSVerify": True,
            "groupPriorityMinimum": 100, "versionPriority": 100,
            "service": {"namespace": NAMESPACE, "name": NAME},
        }  # fmt: skip
        made = _object("apiregistration.k8s.io/v1", "APIService", f"{version}.{group}", spec=spec)
        found.append(("/apis/apiregistration.k8s.io/v1/apiservices", made))
    return found


def _object(api_version: str, kind: str, name: str, **rest: Obj) -> Obj:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **rest}
