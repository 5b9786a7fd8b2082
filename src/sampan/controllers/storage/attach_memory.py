"""What the attach-detach controller remembers between turns.

Job: since when a detach is asked for, what is being detached, what pods were told already.
Invariant: what it has told is bounded; whoever is forgotten is told once more.
Owner: the controller; after a start again it begins anew, as upstream's does.
"""

from collections.abc import Hashable

from sampan.core.bounded import Recent

_MOST = 10_000
# Something that stays wrong is told again, as upstream's back-off ends there.
REMIND_SECONDS = 122.0


class AttachMemory:
    def __init__(self) -> None:
        self._asked: Recent[str, float] = Recent(_MOST)  # attachment → since when
        self._detaching: set[str] = set()  # attachments whose deletion was decided
        self._told: Recent[Hashable, float] = Recent(_MOST)

    def asked(self, attachment: str, now: float) -> float:
        """Since when it is to go."""
        since = self._asked.get(attachment)
        if since is None:
            since = self._asked[attachment] = now
        return since

    def wanted(self, attachment: str) -> None:
        """It is to stay, whatever was said before."""
        self._asked.pop(attachment, None)
        self._detaching.discard(attachment)

    def detaches(self, attachment: str) -> None:
        self._detaching.add(attachment)

    def is_detaching(self, attachment: str) -> bool:
        return attachment in self._detaching

    def gone(self, attachment: str) -> None:
        self.wanted(attachment)

    def is_news(self, what: Hashable, now: float) -> bool:
        """Was it not said lately?"""
        before = self._told.get(what)
        if before is not None and now < before + REMIND_SECONDS:
            return False
        self._told[what] = now
        return True
