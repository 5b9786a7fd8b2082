"""Options of the CPU manager's static policy. Pure.

Job: cpuManagerPolicyOptions as they are written → what they ask for.
Invariant: what contradicts itself, or is not there without a feature gate, is refused by name.
"""

from collections.abc import Mapping

from sampan.core.fast_dataclass import dataclass

ALPHA_GATE, BETA_GATE = "CPUManagerPolicyAlphaOptions", "CPUManagerPolicyBetaOptions"

# Option → the setting, and the gate that it needs.
_OPTIONS = {
    "full-pcpus-only": ("full_cores", ""),
    "strict-cpu-reservation": ("strict_reservation", ""),
    "distribute-cpus-across-numa": ("across_numa", BETA_GATE),
    "prefer-align-cpus-by-uncorecache": ("align_by_uncore", BETA_GATE),
    "align-by-socket": ("align_by_socket", ALPHA_GATE),
    "distribute-cpus-across-cores": ("across_cores", ALPHA_GATE),
}
_LEVELS = {ALPHA_GATE: "Alpha", BETA_GATE: "Beta"}
_EXCLUSIVE = (
    ("full-pcpus-only", "distribute-cpus-across-cores"),
    ("distribute-cpus-across-numa", "distribute-cpus-across-cores"),
    ("prefer-align-cpus-by-uncorecache", "distribute-cpus-across-cores"),
    ("prefer-align-cpus-by-uncorecache", "distribute-cpus-across-numa"),
)
# As Go reads a truth value.
_TRUTHS = {
    **dict.fromkeys(("1", "t", "T", "TRUE", "true", "True"), True),
    **dict.fromkeys(("0", "f", "F", "FALSE", "false", "False"), False),
}


@dataclass(frozen=True, slots=True)
class CpuOptions:
    full_cores: bool = False
    across_numa: bool = False
    align_by_socket: bool = False
    across_cores: bool = False
    strict_reservation: bool = False
    align_by_uncore: bool = False


def cpu_options(written: Mapping[str, str], gates: Mapping[str, bool]) -> CpuOptions:
    """Raises ValueError, in upstream's words."""
    found = {}
    for name, value in written.items():
        if name not in _OPTIONS:
            raise ValueError(f'unknown CPU Manager Policy option: "{name}"')
        setting, gate = _OPTIONS[name]
        if gate and not gates.get(gate, gate == BETA_GATE):
            raise ValueError(
                f"CPU Manager Policy {_LEVELS[gate]}-level Options not enabled, but option "
                f'"{name}" provided'
            )
        found[setting] = truth_of(name, value)
    for one, other in _EXCLUSIVE:
        if found.get(_OPTIONS[one][0]) and found.get(_OPTIONS[other][0]):
            raise ValueError(
                f"static policy options {one} and {other} can not be used at the same time"
            )
    return CpuOptions(**found)


def truth_of(name: str, value: str) -> bool:
    """Raises ValueError."""
    if value not in _TRUTHS:
        why = f'strconv.ParseBool: parsing "{value}": invalid syntax'
        raise ValueError(f'bad value for option "{name}": {why}')
    return _TRUTHS[value]
