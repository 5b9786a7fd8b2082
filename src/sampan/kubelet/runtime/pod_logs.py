"""Where collectors find logs: links beside them, and which directories of logs are ours.

Job: a link per container in /var/log/containers, as upstream's legacy ones; a link per pod where
    the cluster keeps its own things, because several clusters share /var/log/pods.
Invariant: a link goes with its container, and is never more than a name: logs are read without it.
Invariant: nothing is removed that no link of ours leads to.
Owner: Kubelet, of a real node.
"""

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from sampan.api.objects import Obj, name_of, namespace_of
from sampan.core.log import get_logger

log = get_logger(__name__)

# Where collectors look; logs are there where a node has the machine to itself, or shares it.
POD_LOGS, CONTAINER_LOGS = "/var/log/pods", "/var/log/containers"
_SUFFIX = ".log"
_LONGEST_NAME = 255


def link_name(pod: str, namespace: str, container: str, container_id: str) -> str:
    """As upstream: cut to what a file system takes."""
    name = f"{pod}_{namespace}_{container}-{container_id}"
    return name[: _LONGEST_NAME - len(_SUFFIX)] + _SUFFIX


class PodLogs:
    def __init__(self, log_dir: str, registry: str = "", links: str = "") -> None:
        """`registry`: of the pods' directories; `links`: of the containers' logs. Empty: none."""
        self._log_dir, self._registry, self._links = log_dir, registry, links
        self._by_id: dict[str, str] = {}  # container id → its link

    def start(self) -> None:
        """What was linked before; what leads nowhere any more goes."""
        with contextlib.suppress(OSError):
            for link in os.scandir(self._links or "/nowhere"):
                target = os.readlink(link.path) if link.is_symlink() else ""
                if not target.startswith(f"{self._log_dir}/"):
                    continue
                if os.path.exists(target):
                    self._by_id[link.name.removesuffix(_SUFFIX).rpartition("-")[2]] = link.path
                elif self._is_ours(target):
                    os.unlink(link.path)

    def _is_ours(self, path: str) -> bool:
        pod = path.removeprefix(f"{self._log_dir}/").partition("/")[0]
        return not self._registry or os.path.islink(f"{self._registry}/{pod}")

    def begin(self, directory: str) -> None:
        """The logs of a pod will be there."""
        if self._registry:
            link = f"{self._registry}/{os.path.basename(directory)}"
            with _told("directory of logs is not linked", link):
                os.makedirs(self._registry, exist_ok=True)
                _link(directory, link)

    def started(self, pod: Obj, container: str, container_id: str, path: str) -> None:
        if self._links and os.path.exists(path):
            name = link_name(name_of(pod), namespace_of(pod), container, container_id)
            link = f"{self._links}/{name}"
            with _told("log of a container is not linked", link):
                os.makedirs(self._links, exist_ok=True)
                _link(path, link)
                self._by_id[container_id] = link

    def removed(self, container_id: str) -> None:
        link = self._by_id.pop(container_id, "")
        if link:
            with contextlib.suppress(OSError):
                os.unlink(link)

    def places(self, name: str) -> list[str]:
        """All that is there of a pod's logs, to be removed with it."""
        if self._registry:
            with contextlib.suppress(OSError):
                os.unlink(f"{self._registry}/{name}")
        return [f"{self._log_dir}/{name}"]

    def left_of(self, uid: str) -> list[str]:
        """Likewise, of a pod that the runtime knows nothing of: its sandbox could not be made."""
        found: list[str] = []
        with contextlib.suppress(OSError):
            names = os.listdir(self._registry) if self._registry else []
            for name in names:
                found += self.places(name) if name.endswith(f"_{uid}") else []
        return found


def remove_all(registry: Path, links: str) -> None:
    """At the end of a cluster: the logs that its links lead to, and what leads to them."""
    ours = [path for path in registry.glob("*_*_*") if path.is_symlink()]
    targets = [os.readlink(path) for path in ours]
    with contextlib.suppress(OSError):
        for link in os.scandir(links):
            target = os.readlink(link.path) if link.is_symlink() else ""
            if any(target.startswith(f"{place}/") for place in targets):
                os.unlink(link.path)
    for path, target in zip(ours, targets, strict=True):
        shutil.rmtree(target, ignore_errors=True)
        path.unlink(missing_ok=True)


def _link(target: str, link: str) -> None:
    """A link that is there leads where it should, or is replaced."""
    try:
        os.symlink(target, link)
    except FileExistsError:
        if os.readlink(link) != target:
            os.unlink(link)
            os.symlink(target, link)


@contextlib.contextmanager
def _told(sentence: str, link: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        log.warning(sentence, link=link, error=error)
