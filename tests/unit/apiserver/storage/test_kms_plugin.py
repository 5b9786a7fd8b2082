"""The message in which a value is stored, and what is refused of a plugin."""

import pytest

from sampan.apiserver.storage.encryption import transformers
from sampan.apiserver.storage.encryption_schemes import BadEncryption
from sampan.apiserver.storage.kms_plugin import (
    EncryptedObject,
    KmsFailure,
    Sealed,
    check_sealed,
    decode_object,
)

SEALED = Sealed(b"dek", "key", {"a.example.org": b"1", "b.example.org": b""})


def test_an_object_is_read_as_it_was_written():
    for kind in (0, 1):
        made = EncryptedObject(b"data", SEALED, kind)
        assert decode_object(made.encode()) == made


@pytest.mark.parametrize("text", [b"\xff", b"\x0a\x05ab", b"\x0a\x01a", b"\x0d\x00\x00\x00\x00"])
def test_what_is_no_object_is_refused(text):
    with pytest.raises(KmsFailure):
        decode_object(text)


@pytest.mark.parametrize(
    ("sealed", "why"),
    [
        (Sealed(b"", "key", {}), "encrypted dek source is empty"),
        (Sealed(b"x" * 1025, "key", {}), "exceeds the max size of 1024"),
        (Sealed(b"x", "", {}), "keyID is empty"),
        (Sealed(b"x", "k" * 1025, {}), "keyID is 1025 bytes"),
        (Sealed(b"x", "k", {"a.b": b"x" * 33000}), "total size of annotations"),
        (Sealed(b"x", "k", {"a": b""}), "at least two segments"),
        (Sealed(b"x", "k", {"a.b/c": b""}), "lowercase RFC 1123 subdomain"),
    ],
)
def test_answers_are_judged(sealed, why):
    with pytest.raises(KmsFailure, match=why):
        check_sealed(sealed)


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"apiVersion": "v1"}, "only apiVersion v2"),
        ({"name": ""}, "invalid kms provider name"),
        ({"name": "a:b"}, "invalid kms provider name"),
        ({"endpoint": "tcp://a"}, "no unix socket"),
        ({"cachesize": 1}, "cachesize is not supported"),
        ({"timeout": "0s"}, "positive"),
        ({"timeout": "soon"}, "no duration"),
    ],
)
def test_configurations_that_are_refused(changed, why):
    kms = {"apiVersion": "v2", "name": "vault", "endpoint": "unix:///run/kms.sock", **changed}
    rows = [{"resources": ["secrets"], "providers": [{"kms": kms}]}]
    with pytest.raises(BadEncryption, match=why):
        transformers({"kind": "EncryptionConfiguration", "resources": rows})
