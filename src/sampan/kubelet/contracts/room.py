"""Size bounds of a pod: environments, arguments and files that a few kilobytes can ask for.

Job: count what environments, arguments and files are made of, and refuse what is too much.
Invariant: nothing is made that was not taken from the room before.
Invariant: each refusal is an error of its own: one that is raised again keeps what every earlier
    frame had made.
"""

from collections.abc import Callable


class Room:
    def __init__(self, most_bytes: int, refusal: Callable[[], Exception]) -> None:
        """What `refusal` makes is raised when there is none left."""
        self._left, self._refusal = most_bytes, refusal

    @property
    def is_full(self) -> bool:
        return self._left < 0

    def take(self, size: int) -> None:
        self._left -= size
        if self.is_full:
            raise self._refusal()
