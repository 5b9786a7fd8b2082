"""CertificateSigningRequests: what their strategy does to verdicts.

Job: date the conditions of /approval and /status; keep verdicts as they are where the status is
    written.
Invariant: a stored condition has both its times, so that the cleaner knows how old a verdict is.
"""

from collections import Counter
from dataclasses import replace

from sampan.api.objects import Obj, status_of, time_text
from sampan.apiserver.registry.strategy import Strategy, path_getter
from sampan.core.clock import Clock

_VERDICTS = ("Approved", "Denied")
STRATEGY = Strategy(fields={"spec.signerName": path_getter("spec", "signerName")})


def dating_strategy(clock: Clock) -> Strategy:
    def prepare_status(new: Obj, old: Obj) -> None:
        _keep_verdicts(new, old)
        date_conditions(new, old, clock.now())

    return replace(STRATEGY, prepare_status=prepare_status)


def date_conditions(new: Obj, old: Obj, now: float) -> None:
    """Those that say it keep their times; a status that was there before keeps its transition."""
    conditions = _conditions_of(new)
    if not conditions:
        return
    since = {
        (condition.get("type"), condition.get("status")): condition.get("lastTransitionTime")
        for condition in reversed(_conditions_of(old))
        if condition.get("lastTransitionTime")
    }
    stamp = time_text(now)
    new["status"] = {
        **status_of(new),
        "conditions": [
            {
                **condition,
                "lastUpdateTime": condition.get("lastUpdateTime") or stamp,
                "lastTransitionTime": condition.get("lastTransitionTime")
                or since.get((condition.get("type"), condition.get("status")))
                or stamp,
            }
            for condition in conditions
        ],
    }


def _keep_verdicts(new: Obj, old: Obj) -> None:
    """As they were; where their number differs, validation refuses it."""
    before: dict[str, list[Obj]] = {kind: [] for kind in _VERDICTS}
    for condition in _conditions_of(old):
        before.get(condition["type"], []).append(condition)
    now = Counter(condition.get("type") for condition in _conditions_of(new))
    kept = {kind: iter(found) for kind, found in before.items() if len(found) == now[kind]}
    conditions = [
        next(kept[condition["type"]]) if condition.get("type") in kept else condition
        for condition in _conditions_of(new)
    ]
    if conditions:
        new["status"] = {**status_of(new), "conditions": conditions}


def _conditions_of(csr: Obj) -> list[Obj]:
    return status_of(csr).get("conditions") or []
