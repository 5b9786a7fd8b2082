"""`sampan token create`: the line that another machine joins the cluster with.

Job: a bootstrap token, and where and how the cluster is known.
Invariant: a token is good for a day at most, and for asking for a node's certificate only.
"""

import asyncio
import ipaddress
import os
import secrets
import string
import sys
from pathlib import Path
from urllib.parse import urlsplit

from sampan.api.errors import ApiError
from sampan.api.objects import Obj, time_text
from sampan.api.resources import ENDPOINTS, SECRETS
from sampan.client import kubeconfig
from sampan.client.contract import Client
from sampan.client.rest import connect
from sampan.cmd.cluster.addresses import url_of
from sampan.cmd.cluster.ca_pin import fingerprint
from sampan.cmd.cluster.data_dir import DataDirError, find_data_dir
from sampan.cmd.errors import CannotStart, sentence_of
from sampan.cmd.settings import CLUSTER_CIDR
from sampan.core.clock import Clock, SystemClock

LIFE_SECONDS = 24 * 3600.0
NAMESPACE = "kube-system"
_LETTERS = string.ascii_lowercase + string.digits
CLOSED = (
    "the API server listens for this machine only: start the cluster with "
    "`sampan up --bind-address 0.0.0.0` (or an address of this machine) so that others can join"
)


def run(data_dir: str, kubeconfig_path: str = "", server: str = "") -> int:
    try:
        path, pods = kubeconfig_path, CLUSTER_CIDR
        if not path:
            data = find_data_dir(data_dir)
            path, pods = str(data.kubeconfig), data.record().get("cluster_cidr") or pods
        print(asyncio.run(_create(path, server, pods, SystemClock())))
    except (DataDirError, CannotStart, ApiError, kubeconfig.KubeconfigError, OSError) as error:
        print(f"sampan: {sentence_of(error)}", file=sys.stderr)
        return 1
    return 0


async def _create(path: str, server: str, pods: str, clock: Clock) -> str:
    connection = kubeconfig.load(path, os.environ, str(Path.home())).connection()
    client = connect(connection, clock=clock, user_agent="sampan-token")
    try:
        server = server or await _address(client, connection.server, pods)
        token_id, secret = _random(6), _random(16)
        await client.create(SECRETS, token_secret(token_id, secret, clock.now()), NAMESPACE)
    finally:
        await client.close()
    assert connection.ca is not None, "a cluster of our own has its own authority"
    pin = fingerprint(connection.ca)
    return f"sampan join {server} --token {token_id}.{secret} --ca-hash {pin}"


def token_secret(token_id: str, secret: str, now: float) -> Obj:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "bootstrap.kubernetes.io/token",
        "metadata": {"name": f"bootstrap-token-{token_id}", "namespace": NAMESPACE},
        "stringData": {
            "token-id": token_id,
            "token-secret": secret,
            "expiration": time_text(now + LIFE_SECONDS),
            "usage-bootstrap-authentication": "true",
            "description": "made by `sampan token create`",
        },
    }


async def _address(client: Client, known_as: str, pods: str) -> str:
    """Where others find it: as we do, unless that is for this machine only."""
    if not _is_local(urlsplit(known_as).hostname or ""):
        return known_as
    endpoints = await client.get(ENDPOINTS, "default", "kubernetes")
    subset = endpoints["subsets"][0]
    address, port = subset["addresses"][0]["ip"], subset["ports"][0]["port"]
    found = ipaddress.ip_address(address)
    ranges = [ipaddress.ip_network(each) for each in pods.split(",")]
    if found.is_loopback or any(found in each for each in ranges):
        raise CannotStart(CLOSED)
    return url_of(address, port)


def _is_local(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _random(length: int) -> str:
    return "".join(secrets.choice(_LETTERS) for _ in range(length))
