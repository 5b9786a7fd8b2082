"""Which features of Kubernetes are on in this process, and of which version it is.

Job: answer `enabled(GATE)` and `changed(NAME)`; hold the release that whoever starts a process has
    chosen.
Invariant: code asks for a gate, never for a version. A gate that is asked for is one that
    data/gates.json says `both` of, and the other way round.
Owner: cmd/ and the processes of the test kit, which choose before the first object is read;
    everybody else asks. One process is of one version, as upstream's programs are
    (docs/decisions/0036).
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field
from typing import Any, TypeVar

from sampan.api.feature_gates import Gate, Settled, number_of, settle
from sampan.core.fast_dataclass import dataclass
from sampan.core.files.packaged_data import packaged_data
from sampan.version import DEFAULT_MINOR, git_version

Derived = TypeVar("Derived")


@dataclass(frozen=True, slots=True)
class Release:
    """What is chosen."""

    minor: str = DEFAULT_MINOR  # whose types, texts and number
    emulated: str = ""  # whose features and APIs, where they are not those of `minor`
    gates: Mapping[str, bool] = field(default_factory=dict)
    runtime_config: Mapping[str, str] = field(default_factory=dict)  # which APIs are served

    @property
    def shown(self) -> str:
        """The minor version whose features and APIs there are."""
        return self.emulated or self.minor

    @property
    def git_version(self) -> str:
        return git_version(self.minor)


class _InEffect:
    """Nothing is read before somebody asks."""

    def __init__(self) -> None:
        self.release = Release()
        self.settled: Settled | None = None
        self.on: frozenset[str] | None = None
        self.derived: dict[Callable[[Release], Any], Any] = {}

    def read(self) -> Settled:
        if self.settled is None:
            chosen = self.release
            self.settled = settle(chosen.minor, chosen.gates, chosen.emulated)
            self.on = self.settled.on
        return self.settled


_in_effect = _InEffect()


def enabled(gate: str) -> bool:
    on = _in_effect.on
    return gate in (_in_effect.read().on if on is None else on)


def all_enabled() -> frozenset[str]:
    """Every gate that is on, for tables that name gates."""
    return _in_effect.read().on


def changed(name: str) -> bool:
    """Whether something that has no gate is already as data/changes.json says."""
    return of_release(_changes)[name]


def _changes(chosen: Release) -> dict[str, bool]:
    rows = packaged_data("changes")["changes"]
    shown = number_of(chosen.shown)
    return {name: number_of(row["since"]) <= shown for name, row in rows.items()}


def release() -> Release:
    return _in_effect.release


def known() -> Mapping[str, Gate]:
    """Every gate of the release."""
    return _in_effect.read().gates


def use(chosen: Release) -> Settled:
    """From now on. Raises BadFeatureGates, and then nothing has changed."""
    settled = settle(chosen.minor, chosen.gates, chosen.emulated)
    _in_effect.release, _in_effect.settled, _in_effect.on = chosen, settled, settled.on
    _in_effect.derived.clear()
    return settled


def of_release(worked_out: Callable[[Release], Derived]) -> Derived:
    """What a function makes of the release, made once."""
    known = _in_effect.derived
    if worked_out not in known:
        known[worked_out] = worked_out(_in_effect.release)
    found: Derived = known[worked_out]
    return found


@contextmanager
def used(chosen: Release) -> Iterator[Settled]:
    """For a while: where one process looks at several versions in turn."""
    before = _in_effect.release
    try:
        yield use(chosen)
    finally:
        use(before)
