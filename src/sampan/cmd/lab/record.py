"""What comes and goes in a live cluster, for the lab.

Job: look at its pods, for a while where that is wanted, and at its nodes.
"""

import os
from pathlib import Path

from sampan.api.errors import ApiError
from sampan.api.objects import Obj, uid_of
from sampan.api.resources import NODES, PODS, PRIORITY_CLASSES
from sampan.client import kubeconfig, rest
from sampan.client.contract import Client
from sampan.client.informer import Informers
from sampan.client.kubeconfig import KubeconfigError
from sampan.cmd.errors import CannotStart
from sampan.cmd.lab.recording import nodes_document, workload_document
from sampan.core.clock import Clock, SystemClock

WORKLOAD_FILE, NODES_FILE = "workload.yaml", "nodes.yaml"


async def recorded(kubeconfig_path: str, seconds: float) -> dict[str, Obj]:
    """By file name. Raises CannotStart."""
    clock = SystemClock()
    try:
        loaded = kubeconfig.load(kubeconfig_path, os.environ, str(Path.home()))
        client = rest.connect(loaded.connection(), clock=clock)
    except KubeconfigError as error:
        raise CannotStart(str(error)) from error
    try:
        return await _recorded(client, clock, seconds)
    except (ApiError, OSError) as error:
        raise CannotStart(f"the cluster cannot be read: {error}") from error
    finally:
        await client.close()


async def _recorded(client: Client, clock: Clock, seconds: float) -> dict[str, Obj]:
    nodes = (await client.list(NODES)).items
    classes = (await client.list(PRIORITY_CLASSES)).items
    pods = {uid_of(pod): pod for pod in (await client.list(PODS)).items}
    if seconds:
        informers = Informers(client, clock=clock)

        def note(_old: Obj | None, new: Obj | None) -> None:
            if new is not None:
                pods[uid_of(new)] = new  # what goes stays as it was last seen

        informers.of(PODS).on_change(note)
        informers.start()
        await clock.sleep(seconds)
        await informers.stop()
    return {
        WORKLOAD_FILE: workload_document(pods.values(), classes),
        NODES_FILE: nodes_document(nodes),
    }
