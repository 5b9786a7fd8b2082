"""Feature gates: which there are in a version of Kubernetes, and what setting them comes to.

Job: read the table (data/gates.json) and what users set; say which gates are on. Pure.
Invariant: a gate is set only to what this program then does; messages are those of upstream's
    component-base where upstream refuses, too.
"""

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, Literal, get_args

from sampan.core.fast_dataclass import dataclass
from sampan.core.files.packaged_data import packaged_data

StageName = Literal["Alpha", "Beta", "GA", "Deprecated"]
Here = Literal["both", "on", "off", "same"]
ALL = {"AllAlpha": "Alpha", "AllBeta": "Beta"}  # each sets every gate of a stage
NEEDS_SINCE = 35  # the first minor version that looks at what a gate needs

# As strconv.ParseBool.
TRUTHS = dict.fromkeys(("1", "t", "T", "TRUE", "true", "True"), True) | dict.fromkeys(
    ("0", "f", "F", "FALSE", "false", "False"), False
)


class BadFeatureGates(Exception):
    """What cannot be set, as upstream words it."""


@dataclass(frozen=True, slots=True)
class Stage:
    since: str  # minor version, as 1.35
    name: StageName
    default: bool
    locked: bool


@dataclass(frozen=True, slots=True)
class Gate:
    name: str
    stage: Stage | None  # None: not before a later version than the one that is emulated
    needs: tuple[str, ...]
    here: Here
    can_be_set: bool  # False: of an older or newer program than this one

    @property
    def default(self) -> bool:
        return self.stage is not None and self.stage.default

    def can_be(self, value: bool) -> bool:
        return self.here in ("both", "same") or (self.here == "on") is value

    def done(self, value: bool) -> bool:
        """What this program does where upstream's value is this."""
        return value if self.can_be(value) else not value


@dataclass(frozen=True, slots=True)
class Settled:
    """Of one version and what was set in it."""

    gates: Mapping[str, Gate]
    given: Mapping[str, bool]
    on: frozenset[str]
    left: tuple[str, ...]  # those that AllAlpha or AllBeta should change, and that stay as they are


@cache
def number_of(minor: str) -> int:
    """35 of 1.35."""
    return int(minor.partition(".")[2])


def gates_of(minor: str, emulated: str = "") -> dict[str, Gate]:
    """Every gate, as it is in the version that the program of a minor version emulates."""
    rows: dict[str, Any] = packaged_data("gates")["gates"]
    program, shown = number_of(minor), number_of(emulated or minor)
    found = {}
    for name, row in rows.items():
        first = row.get("first", row["history"][0][0])
        is_known = number_of(first) <= program <= number_of(row.get("last", minor))
        stages = [entry for entry in row["history"] if number_of(entry[0]) <= shown]
        stage = _stage(*stages[-1]) if stages else None
        found[name] = Gate(name, stage, _needs(row, shown), row["here"], is_known)
    assert {gate.here for gate in found.values()} <= set(get_args(Here))
    return found


def _stage(since: str, name: StageName, default: bool, lock: str = "") -> Stage:
    return Stage(since, name, default, bool(lock))


def _needs(row: Mapping[str, Any], shown: int) -> tuple[str, ...]:
    needs = row.get("needs", ())
    if shown < NEEDS_SINCE:
        return ()
    if isinstance(needs, dict):
        needs = max(item for item in needs.items() if number_of(item[0]) <= shown)[1]
    return tuple(needs)


