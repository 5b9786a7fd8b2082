"""Where one pod certificate stands between asked for, held and renewed. Pure.

Job: fold what became of the request, and the time, into the next state; say what the pod is to be
    warned_of, and whether another request is to be made.
Invariant: a certificate that is held is kept until the next one is issued; a refusal is for good.
Owner: PodCertificates; nobody else replaces a state.
"""

from dataclasses import replace

from sampan.api.objects import Obj, key_of, seconds_of, status_of
from sampan.core.certificates.pem_blocks import pem_blocks, pem_text
from sampan.core.fast_dataclass import dataclass

# As podcertificatemanager.go: a request that nobody has seen for so long is gone.
ABANDONED_SECONDS = 600.0
OVERDUE_SECONDS = 600.0
JITTER_SECONDS = 300.0
_OVERDUE = ("CertificateOverdueForRefresh", "PodCertificate refresh overdue")
_EXPIRED = ("CertificateExpired", "PodCertificate expired")

PodWarning = tuple[str, str]  # reason and message of a warning


@dataclass(frozen=True, slots=True)
class Asked:
    request: str  # its name
    key: str  # PEM
    abandoned_at: float


@dataclass(frozen=True, slots=True)
class Refused:
    word: str  # denied or failed
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Held:
    key: str
    chain: str
    refresh_at: float
    ends: float
    warned_of: frozenset[str] = frozenset()
    next: Asked | None = None


State = Asked | Refused | Held


@dataclass(frozen=True, slots=True)
class Next:
    state: State | None  # None: nothing was asked for
    warned_of: tuple[PodWarning, ...] = ()
    asks: bool = False


def request_of(state: State | None) -> str:
    """The name of the request that is waited for; empty: none is."""
    asked = state.next if isinstance(state, Held) else state
    return asked.request if isinstance(asked, Asked) else ""


def step(state: State | None, request: Obj | None, now: float, jitter_seconds: float) -> Next:
    """`request`: the one that is waited for, as far as it was seen."""
    if state is None:
        return Next(None, asks=True)
    if isinstance(state, Refused):
        return Next(state)
    if isinstance(state, Asked):
        if request is None and now >= state.abandoned_at:
            return Next(None, asks=True)
        return _settled(state.key, request, jitter_seconds) or Next(state)
    if state.next is None:
        return Next(state) if now < state.refresh_at else _warned(state, now, asks=True)
    if request is None and now >= state.next.abandoned_at:
        return _warned(replace(state, next=None), now, asks=True)
    return _settled(state.next.key, request, jitter_seconds) or _warned(state, now)


def next_due(state: State | None, now: float) -> float | None:
    """When it is to be looked at again, if nothing happens before."""
    if isinstance(state, Asked):
        return state.abandoned_at if now < state.abandoned_at else None
    if not isinstance(state, Held):
        return None
    if state.next is None:
        return state.refresh_at
    warned = {_OVERDUE[0]: state.refresh_at + OVERDUE_SECONDS, _EXPIRED[0]: state.ends}
    moments = [moment for reason, moment in warned.items() if reason not in state.warned_of]
    moments += [state.next.abandoned_at] if now < state.next.abandoned_at else []
    return min(moments, default=None)


def _settled(key: str, request: Obj | None, jitter_seconds: float) -> Next | None:
    for condition in status_of(request or {}).get("conditions") or ():
        kind = condition.get("type")
        reason, message = condition.get("reason") or "", condition.get("message") or ""
        if kind in ("Denied", "Failed"):
            assert request is not None
            word = kind.lower()
            said = "was denied" if word == "denied" else "failed"
            text = (
                f"PodCertificateRequest {key_of(request)} {said}, "
                f'reason="{reason}", message="{message}"'
            )
            # As upstream, which takes the reason for the form of the message.
            shown = f"{reason}%!(EXTRA string={text})"
            return Next(Refused(word, reason, message), ((kind, shown),))
        if kind == "Issued":
            status = status_of(request or {})
            chain = "".join(
                pem_text(block.data) for block in pem_blocks(status["certificateChain"].encode())
            )
            refresh_at = seconds_of(status["beginRefreshAt"]) + jitter_seconds
            return Next(Held(key, chain, refresh_at, seconds_of(status["notAfter"])))
    return None


def _warned(state: Held, now: float, *, asks: bool = False) -> Next:
    due = [_OVERDUE] if now >= state.refresh_at + OVERDUE_SECONDS else []
    due += [_EXPIRED] if now >= state.ends else []
    new = tuple(warning for warning in due if warning[0] not in state.warned_of)
    warned_of = state.warned_of | {reason for reason, _ in new}
    return Next(replace(state, warned_of=warned_of), new, asks)
