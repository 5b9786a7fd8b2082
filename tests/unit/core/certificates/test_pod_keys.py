import pytest
from cryptography.hazmat.primitives.asymmetric import dsa, ec

from sampan.api.validation.access.signer_names import KEY_TYPES
from sampan.core.certificates import pod_keys


@pytest.mark.slow
@pytest.mark.parametrize("kind", KEY_TYPES)
def test_whoever_has_a_key_proves_it_in_both_forms(kind):
    key = pod_keys.new_key(kind)
    public = pod_keys.read_public_key(pod_keys.public_bytes(key.public_key()))
    assert pod_keys.key_trouble(public, "any") == (None, "")
    assert pod_keys.is_proven(public, "uid", pod_keys.proof_of(key, "uid"))
    assert not pod_keys.is_proven(public, "another", pod_keys.proof_of(key, "uid"))
    request = pod_keys.read_request(pod_keys.stub_request(key))
    assert request.is_signature_valid
    assert pod_keys.public_bytes(request.public_key()) == pod_keys.public_bytes(public)
    assert "BEGIN PRIVATE KEY" in pod_keys.key_pem(key)


def test_the_key_of_another_proves_nothing():
    mine, other = (pod_keys.new_key("ECDSAP256") for _ in range(2))
    assert not pod_keys.is_proven(mine.public_key(), "uid", pod_keys.proof_of(other, "uid"))


def test_other_keys_are_told_apart():
    with pytest.raises(ValueError, match='unknown key type "X"'):
        pod_keys.new_key("X")
    assert pod_keys.read_public_key(b"x") is None
    assert pod_keys.read_request(b"x") is None
    curve = ec.generate_private_key(ec.SECP224R1()).public_key()
    assert pod_keys.key_trouble(curve, "A")[0] == "curve P-224"
    old = dsa.generate_private_key(1024).public_key()
    shown, why = pod_keys.key_trouble(old, "A")
    assert shown is None
    assert why.startswith("unknown public key type")
    assert not pod_keys.is_proven(old, "uid", b"")
