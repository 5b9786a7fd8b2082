from hypothesis import given
from hypothesis import strategies as st

from sampan.api.objects import time_text
from sampan.core.certificates.pem_blocks import pem_text
from sampan.kubelet.volumes.certificate_states import (
    Asked,
    Held,
    Refused,
    next_due,
    request_of,
    step,
)

ASKED = Asked("req-1", "key", 1000.0)
HELD = Held("key", "chain", 500.0, 5000.0)
RENEWING = Held("key", "chain", 500.0, 5000.0, next=Asked("req-2", "other", 1100.0))


def request(kind="", **status):
    conditions = [{"type": kind, "status": "True", "reason": "R", "message": "m"}] if kind else []
    meta = {"name": "req", "namespace": "shop"}
    return {"metadata": meta, "status": {"conditions": conditions, **status}}


def issued(text=""):
    times = {"beginRefreshAt": time_text(2000.0), "notAfter": time_text(9000.0)}
    return request("Issued", certificateChain=text or pem_text(b"leaf"), **times)


def test_from_nothing_a_request_is_made_and_waited_for():
    assert step(None, None, 0.0, 0.0).asks
    assert step(ASKED, None, 999.0, 0.0).state == ASKED
    assert step(ASKED, request(), 2000.0, 0.0).state == ASKED
    gone = step(ASKED, None, 1000.0, 0.0)
    assert (gone.state, gone.asks) == (None, True)


def test_what_is_issued_is_held_without_what_stands_between_its_blocks():
    text = f"noise\n{pem_text(b'leaf')}noise\n{pem_text(b'ca')}"
    held = step(ASKED, issued(text), 10.0, 7.0).state
    assert held == Held("key", pem_text(b"leaf") + pem_text(b"ca"), 2007.0, 9000.0)
    assert next_due(held, 10.0) == 2007.0


def test_a_refusal_is_for_good_and_told_in_the_original_s_odd_words():
    for kind, word, said in (("Denied", "denied", "was denied"), ("Failed", "failed", "failed")):
        found = step(ASKED, request(kind), 0.0, 0.0)
        assert found.state == Refused(word, "R", "m")
        text = f'PodCertificateRequest shop/req {said}, reason="R", message="m"'
        assert found.warned_of == ((kind, f"R%!(EXTRA string={text})"),)
        assert step(found.state, issued(), 9e9, 0.0).state == found.state
        assert next_due(found.state, 0.0) is None


def test_it_is_renewed_in_time_and_the_old_one_is_kept_until_then():
    assert not step(HELD, None, 499.0, 0.0).asks
    assert step(HELD, None, 500.0, 0.0).asks
    waiting = step(RENEWING, request(), 600.0, 0.0)
    assert (waiting.state, waiting.asks) == (RENEWING, False)
    assert step(RENEWING, issued(), 600.0, 0.0).state.key == "other"
    gone = step(RENEWING, None, 1100.0, 0.0)
    assert (gone.state.next, gone.asks) == (None, True)


def test_what_is_overdue_or_has_expired_is_told_once():
    late = step(RENEWING, request(), 1101.0, 0.0)
    assert [reason for reason, _ in late.warned_of] == ["CertificateOverdueForRefresh"]
    assert step(late.state, request(), 1102.0, 0.0).warned_of == ()
    over = step(late.state, request(), 5001.0, 0.0)
    assert [reason for reason, _ in over.warned_of] == ["CertificateExpired"]
    assert next_due(over.state, 5001.0) is None


STATES = st.sampled_from([None, ASKED, HELD, RENEWING, Refused("denied", "", "")])
REQUESTS = st.sampled_from([None, request(), issued(), request("Denied"), request("Failed")])


MOMENTS = st.sampled_from([500.0, 1000.0, 1100.0, 2000.0, 5000.0, 9000.0])


@given(STATES, REQUESTS, st.floats(0.0, 10_000.0) | MOMENTS)
def test_whoever_waits_is_looked_at_again_and_not_at_once(state, found, now):
    """No state is due in the past for ever: the node would do nothing else."""
    after = step(state, found, now, 0.0)
    if after.asks:
        return
    due = next_due(after.state, now)
    assert due is None or due > now or step(after.state, found, now, 0.0) != after
    if request_of(after.state) and found is None:
        assert due is not None
