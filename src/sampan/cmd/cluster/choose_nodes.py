"""Which nodes an all-in-one cluster gets: a real one, simulated ones, or none.

Job: settings and what this machine has → the nodes, or one sentence that says what is missing.
"""

import os
import random
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from sampan.cmd.cluster.node.real_node import RealNode
from sampan.cmd.cluster.node.runtime import nobody_at
from sampan.cmd.cluster.node.runtime_choice import chosen_runtime, what_a_node_misses
from sampan.cmd.cluster.nodes import NODES_DIRECTORY, Nodes, NodeSetup, NoNodes
from sampan.cmd.cluster.progress import Progress
from sampan.cmd.cluster.ranges import chosen_ranges
from sampan.cmd.cluster.simulated.simulated_nodes import SimulatedNodes
from sampan.cmd.errors import CannotStart
from sampan.cmd.flags.kubelet_config import DIRECTORY_FLAG as CONFIG_DIR_FLAG
from sampan.cmd.flags.kubelet_config import FLAG as CONFIG_FLAG
from sampan.cmd.flags.scenario import FLAG as SCENARIO_FLAG
from sampan.cmd.flags.scenario import NODES_FLAG, scenario_in
from sampan.cmd.settings import Ranges, UpSettings

SIMULATED_ONLY = "--runtime simulated only"


def choose_nodes(setup: NodeSetup, rng: random.Random) -> Nodes:
    settings, progress = setup.settings, setup.progress
    _refuse_misplaced(settings)
    if settings.runtime == "simulated":
        scenario_in(settings.node.scenario)  # a mistake in it is said at once
        return _simulated(setup, rng)
    if settings.runtime == "none":
        return NoNodes(setup.identity)
    _say_what_has_no_effect(settings, progress)
    runtime = chosen_runtime(settings, setup.data)
    setup = replace(setup, settings=replace(settings, runtime=runtime))
    if settings.cri_socket:
        if not Path(settings.cri_socket).is_socket():
            raise CannotStart(nobody_at(settings.cri_socket, "there is no such socket"))
        return RealNode(setup)
    missing = what_a_node_misses(setup.settings)
    if not missing:
        return _real(setup)
    if settings.runtime != "auto":
        raise CannotStart(
            f"a real node needs {', '.join(missing)}: `sampan doctor` says what to do, and "
            "--runtime simulated needs nothing"
        )
    progress.warn(f"no real node: it needs {', '.join(missing)}")
    progress.warn("going on with simulated nodes: pods are accepted and reported, none really runs")
    return _simulated(setup, rng)


def asked_ranges(settings: UpSettings, recorded: Mapping[str, Any]) -> Ranges:
    """Several real nodes share the machine's routes with other clusters: where nobody says which
    range their pods have, it is one that is free. Raises CannotStart."""
    asked, several = settings.ranges, _are_several(settings)
    pretended = settings.runtime in ("simulated", "none") or settings.clock == "virtual"
    if asked.cluster or recorded.get("cluster_cidr") or not several or pretended:
        return asked
    if sys.platform != "linux":
        return asked
    from sampan.network import node_lan
    from sampan.network.bridge import NetworkError

    families = chosen_ranges(asked, recorded).families
    try:
        return replace(asked, cluster=node_lan.free_pod_ranges(families))
    except NetworkError as error:
        raise CannotStart(str(error)) from error


def _real(setup: NodeSetup) -> Nodes:
    """One, or several where they were asked for."""
    settings, root = setup.settings, setup.data.root
    several = _are_several(settings)
    if not several and not (root / NODES_DIRECTORY).is_dir():
        return RealNode(setup)
    from sampan.cmd.cluster.node import places

    names = places.names_of(setup.identity.name, settings.nodes, settings.node_names)
    left = [each.name for each in places.other_nodes(root) if each.name not in names]
    if left:
        setup.progress.warn(
            f"this cluster has had other nodes, which are not started: {', '.join(left)}; "
            "--nodes or --node-names says how many there are"
        )
    if not several:
        return RealNode(setup)
    from sampan.cmd.cluster.node.real_nodes import RealNodes

    return RealNodes(setup, names)


def _simulated(setup: NodeSetup, rng: random.Random) -> SimulatedNodes:
    return SimulatedNodes(setup.settings, setup.identity, setup.progress, setup.clock, rng)


def _refuse_misplaced(settings: UpSettings) -> None:
    """Flags of one kind of nodes beside another kind. Raises CannotStart."""
    simulated = settings.runtime == "simulated"
    pretended = simulated or settings.runtime == "none"
    mirrors = settings.node.registry_mirrors
    if _are_several(settings):
        _refuse_several(settings, pretended=pretended)
    for wrong, sentence in (
        (settings.node.config and pretended, f"{CONFIG_FLAG} is for a real node"),
        (settings.node.config_dir and pretended, f"{CONFIG_DIR_FLAG} is for a real node"),
        (
            mirrors and (settings.cri_socket or pretended),
            "--registry-mirror is for a node with sampan's own runtime",
        ),
        (
            settings.runtime == "native" and settings.cri_socket,
            "--cri-socket and --runtime native exclude each other: leave one out",
        ),
        (settings.node.scenario and not simulated, f"{SCENARIO_FLAG} is for {SIMULATED_ONLY}"),
        (settings.nodes_file and not simulated, f"{NODES_FLAG} is for {SIMULATED_ONLY}"),
        (
            settings.nodes_file and (settings.node_names or settings.nodes > 1),
            f"{NODES_FLAG} says which nodes there are: leave --nodes and --node-names out",
        ),
    ):
        if wrong:
            raise CannotStart(sentence)


def _are_several(settings: UpSettings) -> bool:
    return settings.nodes > 1 or len(settings.node_names) > 1


def _refuse_several(settings: UpSettings, *, pretended: bool) -> None:
    """Where only one real node can be. Raises CannotStart."""
    if settings.cri_socket:
        raise CannotStart(
            "--cri-socket is one runtime for one node: leave --nodes and --node-names out"
        )
    if settings.network == "none" and not pretended:
        raise CannotStart("--network none is for one real node on a machine: leave --nodes out")


def _say_what_has_no_effect(settings: UpSettings, progress: Progress) -> None:
    if settings.node.manifests and not os.path.exists(settings.node.manifests):
        progress.warn(
            f"--manifests {settings.node.manifests} is not there: no static pods until it is"
        )
