"""Where the files of a pod are on the node. Pure."""

from sampan.api.objects import Obj, uid_of


def pod_directory(uid: str, root_dir: str) -> str:
    """What the node keeps for a pod; goes when the pod has gone."""
    return f"{root_dir}/pods/{uid}"


def termination_log(pod: Obj, container_name: str, *, attempt: int, root_dir: str) -> str:
    """The node's side of terminationMessagePath."""
    return f"{pod_directory(uid_of(pod), root_dir)}/containers/{container_name}/{attempt}"
