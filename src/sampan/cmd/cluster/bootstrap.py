"""TLS bootstrap: a joining node requests its certificates from the cluster (CSRs).

Job: keys and certificates of `system:node:NAME`, signed through CertificateSigningRequests: as a
    client the first time with the credentials of a bootstrap kubeconfig, later with the certificate
    itself, and for the node's own HTTP server.
Invariant: the key never leaves the node; until there is a certificate for it, it is kept, so that a
    node that was interrupted asks the same question again.
"""

import asyncio
import datetime
import hashlib
import ipaddress
import ssl
from base64 import b64decode, b64encode
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from sampan.api.errors import AlreadyExists, ApiError
from sampan.api.objects import Obj
from sampan.api.resources import Resource, by_kind
from sampan.client.kubeconfig import Connection
from sampan.client.rest import RestClient, connect
from sampan.cmd.cluster.data_dir import write_private
from sampan.cmd.cluster.pki import Pki
from sampan.cmd.errors import CannotStart
from sampan.core.clock import Clock
from sampan.core.fast_dataclass import dataclass
from sampan.core.log import get_logger

log = get_logger(__name__)

FILE = "kubelet-client"
SERVING_FILE = "kubelet-serving"
LOOK_SECONDS = 1.0  # for an answer; nobody waits for it but this node
RENEW_AT = 0.8  # of its life; upstream's is between 0.7 and 0.9
CHECK_SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class Wanted:
    """A certificate, and the names that it is for besides the node's own."""

    file: str
    signer: str
    usage: str
    names: tuple[str, ...] = ()

    @property
    def next_file(self) -> str:
        return f"{self.file}-next"


CLIENT = Wanted(FILE, "kubernetes.io/kube-apiserver-client-kubelet", "client auth")


def serving(node: str, addresses: Sequence[str]) -> Wanted:
    """What the node's own HTTP server shows, so that the API server trusts it."""
    return Wanted(SERVING_FILE, "kubernetes.io/kubelet-serving", "server auth", (node, *addresses))


async def join(connection: Connection, root: Path, node: str, clock: Clock) -> Connection:
    """As the node itself. Raises CannotStart where the cluster says no."""
    if due(root, node, clock.now()):
        client = connect(connection, clock=clock, user_agent="sampan-kubelet")
        try:
            await obtain(client, root, node, clock)
        finally:
            await client.close()
    pki = Pki(root)
    return replace(
        connection, certificate=pki.certificate(FILE).read_bytes(),
        key=pki.key(FILE).read_bytes(), token="", token_file="", username="", password="",
    )  # fmt: skip


async def keep_fresh(
    client: RestClient, context: ssl.SSLContext, root: Path, node: str, clock: Clock
) -> None:
    """Until cancelled: connections that are made after a renewal show the new certificate."""
    pki = Pki(root)
    while True:
        await clock.sleep(CHECK_SECONDS)
        if due(root, node, clock.now()):
            try:
                await obtain(client, root, node, clock)
            except CannotStart as error:
                log.error("the node's certificate is not renewed", error=error)
                continue
            context.load_cert_chain(pki.certificate(FILE), pki.key(FILE))
            log.info("the node's certificate was renewed")


async def keep_serving(
    client: RestClient,
    serve: tuple[ssl.SSLContext, asyncio.Event],
    root: Path,
    owner: tuple[str, Sequence[str]],
    clock: Clock,
) -> None:
    """Until cancelled: the context of `serve` shows a certificate of the cluster's authority; its
    event is set once it does. `owner` is the node's name and addresses."""
    context, trusted = serve
    node, _ = owner
    wanted, pki, loaded = serving(*owner), Pki(root), False
    while True:
        fresh = due(root, node, clock.now(), wanted)
        if fresh:
            try:
                await obtain(client, root, node, clock, wanted)
            except CannotStart as error:
                log.error("serving certificate of the node not issued", error=error)
        if (fresh or not loaded) and pki.certificate(wanted.file).exists():
            context.load_cert_chain(pki.certificate(wanted.file), pki.key(wanted.file))
            loaded = True
            trusted.set()
        await clock.sleep(CHECK_SECONDS)


