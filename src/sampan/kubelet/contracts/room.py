"""Room for what a pod names: a few kilobytes of a pod can ask for petabytes.

Job: count what environments, arguments and files are made of, and refuse what is too much.
Invariant: nothing is made that was not taken from the room before.
"""


class Room:
    def __init__(self, most_bytes: int, refusal: Exception) -> None:
        """`refusal` is raised when there is none left."""
        self._left, self._refusal = most_bytes, refusal

    def take(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise self._refusal
