"""What simulated nodes are, and how their pods behave: files that `--nodes-file` and
`--simulated-scenario` name.

Job: file → shapes of nodes, rules for pods, or one sentence with everything that is wrong with it.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from sampan.api.objects import Obj, annotations_of, labels_of, name_of, namespace_of
from sampan.cmd.errors import CannotStart, reason_of

if TYPE_CHECKING:
    from sampan.kubelet.simulated.node_types import NodeShape
    from sampan.kubelet.simulated.scenario import Scenario

T = TypeVar("T")
Scripts = Callable[[Obj], Mapping[str, str]]
NODES_FLAG = "--nodes-file"
NODES_HELP = (
    "simulated nodes of several types: capacity, zones, labels, taints, devices, failures "
    "(docs/lab.md); for example {apiVersion: simulated.sampan.dev/v1, kind: Nodes, "
    "types: [{name: large, count: 6, capacity: {cpu: 16, memory: 64Gi}, zones: [a, b]}]}"
)
FLAG = "--simulated-scenario"
HELP = (
    "how simulated pods behave: timing, exits, logs, probes and failures by selector "
    "(docs/simulated.md); for example {apiVersion: simulated.sampan.dev/v1, kind: Scenario, "
    "rules: [{selector: {matchLabels: {app: web}}, share: 0.1, script: {start-seconds: 2, "
    "exit-after-seconds: 30, exit-code: 1}}]}"
)


def scenario_in(path: str) -> "Scenario":
    """Raises CannotStart; no path: nothing but the end of Jobs is scripted."""
    # Only for simulated nodes, and YAML takes its time.
    from sampan.kubelet.simulated.scenario import NOTHING, scenario_of, with_ends_of_jobs

    if not path:
        return with_ends_of_jobs(NOTHING)
    return with_ends_of_jobs(read_document(path, FLAG, scenario_of))


def scripts_in(path: str) -> Scripts:
    """The annotations of an object, and where it is a pod what a scenario adds to them. Raises
    CannotStart."""
    if not path:
        return annotations_of
    scenario = scenario_in(path)

    def scripts_of(obj: Obj) -> Mapping[str, str]:
        notes = annotations_of(obj)
        if obj.get("kind") != "Pod":
            return notes
        uid = str(obj["metadata"].get("uid") or "")
        return scenario.annotations(namespace_of(obj), name_of(obj), labels_of(obj), notes, uid)

    return scripts_of


def nodes_in(path: str) -> "tuple[NodeShape, ...]":
    """Raises CannotStart; no path: none."""
    from sampan.kubelet.simulated.node_types import shapes_of

    return read_document(path, NODES_FLAG, shapes_of) if path else ()


def read_document(path: str, flag: str, parse: Callable[[object], T]) -> T:
    """Of a YAML file. Raises CannotStart with everything that is wrong with it."""
    import yaml

    from sampan.api.configuration import BadConfiguration

    try:
        return parse(yaml.safe_load(Path(path).read_text()))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise CannotStart(f"{flag} {path}: {reason_of(error)}") from error
    except BadConfiguration as error:
        problems = "".join(f"\n  {problem}" for problem in error.problems)
        raise CannotStart(f"{flag} {path}:{problems}") from error
