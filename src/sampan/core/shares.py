"""Limits of what runs at once: in total, and per key.

Job: count what is under way by who has it, and say whether one more may begin. Pure.
Invariant: who has taken nothing, or given all back, takes no memory.
"""


class Shares:
    def __init__(self, in_all: int, of_each: int) -> None:
        self._in_all, self._of_each = in_all, of_each
        self._taken: dict[str, int] = {}
        self.taken = 0

    def take(self, who: str) -> bool:
        """False: there is none left, for anybody or for them. What was taken is given back."""
        mine = self._taken.get(who, 0)
        if self.taken >= self._in_all or mine >= self._of_each:
            return False
        self._taken[who] = mine + 1
        self.taken += 1
        return True

    def give_back(self, who: str) -> None:
        mine = self._taken[who] - 1
        if mine:
            self._taken[who] = mine
        else:
            del self._taken[who]
        self.taken -= 1
