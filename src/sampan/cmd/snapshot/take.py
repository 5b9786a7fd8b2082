"""A snapshot of a cluster that runs, through its API: sampan's, or any other Kubernetes.

Job: list every kind at one revision, page by page.
Invariant: all lists are of the first one's revision; a kind that cannot be read so (because another
    store keeps it) is read as it is, and a note says so.
"""

from collections.abc import Iterator

from sampan.api.errors import ApiError, Forbidden, MethodNotAllowed, NotFound
from sampan.api.objects import Obj, time_text
from sampan.api.served import served_resources
from sampan.client.blocking import BlockingClient
from sampan.cmd.snapshot.snapshot_file import Snapshot
from sampan.core.clock import Clock

PAGE = 500
CONTAINERS = "what containers have written and how far they are is not in it"


def take(api: BlockingClient, clock: Clock, *, secrets: bool = True) -> Snapshot:
    """Raises ApiError, and NoAnswer where nobody answers."""
    first = api.json("GET", "/api/v1/namespaces", {"limit": "1"})
    revision = first["metadata"]["resourceVersion"]
    objects: list[Obj] = []
    notes = [CONTAINERS]
    for path, api_version, kind in [*_published(), *_custom(api, revision)]:
        if kind == "Secret" and not secrets:
            notes.append("Secrets are not in it")
            continue
        try:
            found, exact = _list(api, path, revision)
        except (NotFound, MethodNotAllowed):
            continue  # it has no such kind
        except Forbidden:
            notes.append(f"{kind} ({api_version}) is not in it: it may not be read")
            continue
        if not exact:
            notes.append(f"{kind} ({api_version}) is of another moment")
        objects += [{**item, "apiVersion": api_version, "kind": kind} for item in found]
    return Snapshot(objects, revision, api.server, time_text(clock.now()), tuple(notes))


def _published() -> list[tuple[str, str, str]]:
    """Each kind in the version in which it is stored."""
    return [
        (f"{row.path}/{row.plural}", row.api_version, row.kind)
        for row in served_resources()
        if row.stored_in == ("", "") and "list" in row.verbs
    ]


def _custom(api: BlockingClient, revision: str) -> Iterator[tuple[str, str, str]]:
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    for definition in _list(api, path, revision)[0]:
        spec = definition["spec"]
        for version in spec["versions"]:
            if version["storage"] and version["served"]:
                api_version = f"{spec['group']}/{version['name']}"
                path = f"/apis/{api_version}/{spec['names']['plural']}"
                yield path, api_version, spec["names"]["kind"]


def _list(api: BlockingClient, path: str, revision: str) -> tuple[list[Obj], bool]:
    """The items, and whether they are of that revision."""
    exact = {"resourceVersion": revision, "resourceVersionMatch": "Exact"}
    try:
        return _pages(api, path, exact), True
    except (NotFound, MethodNotAllowed, Forbidden):
        raise
    except ApiError:
        return _pages(api, path, {}), False


def _pages(api: BlockingClient, path: str, first: dict[str, str]) -> list[Obj]:
    items: list[Obj] = []
    query = {**first, "limit": str(PAGE)}
    while True:
        answer = api.json("GET", path, query)
        items += answer["items"]
        rest = answer["metadata"].get("continue")
        if not rest:
            return items
        query = {"limit": str(PAGE), "continue": rest}
