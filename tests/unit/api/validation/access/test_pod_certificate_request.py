"""Requests of v1.35, which prove their key by a signature; those of v1.37 are compared with the
original's in tests/flow/test_recorded_certificate_kinds.py."""

import base64

from sampan.api import features
from sampan.api.features import Release
from sampan.api.resources import POD_CERTIFICATE_REQUESTS
from sampan.api.validation import validate_create, validate_update
from sampan.core.certificates import pod_keys


def request(**changes):
    key = pod_keys.new_key("ECDSAP256")
    spec = {
        "signerName": "example.com/pods", "podName": "p", "podUID": "u", "nodeName": "n",
        "nodeUID": "v", "serviceAccountName": "a", "serviceAccountUID": "w",
        "maxExpirationSeconds": 3600,
        "pkixPublicKey": encoded(pod_keys.public_bytes(key.public_key())),
        "proofOfPossession": encoded(pod_keys.proof_of(key, "u")),
    }  # fmt: skip
    meta = {"name": "r", "namespace": "default", "resourceVersion": "1"}
    return {"metadata": meta, "spec": {**spec, **changes}}


def encoded(data):
    return base64.b64encode(data).decode()


def errors_of(**changes):
    return [str(one) for one in validate_create(POD_CERTIFICATE_REQUESTS, request(**changes))]


def test_a_key_is_proven_for_the_pod_that_it_is_for():
    assert errors_of() == []
    unproven = "spec.proofOfPossession: Invalid value: could not verify proof-of-possession"
    assert errors_of(podUID="x") == [f"{unproven} signature"]
    assert errors_of(proofOfPossession=encoded(b"x")) == [f"{unproven} signature"]
    [wrong] = errors_of(pkixPublicKey=encoded(b"x"))
    assert wrong.endswith("must be a valid PKIX-serialized public key")
    [long] = errors_of(pkixPublicKey=encoded(b"x" * 11000))
    assert long == "spec.pkixPublicKey: Too long: may not be more than 10240 bytes"


def test_newer_versions_take_one_form_of_proof():
    with features.used(Release("1.36")):
        assert errors_of() == []
        [wrong] = errors_of(stubPKCS10Request=encoded(b"x"))
        assert "exactly one of (stubPKCS10Request) or" in wrong


def test_what_was_asked_for_stays():
    """In Go's form of the type that the version has."""
    old, new = request(), request()
    new["spec"] = {**old["spec"], "podName": "q"}
    for minor in ("1.35", "1.36"):
        with features.used(Release(minor)):
            [wrong] = map(str, validate_update(POD_CERTIFICATE_REQUESTS, new, old))
        assert '"PodName":"q"' in wrong
        assert ("StubPKCS10Request" in wrong) is (minor == "1.36")
