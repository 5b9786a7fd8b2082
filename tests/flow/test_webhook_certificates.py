"""Webhooks whose certificates are made as Go's operators make theirs, and such as nobody should
trust: real servers on loopback."""

import asyncio
import base64
import datetime
import json

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from sampan.api.schema.published import Schema
from sampan.core.clock import SystemClock
from sampan.core.http.messages import Response
from sampan.core.http.server import Server
from sampan.core.tls import server_context
from tests.support.generators.api_requests import api_server

CA = x509.BasicConstraints(ca=True, path_length=None)
SERVER = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
CLIENT = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH])
LOCALHOST = x509.SubjectAlternativeName([x509.DNSName("localhost")])
HERE = {"op": "add", "path": "/metadata/annotations", "value": {"hook": "was here"}}
FAILED = 'failed calling webhook "hook.example.com": failed to call webhook: Post "https://'
BAD = "tls: failed to verify certificate: x509: "


def named(text):
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


class Made:
    """A certificate and its key."""

    def __init__(self, subject, *extensions, by=None, until=2120):
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.subject = named(subject)
        signer = by or self
        built = (
            x509.CertificateBuilder()
            .subject_name(self.subject)
            .issuer_name(signer.subject)
            .public_key(self.key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC))
            .not_valid_after(datetime.datetime(until, 1, 1, tzinfo=datetime.UTC))
        )
        for extension in extensions:
            built = built.add_extension(extension, critical=False)
        self.certificate = built.sign(signer.key, hashes.SHA256())
        self.pem = self.certificate.public_bytes(Encoding.PEM)

    def key_pem(self):
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def knative():
    """One name for both, and no key ids."""
    root = Made("hook", CA)
    return Made("hook", LOCALHOST, SERVER, by=root), [], root


def envtest():
    """The leaf itself is the bundle."""
    leaf = Made("localhost", LOCALHOST, by=Made("somebody", CA))
    return leaf, [], leaf


def cert_manager():
    root = Made("root", CA)
    issuer = Made("issuer", CA, by=root)
    return Made("hook", LOCALHOST, SERVER, by=issuer), [issuer], root


def of_somebody_else():
    return Made("hook", LOCALHOST, by=Made("root", CA)), [], Made("root", CA)


def for_clients():
    root = Made("root", CA)
    return Made("hook", LOCALHOST, CLIENT, by=root), [], root


def of_the_past():
    root = Made("root", CA)
    return Made("hook", LOCALHOST, by=root, until=2021), [], root


def by_common_name():
    root = Made("root", CA)
    return Made("localhost", SERVER, by=root), [], root


def by_a_leaf():
    root = Made("root", CA)
    leaf = Made("leaf", LOCALHOST, by=root)
    return Made("hook", LOCALHOST, by=leaf), [leaf], root


def beyond_its_names():
    only = x509.NameConstraints([x509.DNSName("example.com")], None)
    root = Made("root", CA, only)
    return Made("hook", LOCALHOST, by=root), [], root


def too_deep():
    root = Made("root", x509.BasicConstraints(ca=True, path_length=0))
    issuer = Made("issuer", CA, by=root)
    return Made("hook", LOCALHOST, by=issuer), [issuer], root


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "why"),
    [
        (knative, ""),
        (envtest, ""),
        (cert_manager, ""),
        (of_somebody_else, "certificate signed by unknown authority"),
        (for_clients, "certificate specifies an incompatible key usage"),
        (of_the_past, "certificate has expired or is not yet valid"),
        (by_common_name, "certificate relies on legacy Common Name field, use SANs instead"),
        (by_a_leaf, "certificate signed by unknown authority"),
        (beyond_its_names, "a root or intermediate certificate is not authorized to sign for this"),
        (too_deep, "too many intermediates for path length constraint"),
    ],
)
def test_a_webhook_is_known_by_its_certificate_as_go_knows_it(make, why, tmp_path):
    leaf, others, trusted = make()
    (tmp_path / "chain.pem").write_bytes(b"".join([leaf.pem, *(one.pem for one in others)]))
    (tmp_path / "key.pem").write_bytes(leaf.key_pem())
    reply, asked = asyncio.run(_created(tmp_path, trusted))
    if not why:
        assert reply.status == 201, reply.message
        assert reply.obj["metadata"]["annotations"] == {"hook": "was here"}
        return
    assert reply.status == 500
    assert FAILED in reply.message
    assert f"{BAD}{why}" in reply.message
    assert not asked, "nothing is said to whom nobody knows"


async def _created(directory, trusted):
    asked = []

    async def handle(request):
        asked.append(request)
        uid = json.loads(request.body)["request"]["uid"]
        patch = base64.b64encode(json.dumps([HERE]).encode()).decode()
        response = {"uid": uid, "allowed": True, "patchType": "JSONPatch", "patch": patch}
        review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
        return Response(200, (), json.dumps({**review, "response": response}).encode())

    context = server_context(directory / "chain.pem", directory / "key.pem")
    server = Server(handle, ssl_context=context)
    port = await server.start("127.0.0.1", 0)
    hook = {
        "name": "hook.example.com",
        "clientConfig": {
            "url": f"https://localhost:{port}/hook",
            "caBundle": base64.b64encode(trusted.pem).decode(),
        },
        "rules": [
            {
                "operations": ["CREATE"],
                "apiGroups": [""],
                "apiVersions": ["v1"],
                "resources": ["configmaps"],
            }
        ],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    try:
        async with api_server(Schema.load(), clock=SystemClock()) as api:
            path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
            await api.made(path, {"metadata": {"name": "h"}, "webhooks": [hook]})
            body = {"metadata": {"name": "x"}}
            return await api.post("/api/v1/namespaces/default/configmaps", body), asked
    finally:
        await server.stop(0.1)
