"""Where the files of a pod are on the node. Pure."""

from sampan.api.objects import Obj, uid_of

# Where pods, their manifests and plugins know the kubelet's directory to be, wherever it is.
WELL_KNOWN_ROOT = "/var/lib/kubelet"


def pod_directory(uid: str, root_dir: str) -> str:
    """What the node keeps for a pod; goes when the pod has gone."""
    return f"{root_dir}/pods/{uid}"


def termination_log(pod: Obj, container_name: str, *, attempt: int, root_dir: str) -> str:
    """The node's side of terminationMessagePath."""
    return f"{pod_directory(uid_of(pod), root_dir)}/containers/{container_name}/{attempt}"


def own_path(path: str, root_dir: str) -> str:
    """A path that somebody else names: the kubelet's own directory is where it really is. Several
    clusters may be on one machine, and each pod means that of its own node."""
    if path == WELL_KNOWN_ROOT or path.startswith(f"{WELL_KNOWN_ROOT}/"):
        return root_dir + path[len(WELL_KNOWN_ROOT) :]
    return path
