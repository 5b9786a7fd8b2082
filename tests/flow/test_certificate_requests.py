"""Who may say what about a CertificateSigningRequest, through the whole server."""

import asyncio
import base64
import datetime

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from sampan.apiserver.authn.certificate import user_of
from sampan.client.delegated_access import caller_of
from sampan.controllers.access import csr_requests, pkcs10
from tests.support import virtual_time
from tests.support.generators.api_requests import MERGE, api_server
from tests.support.worlds.control_plane import published_schema

CSRS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
PEM = base64.b64encode(b"-----BEGIN CERTIFICATE-----").decode()


def run(test):
    async def main():
        async with api_server(published_schema()) as api:
            await test(api)

    virtual_time.run(main())


def signed(*names):
    key = ec.generate_private_key(ec.SECP256R1())
    parts = [x509.NameAttribute(NameOID.COMMON_NAME, name) for name in names]
    subject = x509.Name([*parts, x509.NameAttribute(NameOID.ORGANIZATION_NAME, "system:nodes")])
    return x509.CertificateSigningRequestBuilder().subject_name(subject).sign(key, hashes.SHA256())


def csr(name, request):
    pem = request.public_bytes(serialization.Encoding.PEM)
    spec = {
        "request": base64.b64encode(pem).decode(),
        "signerName": "example.com/any",
        "usages": ["client auth"],
    }
    return {"metadata": {"name": name}, "spec": spec}


def verdict(kind, **more):
    return {"type": kind, "status": "True", "reason": "r", **more}


def test_a_verdict_and_a_certificate_have_a_door_each():
    """An attack: whoever may approve signs as well, or whoever may sign approves."""

    async def test(api):
        await api.made(CSRS, csr("a", signed("x")))
        path = f"{CSRS}/a"
        status = {"status": {"conditions": [verdict("Approved")]}}
        for decided in ("Approved", "Denied"):
            got = await api.patch(
                f"{path}/status", {"status": {"conditions": [verdict(decided)]}}, MERGE
            )
            assert got.status == 422
            assert f'updates may not add a condition of type "{decided}"' in got.message
        both = {"status": {**status["status"], "certificate": PEM}}
        got = await api.patch(f"{path}/approval", both, MERGE)
        assert got.status == 200
        assert [one["type"] for one in got.obj["status"]["conditions"]] == ["Approved"]
        assert "certificate" not in got.obj["status"]
        got = await api.patch(f"{path}/status", {"status": {"certificate": PEM}}, MERGE)
        assert (got.status, got.obj["status"]["certificate"]) == (200, PEM)

    run(test)


@pytest.mark.parametrize("door", ["approval", "status"])
def test_a_verdict_is_final(door):
    async def test(api):
        await api.made(CSRS, csr("a", signed("x")))
        path = f"{CSRS}/a"
        denied = {"status": {"conditions": [verdict("Denied")]}}
        assert (await api.patch(f"{path}/approval", denied, MERGE)).status == 200
        for conditions in ([], [verdict("Approved")], [verdict("Denied"), verdict("Approved")]):
            given = {"status": {"conditions": conditions}}
            got = await api.patch(f"{path}/{door}", given, MERGE)
            assert got.status == 422, conditions
        other = {"status": {"conditions": [verdict("Denied", message="no, because")]}}
        changed = await api.patch(f"{path}/status", other, MERGE)
        assert changed.status == 200
        assert "message" not in changed.obj["status"]["conditions"][0], "a verdict stays as it is"

    run(test)


def test_a_condition_has_both_its_times():
    """As recorded: a new one is dated, one that is there already keeps its transition."""

    async def test(api):
        await api.made(CSRS, csr("a", signed("x")))
        path = f"{CSRS}/a"
        denied = {"status": {"conditions": [verdict("Denied")]}}
        [first] = (await api.patch(f"{path}/approval", denied, MERGE)).obj["status"]["conditions"]
        assert first["lastUpdateTime"] == first["lastTransitionTime"]
        await asyncio.sleep(10)
        failed = {"status": {"conditions": [verdict("Denied"), verdict("Failed")]}}
        answer = await api.patch(f"{path}/status", failed, MERGE)
        same, second = answer.obj["status"]["conditions"]
        assert same == first
        assert second["lastUpdateTime"] == second["lastTransitionTime"] > first["lastUpdateTime"]
        again = {"status": {"conditions": [verdict("Denied", message="no"), second]}}
        answer = await api.patch(f"{path}/approval", again, MERGE)
        changed = answer.obj["status"]["conditions"][0]
        assert changed["lastTransitionTime"] == first["lastTransitionTime"]
        assert changed["lastUpdateTime"] > first["lastUpdateTime"]

    run(test)


def test_a_certificate_is_given_once():
    async def test(api):
        await api.made(CSRS, csr("a", signed("x")))
        path = f"{CSRS}/a/status"
        assert (await api.patch(path, {"status": {"certificate": PEM}}, MERGE)).status == 200
        other = base64.b64encode(b"-----BEGIN CERTIFICATE----- ").decode()
        for given in (other, None):
            got = await api.patch(path, {"status": {"certificate": given}}, MERGE)
            assert "updates may not modify existing certificate content" in got.message

    run(test)


def test_who_has_several_common_names_is_nobody():
    """One reader takes the first, another the last: so neither does."""
    request = signed("nobody", "system:node:n1")
    usages = frozenset({"client auth", "digital signature"})
    for signer in ("kubernetes.io/legacy-unknown", "kubernetes.io/kube-apiserver-client-kubelet"):
        why = pkcs10.refusal(signer, request, usages)
        assert why == "the subject has more than one common name"
    key = ec.generate_private_key(ec.SECP256R1())
    now = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(request.subject)
        .issuer_name(request.subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now)
        .not_valid_after(now + datetime.timedelta(days=1))
        .sign(key, hashes.SHA256())
        .public_bytes(serialization.Encoding.DER)
    )
    assert user_of(certificate).name == ""
    assert caller_of(certificate).user == ""


def test_the_legacy_signer_takes_no_new_requests():
    async def test(api):
        made = csr("a", signed("x"))
        made["spec"]["signerName"] = "kubernetes.io/legacy-unknown"
        got = await api.post(CSRS, made)
        assert got.status == 422
        assert "the legacy signerName is not allowed via this API version" in got.message

    run(test)


@pytest.mark.parametrize("signer", csr_requests.SIGNERS)
@pytest.mark.parametrize("organizations", [["system:masters"], ["system:nodes", "system:masters"]])
def test_nobody_signs_for_the_masters(signer, organizations):
    """Of whichever signer: one that was stored by an earlier version, too."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = [x509.NameAttribute(NameOID.COMMON_NAME, "system:node:n1")]
    name += [x509.NameAttribute(NameOID.ORGANIZATION_NAME, each) for each in organizations]
    builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(name))
    for usages in ({"client auth", "digital signature"}, {"server auth", "digital signature"}):
        why = pkcs10.refusal(signer, builder.sign(key, hashes.SHA256()), frozenset(usages))
        assert why == f"use of {signer} signer with system:masters group is not allowed"