def due(root: Path, node: str, now: float, wanted: Wanted = CLIENT) -> bool:
    """There is none, it is somebody else's, or most of its life is over."""
    pki = Pki(root)
    if not (pki.certificate(wanted.file).exists() and pki.key(wanted.file).exists()):
        return True
    found = x509.load_pem_x509_certificate(pki.certificate(wanted.file).read_bytes())
    begins, ends = found.not_valid_before_utc, found.not_valid_after_utc
    moment = datetime.datetime.fromtimestamp(now, datetime.UTC)
    return found.subject != _subject(node) or moment > begins + RENEW_AT * (ends - begins)


async def obtain(
    client: RestClient, root: Path, node: str, clock: Clock, wanted: Wanted = CLIENT
) -> None:
    """Raises CannotStart."""
    pki = Pki(root)
    key = _next_key(pki, wanted)
    name = await _request_certificate(client, request_of(key, node, wanted), clock)
    log.info("waiting for the node's certificate", request=name)
    pem = await _await_certificate(client, name, clock)
    write_private(pki.certificate(wanted.file), pem)
    write_private(pki.key(wanted.file), pki.key(wanted.next_file).read_bytes())
    pki.key(wanted.next_file).unlink()


def request_of(key: ec.EllipticCurvePrivateKey, node: str, wanted: Wanted = CLIENT) -> Obj:
    """Named after what it asks for: whoever asks again finds the answer."""
    built = x509.CertificateSigningRequestBuilder().subject_name(_subject(node))
    if wanted.names:
        names = x509.SubjectAlternativeName([_general_name(each) for each in wanted.names])
        built = built.add_extension(names, critical=False)
    pem = built.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    public = key.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return {
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "CertificateSigningRequest",
        "metadata": {"name": f"node-csr-{hashlib.sha256(public).hexdigest()[:40]}"},
        "spec": {
            "request": b64encode(pem).decode(),
            "signerName": wanted.signer,
            "usages": ["digital signature", wanted.usage],
        },
    }


async def _request_certificate(client: RestClient, request: Obj, clock: Clock) -> str:
    requests = _requests()
    name = str(request["metadata"]["name"])
    while True:
        try:
            await client.create(requests, request)
        except AlreadyExists:
            return name
        except ApiError as error:
            if error.code in (401, 403):
                raise CannotStart(f"the cluster does not let this node ask: {error}") from error
            log.info("API server not reachable yet", error=error)
            await clock.sleep(LOOK_SECONDS)
            continue
        return name


async def _await_certificate(client: RestClient, name: str, clock: Clock) -> bytes:
    while True:
        try:
            status = (await client.get(_requests(), "", name)).get("status") or {}
        except ApiError as error:
            log.info("API server not reachable yet", error=error)
            status = {}
        for condition in status.get("conditions") or ():
            if condition.get("type") in ("Denied", "Failed"):
                why = condition.get("message") or condition.get("reason") or ""
                raise CannotStart(f"the node's certificate was refused: {why}")
        if status.get("certificate"):
            return b64decode(status["certificate"])
        await clock.sleep(LOOK_SECONDS)


def _next_key(pki: Pki, wanted: Wanted) -> ec.EllipticCurvePrivateKey:
    path = pki.key(wanted.next_file)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if path.exists():
        found = serialization.load_pem_private_key(path.read_bytes(), password=None)
        if isinstance(found, ec.EllipticCurvePrivateKey):
            return found
    key = ec.generate_private_key(ec.SECP256R1())
    write_private(path, key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    ))  # fmt: skip
    return key


def _general_name(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(text))
    except ValueError:
        return x509.DNSName(text)


def _subject(node: str) -> x509.Name:
    return x509.Name([
        x509.NameAttribute(NameOID.ORGANIZATION_NAME, "system:nodes"),
        x509.NameAttribute(NameOID.COMMON_NAME, f"system:node:{node}"),
    ])  # fmt: skip


def _requests() -> Resource:
    found = by_kind("certificates.k8s.io/v1", "CertificateSigningRequest")
    assert found is not None
    return found
