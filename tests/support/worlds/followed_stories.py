"""Stories that a test follows through a cluster: a pod that runs, and what is asked of it.

Job: requests by a real client, and the watch that says when it is over.
"""

from collections.abc import Callable

from sampan.api.objects import Obj
from sampan.api.resources import PODS, Resource
from sampan.client.rest import RestClient

LABELS = {"app": "web"}


def pod(**spec: object) -> Obj:
    meta = {"name": "web", "namespace": "default", "labels": LABELS}
    containers = [{"name": "c", "image": "nginx", "ports": [{"containerPort": 80}]}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": meta,
        "spec": {"containers": containers, **spec},
    }


async def seen(
    client: RestClient, resource: Resource, after: Obj, is_it: Callable[[Obj], object]
) -> None:
    """Until a watch that begins with `after` shows what is waited for."""
    revision = int(after["metadata"]["resourceVersion"])
    namespace = "default" if resource.namespaced else ""
    async for event in client.watch(resource, namespace, revision=revision):
        if is_it(event.object):
            return


async def running_pod(client: RestClient, wanted: Obj | None = None) -> None:
    created = await client.create(PODS, wanted or pod())
    await seen(client, PODS, created, lambda obj: obj["status"].get("phase") == "Running")
