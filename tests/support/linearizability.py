"""Whether what clients were answered about one key can have happened one after the other.

Job: Wing and Gong's search with Lowe's memo, over a key that is read, created, updated and deleted
    under conditions; pure.
Each write has a value of its own, so that a state is known by its value. A write without an answer
may have been done at any time after it was sent, or never; a read without an answer says nothing.
Invariant: every answered operation takes effect at one moment between its beginning and its end.
Invariant: the revisions of a key only grow.
"""

import math
from collections.abc import Sequence

from sampan.core.fast_dataclass import dataclass

STEPS = 200_000


@dataclass(frozen=True, slots=True)
class Read:
    pass


@dataclass(frozen=True, slots=True)
class Create:
    value: int


@dataclass(frozen=True, slots=True)
class Update:
    value: int
    expected: int = 0  # the revision that it must replace; 0: whichever there is


@dataclass(frozen=True, slots=True)
class Delete:
    expected: int = 0


@dataclass(frozen=True, slots=True)
class Found:
    value: int
    revision: int


@dataclass(frozen=True, slots=True)
class Done:
    revision: int = 0  # 0: the answer does not say


@dataclass(frozen=True, slots=True)
class Missing:
    """404."""


@dataclass(frozen=True, slots=True)
class Refused:
    """409: there is one already, or another one than was expected."""


Asked = Read | Create | Update | Delete
Answer = Found | Done | Missing | Refused


@dataclass(frozen=True, slots=True)
class Operation:
    began: float
    asked: Asked
    ended: float = math.inf
    answer: Answer | None = None  # None: nobody knows


@dataclass(frozen=True, slots=True)
class State:
    value: int = 0  # 0: there is none
    revision: int = 0  # 0: nobody has said it yet
    newest: int = 0  # the newest revision of the key that was told, of any value


class Undecided(Exception):
    """The search was given up."""


def violation(operations: Sequence[Operation], steps: int = STEPS) -> str:
    """Empty where there is an order that explains all answers; raises Undecided."""
    history = sorted(
        (one for one in operations if one.answer is not None or not isinstance(one.asked, Read)),
        key=lambda one: one.began,
    )
    answered = sum(1 << at for at, one in enumerate(history) if one.answer is not None)
    stack, known = [(0, State())], {(0, State())}
    furthest = stack[0]
    while stack:
        done, state = stack.pop()
        if done & answered == answered:
            return ""
        steps -= 1
        if steps < 0:
            raise Undecided(f"{len(history)} operations")
        if (done & answered).bit_count() > (furthest[0] & answered).bit_count():
            furthest = done, state
        for at in sorted(_may_be_next(history, done), key=lambda at: -history[at].ended):
            after = applied(state, history[at])
            following = (done | 1 << at, after)
            if after is not None and following not in known:
                known.add((following[0], after))
                stack.append((following[0], after))
    return _words(history, *furthest)


def _may_be_next(history: Sequence[Operation], done: int) -> list[int]:
    """Whatever began before any answer that is still to be explained had come."""
    found, earliest = [], math.inf
    at = (~done & (done + 1)).bit_length() - 1  # all before it are done
    while at < len(history) and history[at].began <= earliest:
        if not done >> at & 1:
            found.append(at)
            earliest = min(earliest, history[at].ended)
        at += 1
    return [at for at in found if history[at].began <= earliest]


def applied(state: State, operation: Operation) -> State | None:
    """What comes of it; None where its answer would be another one."""
    answer = operation.answer
    match operation.asked:
        case Read():
            return _read(state, answer)
        case Create(value):
            if isinstance(answer, Refused):
                return state if state.value else None
            return None if state.value else _written(state, value, answer)
        case Update(value, expected):
            refusal = _refusal(state, expected)
            if refusal is None and isinstance(answer, Done | None):
                return _written(state, value, answer)
        case Delete(expected):
            refusal = _refusal(state, expected)
            if refusal is None and isinstance(answer, Done | None):
                return State(newest=state.newest)
    return state if refusal is not None and refusal == answer else None


def _read(state: State, answer: Answer | None) -> State | None:
    match answer:
        case Missing():
            return None if state.value else state
        case Found(value, revision) if value == state.value:
            if state.revision in (0, revision) and revision >= state.newest:
                return State(value, revision, revision)
    return None


def _refusal(state: State, expected: int) -> Answer | None:
    if not state.value:
        return Missing()
    return Refused() if expected and expected != state.revision else None


def _written(state: State, value: int, answer: Answer | None) -> State | None:
    match answer:
        case None:
            return State(value, 0, state.newest)
        case Done(revision) if revision > state.newest:
            return State(value, revision, revision)
    return None


def _words(history: Sequence[Operation], done: int, state: State) -> str:
    left = [str(history[at]) for at in _may_be_next(history, done)]
    explained = f"{done.bit_count()} of {len(history)} operations explained, then {state}"
    return "\n  ".join([f"{explained}, and none of", *left])
