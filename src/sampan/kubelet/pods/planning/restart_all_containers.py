"""RestartAllContainers: the plan of a pod all of whose containers restart in place. Pure.

Job: a pod one of whose containers ended at an exit code whose rule says RestartAllContainers, what
    the runtime has of it → every container stopped and removed; its sandbox and volumes stay. The
    next plan finds none, and begins with the init containers.
Invariant: as upstream, what caused it goes last: while it is there, whoever comes later (an agent
    that was restarted) sees why the others are gone.
"""

from collections.abc import Iterator, Sequence

from sampan.api.objects import Obj
from sampan.api.rules.node_agent.restart_rules import restarts_all_at
from sampan.api.rules.pods import containers, init_containers
from sampan.kubelet.contracts.runtime import ContainerState, ContainerStatus, ObservedPod
from sampan.kubelet.contracts.spec import instances
from sampan.kubelet.pods.planning.actions import Action, KillContainer, RemoveContainer

_WHY = "killing"  # as upstream tells it


def resets(pod: Obj, observed: ObservedPod | None) -> list[Action]:
    found = [*_each(containers(pod), observed), *_each(init_containers(pod), observed)]
    targets = [item for container, item in found if not _is_cause(container, item)]
    causes = [item for container, item in found if _is_cause(container, item)]
    return [action for item in (*targets, *causes) for action in _reset(item)]


def _each(
    wanted: Sequence[Obj], observed: ObservedPod | None
) -> Iterator[tuple[Obj, ContainerStatus]]:
    for container in wanted:
        for item in instances(observed, container["name"]):
            yield container, item


def _is_cause(container: Obj, item: ContainerStatus) -> bool:
    return item.state is ContainerState.EXITED and restarts_all_at(container, item.exit_code)


def _reset(item: ContainerStatus) -> list[Action]:
    remove = RemoveContainer(item.id)
    if item.state is ContainerState.EXITED:
        return [remove]
    return [KillContainer(item.id, item.name, _WHY, grace_seconds=0.0), remove]
