"""How a node elsewhere gets a certificate of its own: it asks the cluster for one.

Job: key and certificate of `system:node:NAME`, signed through a CertificateSigningRequest; the
    first time with the credentials of a bootstrap kubeconfig, later with the certificate itself.
Invariant: the key never leaves the node; until there is a certificate for it, it is kept, so that a
    node that was interrupted asks the same question again.
"""

import datetime
import hashlib
import ssl
from base64 import b64decode, b64encode
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
from sampan.core.log import get_logger

log = get_logger(__name__)

FILE, NEXT = "kubelet-client", "kubelet-client-next"
SIGNER = "kubernetes.io/kube-apiserver-client-kubelet"
LOOK_SECONDS = 1.0  # for an answer; nobody waits for it but this node
RENEW_AT = 0.8  # of its life; upstream's is between 0.7 and 0.9
CHECK_SECONDS = 3600.0


async def joined(connection: Connection, root: Path, node: str, clock: Clock) -> Connection:
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


def due(root: Path, node: str, now: float) -> bool:
    """There is none, it is somebody else's, or most of its life is over."""
    pki = Pki(root)
    if not (pki.certificate(FILE).exists() and pki.key(FILE).exists()):
        return True
    found = x509.load_pem_x509_certificate(pki.certificate(FILE).read_bytes())
    begins, ends = found.not_valid_before_utc, found.not_valid_after_utc
    moment = datetime.datetime.fromtimestamp(now, datetime.UTC)
    return found.subject != _subject(node) or moment > begins + RENEW_AT * (ends - begins)


async def obtain(client: RestClient, root: Path, node: str, clock: Clock) -> None:
    """Raises CannotStart."""
    pki = Pki(root)
    key = _next_key(pki)
    name = await _asked(client, key, node, clock)
    log.info("waiting for the node's certificate", request=name)
    pem = await _answered(client, name, clock)
    write_private(pki.certificate(FILE), pem)
    write_private(pki.key(FILE), pki.key(NEXT).read_bytes())
    pki.key(NEXT).unlink()


def request_of(key: ec.EllipticCurvePrivateKey, node: str) -> Obj:
    """Named after what it asks for: whoever asks again finds the answer."""
    built = x509.CertificateSigningRequestBuilder().subject_name(_subject(node))
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
            "signerName": SIGNER,
            "usages": ["digital signature", "client auth"],
        },
    }


async def _asked(
    client: RestClient, key: ec.EllipticCurvePrivateKey, node: str, clock: Clock
) -> str:
    request, requests = request_of(key, node), _requests()
    name = str(request["metadata"]["name"])
    while True:
        try:
            await client.create(requests, request)
        except AlreadyExists:
            return name
        except ApiError as error:
            if error.code in (401, 403):
                raise CannotStart(f"the cluster does not let this node ask: {error}") from error
            log.info("the cluster cannot be asked yet", error=error)
            await clock.sleep(LOOK_SECONDS)
            continue
        return name


async def _answered(client: RestClient, name: str, clock: Clock) -> bytes:
    while True:
        try:
            status = (await client.get(_requests(), "", name)).get("status") or {}
        except ApiError as error:
            log.info("the cluster cannot be asked yet", error=error)
            status = {}
        for condition in status.get("conditions") or ():
            if condition.get("type") in ("Denied", "Failed"):
                why = condition.get("message") or condition.get("reason") or ""
                raise CannotStart(f"the node's certificate was refused: {why}")
        if status.get("certificate"):
            return b64decode(status["certificate"])
        await clock.sleep(LOOK_SECONDS)


def _next_key(pki: Pki) -> ec.EllipticCurvePrivateKey:
    path = pki.key(NEXT)
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


def _subject(node: str) -> x509.Name:
    return x509.Name([
        x509.NameAttribute(NameOID.ORGANIZATION_NAME, "system:nodes"),
        x509.NameAttribute(NameOID.COMMON_NAME, f"system:node:{node}"),
    ])  # fmt: skip


def _requests() -> Resource:
    found = by_kind("certificates.k8s.io/v1", "CertificateSigningRequest")
    assert found is not None
    return found
