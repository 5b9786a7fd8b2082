"""Whether several watchers and lists tell of one and the same log.

Job: put together what all were told, and find where one of them lacks, doubles, reorders or changes
    something; pure. The guarantees are those that etcd's own robustness tests name.
Invariant: ordered, unique, bookmarkable: a watcher's revisions only grow, after bookmarks and
    resumptions too. Atomic: a revision is one change, the same for everybody.
Invariant: reliable, resumable: what anybody was told of a span, whoever watched that span saw.
Invariant: a list is the state of the log at its revision.
"""

from collections.abc import Iterable, Mapping, Sequence

from tests.support.history import Answered, Listed, Seen, StageEvent, Value, spans_of, unseen

Log = Mapping[int, Seen]


def log_faults(
    stories: Sequence[Sequence[StageEvent]], lists: Iterable[Listed], answered: Iterable[Answered]
) -> list[str]:
    """`lists`: of those who only listed."""
    answered = list(answered)
    faults = [fault for story in stories for fault in _order_faults(story)]
    log, differences = _log_of(stories)
    told = [Answered(one.name, one.value, 0) for one in log.values()]
    for story in stories:
        faults += unseen(story, told) + unseen(story, answered)
    listed = [told for story in stories for told in story if isinstance(told, Listed)]
    return faults + differences + _list_faults(log, _covered(stories), [*listed, *lists])


def _order_faults(story: Sequence[StageEvent]) -> list[str]:
    faults, at = [], 0
    for told in story:
        revision, first = (
            (told.value.revision, at + 1) if isinstance(told, Seen) else (told.revision, at)
        )
        if revision < first:
            faults.append(f"{told} after revision {at}")
        at = max(at, revision)
    return faults


def _log_of(stories: Iterable[Iterable[StageEvent]]) -> tuple[Log, list[str]]:
    log: dict[int, Seen] = {}
    faults = []
    for story in stories:
        for told in story:
            if isinstance(told, Seen) and log.setdefault(told.value.revision, told) != told:
                faults.append(f"{told}, and to others {log[told.value.revision]}")
    return log, faults


def _covered(stories: Iterable[Iterable[StageEvent]]) -> list[tuple[int, int]]:
    """The spans (after, upto] that somebody watched, joined."""
    joined: list[tuple[int, int]] = []
    for after, upto in sorted(span for story in stories for span in spans_of(story)):
        if joined and after <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(upto, joined[-1][1]))
        else:
            joined.append((after, upto))
    return joined


def _list_faults(log: Log, covered: Iterable[tuple[int, int]], lists: list[Listed]) -> list[str]:
    """Within each span the first list says what there was, and the log what came of it."""
    faults, revisions = [], sorted(log)
    for after, upto in covered:
        here = sorted(
            (one for one in lists if after <= one.revision <= upto), key=lambda one: one.revision
        )
        state: dict[str, Value] = dict(here[0].values) if here else {}
        changes = [revision for revision in revisions if after < revision <= upto]
        passed = 0
        for one in here:
            while passed < len(changes) and changes[passed] <= one.revision:
                faults += _change(state, log[changes[passed]])
                passed += 1
            if state != one.values:
                faults.append(f"{_different(state, one)} in a list at {one.revision}")
    return faults


def _change(state: dict[str, Value], change: Seen) -> list[str]:
    kind, name, value = change.kind, change.name, change.value
    before = state.pop(name, None)
    if kind != "DELETED":
        state[name] = value
    if (before is None) == (kind == "ADDED"):
        return []
    return [f"{change}, when there was {before}"]


def _different(state: Mapping[str, Value], listed: Listed) -> str:
    names = sorted({*state, *listed.values})
    return "; ".join(
        f"{name} is {listed.values.get(name)}, not {state.get(name)}"
        for name in names
        if listed.values.get(name) != state.get(name)
    )
