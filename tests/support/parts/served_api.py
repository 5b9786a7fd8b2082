"""The API server behind real TLS on loopback, for real clients.

Job: serve it from a thread of its own, with certificates and kubeconfigs in a directory.
Invariant: nothing of it outlives the `with`.
"""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import orjson
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from sampan.api.schema.published import Schema
from sampan.apiserver.authn.user import MASTERS
from sampan.apiserver.settings import ApiServerSettings
from sampan.core.clock import SystemClock
from sampan.core.fast_dataclass import dataclass
from sampan.core.http.server import Server
from sampan.core.tls import server_context
from tests.support.generators.api_requests import api_server
from tests.support.parts.certificates import Authority, Pair


@dataclass(frozen=True, slots=True)
class Served:
    port: int
    admin: Path  # kubeconfig of somebody in system:masters
    nobody: Path  # kubeconfig of somebody without rights


@contextmanager
def served_api(
    schema: Schema, directory: Path, settings: ApiServerSettings | None = None
) -> Iterator[Served]:
    """`settings`: but for its key, which is its own."""
    wanted = settings or ApiServerSettings(ca_bundle_pem="PEM")
    authority = Authority(directory)
    ports: list[int] = []
    ready, over = threading.Event(), asyncio.Event()
    loops: list[asyncio.AbstractEventLoop] = []

    async def serve() -> None:
        settings = replace(wanted, token_signing_key_pem=_signing_key())
        pair = authority.issue("kube-apiserver")
        tls = server_context(pair.cert_path, pair.key_path, authority.ca_path)
        async with api_server(schema, settings=settings, clock=SystemClock()) as api:
            server = Server(
                api.server.handle_http, ssl_context=tls, wants_body=api.server.wants_body
            )
            ports.append(await server.start("127.0.0.1", 0))
            loops.append(asyncio.get_running_loop())
            ready.set()
            await over.wait()
            await server.stop(1.0)

    thread = threading.Thread(target=lambda: asyncio.run(serve()), name="served-api")
    thread.start()
    assert ready.wait(60), "the API server did not start"
    try:
        admin = _kubeconfig(directory, authority, ports[0], "admin", MASTERS)
        nobody = _kubeconfig(directory, authority, ports[0], "bob", "dev")
        yield Served(ports[0], admin, nobody)
    finally:
        loops[0].call_soon_threadsafe(over.set)
        thread.join(20)


def _kubeconfig(directory: Path, authority: Authority, port: int, user: str, group: str) -> Path:
    pair: Pair = authority.issue(user, group)
    cluster = {
        "server": f"https://127.0.0.1:{port}",
        "certificate-authority": str(authority.ca_path),
    }
    credentials = {
        "client-certificate": str(pair.cert_path),
        "client-key": str(pair.key_path),
    }
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": credentials}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path = directory / f"{user}.kubeconfig"
    path.write_bytes(orjson.dumps(config))
    return path


def _signing_key() -> bytes:
    return ec.generate_private_key(ec.SECP256R1()).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
