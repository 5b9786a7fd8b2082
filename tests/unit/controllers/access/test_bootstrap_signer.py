from base64 import b64encode

from sampan.controllers.access.bootstrap_signer import plan, signature
from sampan.controllers.actions import NOTHING

# What an original signed it with.
CONTENT = "content of it\n"
SIGNED = "eyJhbGciOiJIUzI1NiIsImtpZCI6ImFiY2RlZiJ9..6aWRah14svF9juAgVzjWn-p7R4CnyQxMvjRW9rnEQ4I"
NOW = 1_700_000_000.0


def token(token_id="abcdef", name=None, namespace="kube-system", **data):
    words = {
        "token-id": token_id, "token-secret": "0123456789abcdef",
        "usage-bootstrap-signing": "true", **data,
    }  # fmt: skip
    meta = {"name": name or f"bootstrap-token-{token_id}", "namespace": namespace}
    return {
        "type": "bootstrap.kubernetes.io/token",
        "metadata": meta,
        "data": {key: b64encode(text.encode()).decode() for key, text in words.items()},
    }


def info(**data):
    meta = {"name": "cluster-info", "namespace": "kube-public", "resourceVersion": "1"}
    return {"metadata": meta, "data": {"kubeconfig": CONTENT, **data}}


def signed_by(*tokens, **data):
    [update] = plan(info(**data), tokens, NOW).actions
    return update.obj["data"]


def test_a_signature_is_what_the_original_writes():
    assert signature(CONTENT, "abcdef", "0123456789abcdef") == SIGNED


def test_each_token_signs_and_what_others_signed_goes():
    found = signed_by(token(), **{"jws-kubeconfig-gone00": "x..y", "other": "z"})
    assert found == {"kubeconfig": CONTENT, "other": "z", "jws-kubeconfig-abcdef": SIGNED}


def test_what_is_signed_stays():
    assert plan(info(**{"jws-kubeconfig-abcdef": SIGNED}), [token()], NOW) == NOTHING
    assert plan({"metadata": {}, "data": {}}, [token()], NOW) == NOTHING


def test_tokens_that_may_not_sign():
    for bad in (
        token("abcdef", name="bootstrap-token-123456"),
        token("abcdef", name="mine"),
        token("toolong"),
        token(namespace="default"),
        token(**{"usage-bootstrap-signing": "yes"}),
        token(**{"token-secret": ""}),
        token(expiration="2020-01-01T00:00:00Z"),
        token(expiration="soon"),
        {**token(), "type": "Opaque"},
    ):
        assert plan(info(), [bad], NOW) == NOTHING, bad
    assert "jws-kubeconfig-abcdef" in signed_by(token(expiration="2030-01-01T00:00:00Z"))
