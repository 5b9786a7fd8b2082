"""Why a signer refuses a request, in upstream's words."""

import ipaddress

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from sampan.controllers.access.pkcs10 import refusal

CLIENT = frozenset({"key encipherment", "digital signature", "client auth"})
SERVING = frozenset({"key encipherment", "digital signature", "server auth"})
KEY = ec.generate_private_key(ec.SECP256R1())
DNS, IP = x509.DNSName("n1"), x509.IPAddress(ipaddress.ip_address("10.0.0.1"))
EMAIL, URI = x509.RFC822Name("a@example.com"), x509.UniformResourceIdentifier("http://x")


def request(*names, name="system:node:n1", organization="system:nodes"):
    subject = [
        x509.NameAttribute(NameOID.COMMON_NAME, name),
        x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization),
    ]
    built = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(subject))
    if names:
        built = built.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return built.sign(KEY, hashes.SHA256())


@pytest.mark.parametrize(
    ("signer", "asked", "usages", "why"),
    [
        ("kube-apiserver-client", request(), CLIENT, None),
        ("kube-apiserver-client", request(), CLIENT | {"server auth"},
         "invalid usage for client certificate: server auth"),
        ("kube-apiserver-client", request(), frozenset({"digital signature"}),
         "missing required usage for client certificate: client auth"),
        ("kube-apiserver-client-kubelet", request(), CLIENT, None),
        ("kube-apiserver-client-kubelet", request(), CLIENT - {"key encipherment"}, None),
        ("kube-apiserver-client-kubelet", request(organization="x"), CLIENT,
         "subject organization is not system:nodes"),
        ("kube-apiserver-client-kubelet", request(name="bob"), CLIENT,
         "subject common name does not begin with system:node:"),
        ("kube-apiserver-client-kubelet", request(DNS), CLIENT,
         "DNS subjectAltNames are not allowed"),
        ("kube-apiserver-client-kubelet", request(IP), CLIENT,
         "IP subjectAltNames are not allowed"),
        ("kube-apiserver-client-kubelet", request(), SERVING,
         "usages did not match [client auth digital signature key encipherment]"),
        ("kubelet-serving", request(DNS, IP), SERVING, None),
        ("kubelet-serving", request(), SERVING, "DNS or IP subjectAltName is required"),
        ("kubelet-serving", request(DNS, EMAIL), SERVING,
         "Email subjectAltNames are not allowed"),
        ("kubelet-serving", request(DNS, URI), SERVING, "URI subjectAltNames are not allowed"),
        ("kubelet-serving", request(DNS), CLIENT,
         "usages did not match [digital signature key encipherment server auth]"),
    ],
)  # fmt: skip
def test_a_refusal_says_why(signer, asked, usages, why):
    assert refusal(f"kubernetes.io/{signer}", asked, usages) == why