def parse_gates(text: str) -> dict[str, bool]:
    """Of `A=true,B=false`, each of which may begin with the component that it is of. Raises
    BadFeatureGates."""
    found: dict[str, bool] = {}
    prefixes = set()
    for pair in filter(None, text.split(",")):
        name, equals, value = pair.partition("=")
        component, colon, rest = name.partition(":")
        name = (rest if colon else name).strip()
        prefixes.add(component.strip() if colon else "")
        if not equals:
            raise BadFeatureGates(f"missing bool value for {name}")
        truth = TRUTHS.get(value.strip())
        if truth is None:
            why = f'strconv.ParseBool: parsing "{value.strip()}": invalid syntax'
            raise BadFeatureGates(f"invalid value of {name}={value.strip()}, err: {why}")
        found[name] = truth
    for component in sorted(prefixes - {"", "kube"}):
        raise BadFeatureGates(f"component not registered: {component}")
    if len(prefixes) > 1:
        raise BadFeatureGates(
            "set kube feature gates with default empty prefix or kube: prefix consistently, do not "
            "mix use"
        )
    return found


def settle(minor: str, given: Mapping[str, bool], emulated: str = "") -> Settled:
    """Raises BadFeatureGates."""
    every = gates_of(minor, emulated)
    gates = {name: gate for name, gate in every.items() if gate.can_be_set}
    _check_names(gates, given, emulated or minor)
    values = _values(gates, given)
    _check_values(gates, given, values)
    defaults = {name: gate.default for name, gate in every.items()}
    done = {name: every[name].done(value) for name, value in (defaults | values).items()}
    asked = {stage for name, stage in ALL.items() if name in given}
    left = (
        name
        for name, gate in gates.items()
        if values[name] is not done[name] and gate.stage and gate.stage.name in asked
    )
    return Settled(gates, dict(given), frozenset(name for name in done if done[name]), tuple(left))


def _check_names(gates: Mapping[str, Gate], given: Mapping[str, bool], shown: str) -> None:
    """Raises BadFeatureGates."""
    errors: list[str] = []
    for name, value in given.items():
        if name not in gates and name not in ALL:
            raise _bad([*errors, f"unrecognized feature gate: {name}"])
        errors += _refusals(name, value, gates.get(name), shown)
    if errors:
        raise _bad(errors)


def _check_values(
    gates: Mapping[str, Gate], given: Mapping[str, bool], values: Mapping[str, bool]
) -> None:
    """Raises BadFeatureGates."""
    errors = list(_missing_needs(gates, values))
    errors += (
        f"feature gate {name} cannot be set to {_text(value)}: sampan does not have it"
        for name, value in given.items()
        if name in gates and not gates[name].can_be(value)
    )
    if errors:
        raise _bad(errors)


def _refusals(name: str, value: bool, gate: Gate | None, shown: str) -> Iterable[str]:
    if gate is None:  # one of ALL
        return
    if gate.stage is None:
        older = f"1.{number_of(shown) - 1}"
        yield (
            f"cannot set feature gate {name} to {_text(value)}, feature is PreAlpha at emulated "
            f"version {shown}, min compatibility version {older}"
        )
    elif gate.stage.locked and gate.stage.default != value:
        yield (
            f"cannot set feature gate {name} to {_text(value)}, feature is locked to "
            f"{_text(gate.stage.default)}"
        )


def _values(gates: Mapping[str, Gate], given: Mapping[str, bool]) -> dict[str, bool]:
    """Upstream's; what is given for one gate counts more than what is given for its stage."""
    values = {name: gate.default for name, gate in gates.items()}
    for name, stage in ALL.items():
        if name in given:
            values |= {
                gate.name: given[name]
                for gate in gates.values()
                if gate.stage and gate.stage.name == stage
            }
    return values | {name: value for name, value in given.items() if name in gates}


def _missing_needs(gates: Mapping[str, Gate], values: Mapping[str, bool]) -> Iterable[str]:
    for name, gate in gates.items():
        off = [need for need in gate.needs if need in gates and not values[need]]
        if values[name] and off:
            names = " ".join(off)
            yield f"{name} is enabled, but depends on features that are disabled: [{names}]"


def _bad(errors: list[str]) -> BadFeatureGates:
    """Several are told as upstream's aggregates are."""
    return BadFeatureGates(errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]")


def _text(value: bool) -> str:
    return "true" if value else "false"
