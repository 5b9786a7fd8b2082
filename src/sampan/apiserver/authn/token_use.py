"""Whether pods fetch a new token in time.

Job: count tokens that are used before and after they should have been replaced; note the latter.
"""

from sampan.apiserver.audit.audit_log import note
from sampan.apiserver.authn.tokens import Claims
from sampan.apiserver.authn.user import User
from sampan.core.metrics import Metrics

STALE = "authentication.k8s.io/stale-token"


class TokenUse:
    def __init__(self, metrics: Metrics | None) -> None:
        self._stale = self._valid = None
        if metrics is not None:
            self._stale = metrics.counter(
                "serviceaccount_stale_tokens_total",
                "Cumulative stale projected service account tokens used",
            )
            self._valid = metrics.counter(
                "serviceaccount_valid_tokens_total",
                "Cumulative valid projected service account tokens used",
            )

    def noted(self, claims: Claims, user: User, now: float) -> None:
        if not claims.warn_after:
            return
        late = int(now) - claims.warn_after
        if late <= 0:
            if self._valid is not None:
                self._valid.add()
            return
        note(STALE, f"subject: {user.name}, seconds after warning threshold: {late}")
        if self._stale is not None:
            self._stale.add()
