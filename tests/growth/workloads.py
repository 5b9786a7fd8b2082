"""What must not cost more than it grows: workloads of any size.

Job: for each, what is there before, and what is measured, for N.
Invariant: a workload returns when all that it set off is done, not when it was accepted.
"""

from collections.abc import Awaitable, Callable

from sampan.api.objects import Obj, name_of
from sampan.api.resources import (
    CONFIG_MAPS,
    CRON_JOBS,
    CUSTOM_RESOURCE_DEFINITIONS,
    DAEMON_SETS,
    DEPLOYMENTS,
    ENDPOINT_SLICES,
    JOBS,
    NAMESPACES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    POD_DISRUPTION_BUDGETS,
    PODS,
    RESOURCE_QUOTAS,
    SERVICE_ACCOUNTS,
    SERVICES,
    STATEFUL_SETS,
    Resource,
    by_kind,
)
from sampan.api.rules.conditions import condition_of
from sampan.api.rules.nodes import is_ready
from sampan.client.contract import Page
from sampan.core.fast_dataclass import dataclass
from sampan.core.tasks import all_of
from tests.growth.objects import claim, config_map, job, named, pod, service, volume, workload
from tests.growth.world import World

Step = Callable[[World, int], Awaitable[None]]


async def nothing(_world: World, _n: int) -> None:
    """What there is anyway is enough."""


def few_nodes(_n: int) -> int:
    return 4


def nodes_for_pods(n: int) -> int:
    return max(n // 8, 2)


def as_many_nodes(n: int) -> int:
    return n


@dataclass(frozen=True, slots=True)
class Workload:
    name: str
    run: Step
    prepare: Step = nothing
    nodes: Callable[[int], int] = few_nodes
    starts: bool = False  # that the cluster starts is part of what is measured
    virtual: bool = False  # it is about time that passes
    size: int = 1  # how many times the usual N: some things are cheap


def phase(name: str) -> Callable[[Obj], bool]:
    return lambda obj: (obj.get("status") or {}).get("phase") == name


def has_status(field: str, value: object) -> Callable[[Obj], bool]:
    return lambda obj: (obj.get("status") or {}).get(field) == value


async def start_nodes(world: World, n: int) -> None:
    await world.until(NODES, n, is_ready)


async def idle_minutes(world: World, _n: int) -> None:
    await world.clock.sleep(120.0)


async def lose_nodes(world: World, n: int) -> None:
    """All agents are gone: the nodes become unreachable, one after the other."""
    for node in (await world.client.list(NODES)).items:
        await world.plane.nodes.kill(name_of(node))
    await world.until(NODES, n, lambda node: not is_ready(node))
    await world.clock.sleep(60.0)


async def create_pods(world: World, n: int) -> None:
    await world.create(PODS, (pod(number) for number in range(n)))
    await world.until(PODS, n, phase("Running"))


async def delete_pods(world: World, n: int) -> None:
    await world.delete(PODS, [f"pod-{number:06d}" for number in range(n)], "default")
    await world.until(PODS, 0)


async def spread_pods(world: World, n: int) -> None:
    """Each keeps away from all others, one on a node."""
    away = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "a"}}}
    terms = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [away]}}
    pods = [pod(number, affinity=terms) for number in range(n)]
    for obj in pods:
        obj["metadata"]["labels"] = {"app": "a"}
    await world.create(PODS, pods)
    await world.until(PODS, n, phase("Running"))


async def waiting_pods(world: World, n: int) -> None:
    """Nobody has what they select; then somebody does."""
    await world.create(PODS, (pod(number, nodeSelector={"disk": "fast"}) for number in range(n)))
    await world.until(PODS, n, lambda obj: condition_of(obj, "PodScheduled") is not None)
    patch = {"metadata": {"labels": {"disk": "fast"}}}
    for node in (await world.client.list(NODES)).items:
        await world.client.patch(NODES, "", name_of(node), patch, patch_type="merge")
    await world.until(PODS, n, phase("Running"))


async def lose_pods_of_nodes(world: World, n: int) -> None:
    """The nodes are deleted: their pods are orphans."""
    names = [name_of(node) for node in (await world.client.list(NODES)).items]
    for name in names:
        await world.plane.nodes.kill(name)
    await world.delete(NODES, names)
    await world.until(PODS, 0)


async def create_config_maps(world: World, n: int) -> None:
    await world.create(CONFIG_MAPS, (config_map(number) for number in range(n)))


async def watched_config_maps(world: World, n: int) -> None:
    watchers = [_heard(world, n) for _ in range(8)]
    await all_of([*watchers, create_config_maps(world, n)])


async def _heard(world: World, n: int) -> None:
    heard = 0
    async for event in world.client.watch(CONFIG_MAPS, "default", revision=0):
        heard += event.type == "ADDED" and name_of(event.object).startswith("config-")
        if heard == n:
            return


async def watchers(world: World, n: int) -> None:
    """N watchers hear of eight objects."""
    await all_of([*(_heard(world, 8) for _ in range(n)), create_config_maps(world, 8)])


async def one_changes(world: World, n: int) -> None:
    """One object changes N times."""
    await world.create(CONFIG_MAPS, [config_map(0)])
    for number in range(n):
        patch = {"data": {"key": str(number)}}
        await world.client.patch(CONFIG_MAPS, "default", "config-000000", patch, patch_type="merge")


async def list_selected(world: World, n: int) -> None:
    for number in range(20):
        selector = f"app=app-{number}"
        found = await world.client.list(PODS, "default", label_selector=selector)
        assert len(found.items) == len(range(number, n, 20))


async def list_pages(world: World, n: int) -> None:
    token, seen = "", 0
    while True:
        page = await world.client.list(CONFIG_MAPS, "default", page=Page(10, token))
        seen += len(page.items)
        token = page.continue_token
        if not token:
            break
    assert seen >= n


async def scale_up(world: World, n: int) -> None:
    await world.create(DEPLOYMENTS, [workload("Deployment", "web", replicas=n)])
    await world.until(DEPLOYMENTS, 1, has_status("readyReplicas", n))


async def roll(world: World, n: int) -> None:
    patch = {"spec": {"template": {"metadata": {"annotations": {"turn": "2"}}}}}
    await world.client.patch(DEPLOYMENTS, "default", "web", patch, patch_type="merge")

    def done(obj: Obj) -> bool:
        status = obj["status"]
        if status.get("observedGeneration") != obj["metadata"]["generation"]:
            return False
        return bool(status.get("updatedReplicas") == status.get("availableReplicas") == n)

    await world.until(DEPLOYMENTS, 1, done)
    await world.until(PODS, n)


async def replace_replicas(world: World, _n: int) -> None:
    """One after the other, so that the set is looked at for each of them."""
    for pod_there in (await world.client.list(PODS, "default")).items:
        await world.client.delete(PODS, "default", name_of(pod_there), grace_seconds=0)
        await world.clock.sleep(0.3)


async def deployments(world: World, n: int) -> None:
    names = [f"web-{number}" for number in range(n)]
    await world.create(DEPLOYMENTS, (workload("Deployment", name, replicas=1) for name in names))
    await world.until(DEPLOYMENTS, n, has_status("readyReplicas", 1))


async def stateful_sets(world: World, n: int) -> None:
    names = [f"db-{number}" for number in range(n)]
    sets = (workload("StatefulSet", name, replicas=1, serviceName=name) for name in names)
    await world.create(STATEFUL_SETS, sets)
    await world.until(STATEFUL_SETS, n, has_status("readyReplicas", 1))


async def daemon_set(world: World, n: int) -> None:
    await world.create(DAEMON_SETS, [workload("DaemonSet", "agent")])
    await world.until(DAEMON_SETS, 1, has_status("numberReady", n))


async def jobs(world: World, n: int) -> None:
    await world.create(JOBS, (job(f"job-{number}") for number in range(n)))
    await world.until(JOBS, n, lambda obj: condition_of(obj, "Complete") is not None)


async def cron_jobs(world: World, n: int) -> None:
    """Each is due once in what is measured."""
    spec = {"schedule": "*/5 * * * *", "jobTemplate": {"spec": job("x")["spec"]}}
    objects = (named("batch/v1", "CronJob", f"cron-{number}", spec=spec) for number in range(n))
    await world.create(CRON_JOBS, objects)
    await world.clock.sleep(330.0)


async def services_of_pods(world: World, n: int) -> None:
    """Each has one endpoint."""
    await world.create(
        SERVICES, (service(f"s-{number}", number=str(number)) for number in range(n))
    )
    await world.until(ENDPOINT_SLICES, n, _has_endpoints)


def _has_endpoints(obj: Obj) -> bool:
    return len(obj.get("endpoints") or ()) > 0 and name_of(obj).startswith("s-")


async def service_of_all(world: World, n: int) -> None:
    await world.create(SERVICES, [service("all")])
    await world.client.patch(
        SERVICES, "default", "all", {"spec": {"selector": {"all": "yes"}}}, patch_type="merge"
    )
    pods = [pod(number) for number in range(n)]
    for obj in pods:
        obj["metadata"]["labels"]["all"] = "yes"
    await world.create(PODS, pods)
    await world.until(PODS, n, phase("Running"))


async def namespaces(world: World, n: int) -> None:
    names = [f"team-{number}" for number in range(n)]
    await world.create(NAMESPACES, (named("v1", "Namespace", name, "") for name in names))
    there = set(names)
    await world.until(SERVICE_ACCOUNTS, n, lambda obj: obj["metadata"]["namespace"] in there)
    await world.delete(NAMESPACES, names)
    await world.until(NAMESPACES, 0, lambda obj: name_of(obj).startswith("team-"))


async def full_namespace(world: World, n: int) -> None:
    await world.create(NAMESPACES, [named("v1", "Namespace", "full", "")])
    objects = [config_map(number) for number in range(n)]
    for obj in objects:
        obj["metadata"]["namespace"] = "full"
    await world.create(CONFIG_MAPS, objects)
    await world.delete(NAMESPACES, ["full"])
    await world.until(NAMESPACES, 0, lambda obj: name_of(obj) == "full")


async def owners(world: World, n: int) -> None:
    """N owners of one each, then none."""
    names = [f"owner-{number}" for number in range(n)]
    await world.create(CONFIG_MAPS, (named("v1", "ConfigMap", name) for name in names))
    listed = await world.client.list(CONFIG_MAPS, "default")
    owned = [obj for obj in listed.items if name_of(obj).startswith("owner-")]
    await world.create(CONFIG_MAPS, (config_map(number, obj) for number, obj in enumerate(owned)))
    await world.delete(CONFIG_MAPS, names, "default")
    await world.until(CONFIG_MAPS, 0, lambda obj: name_of(obj).startswith(("owner-", "config-")))


async def owner_of_all(world: World, n: int) -> None:
    owner = await world.client.create(CONFIG_MAPS, named("v1", "ConfigMap", "owner"))
    owner = {"apiVersion": "v1", "kind": "ConfigMap", **owner}
    await world.create(CONFIG_MAPS, (config_map(number, owner) for number in range(n)))
    await world.client.delete(CONFIG_MAPS, "default", "owner", propagation="Foreground")
    await world.until(CONFIG_MAPS, 0, lambda obj: name_of(obj).startswith(("owner", "config-")))


async def quota(world: World, n: int) -> None:
    hard = {"pods": str(n), "requests.cpu": "1000"}
    await world.create(RESOURCE_QUOTAS, [named("v1", "ResourceQuota", "all", spec={"hard": hard})])
    await world.until(RESOURCE_QUOTAS, 1, lambda obj: bool((obj.get("status") or {}).get("used")))
    await create_pods(world, n)
    await world.until(RESOURCE_QUOTAS, 1, lambda obj: obj["status"]["used"].get("pods") == str(n))


async def bindings(world: World, n: int) -> None:
    """N users have a right each, and use it."""
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"}

    def binding(number: int) -> Obj:
        subject = {**role, "kind": "User", "name": f"user-{number}"}
        return named(
            "rbac.authorization.k8s.io/v1", "RoleBinding", f"user-{number}",
            roleRef=role, subjects=[subject],
        )  # fmt: skip

    role_bindings = by_kind("rbac.authorization.k8s.io/v1", "RoleBinding")
    assert role_bindings is not None
    await world.create(role_bindings, (binding(number) for number in range(n)))
    for number in range(n):
        await world.as_user(f"user-{number}").create(CONFIG_MAPS, config_map(number))


async def volumes(world: World, n: int) -> None:
    """N claims for N volumes of their size."""
    await world.create(PERSISTENT_VOLUMES, (volume(number) for number in range(n)))
    await world.until(PERSISTENT_VOLUMES, n, phase("Available"))
    await world.create(PERSISTENT_VOLUME_CLAIMS, (claim(number, "1Gi") for number in range(n)))
    await world.until(PERSISTENT_VOLUME_CLAIMS, n, phase("Bound"))


async def waiting_claims(world: World, n: int) -> None:
    """N claims wait for N volumes, among as many that need more."""
    sizes = ("1Gi", "2Gi")
    claims = [claim(number, sizes[number % 2]) for number in range(2 * n)]
    await world.create(PERSISTENT_VOLUME_CLAIMS, claims)
    await world.until(PERSISTENT_VOLUME_CLAIMS, 2 * n, phase("Pending"))
    await world.create(PERSISTENT_VOLUMES, (volume(number) for number in range(n)))
    await world.until(PERSISTENT_VOLUME_CLAIMS, n, phase("Bound"))


async def budgets(world: World, n: int) -> None:
    """N disruption budgets for one pod each."""

    def budget(number: int) -> Obj:
        spec = {"minAvailable": 1, "selector": {"matchLabels": {"number": str(number)}}}
        return named("policy/v1", "PodDisruptionBudget", f"budget-{number}", spec=spec)

    await world.create(POD_DISRUPTION_BUDGETS, (budget(number) for number in range(n)))
    await create_pods(world, n)
    await world.until(POD_DISRUPTION_BUDGETS, n, has_status("currentHealthy", 1))


WIDGETS = Resource("example.com", "v1", "Widget", "widgets")


async def define(world: World, _n: int) -> None:
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "size": {"type": "integer"}}}}}  # fmt: skip
    version = {
        "name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}
    }  # fmt: skip
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    spec = {"group": "example.com", "names": names, "scope": "Namespaced", "versions": [version]}
    kind = "CustomResourceDefinition"
    definition = named("apiextensions.k8s.io/v1", kind, "widgets.example.com", "", spec=spec)
    await world.create(CUSTOM_RESOURCE_DEFINITIONS, [definition])
    await world.until(
        CUSTOM_RESOURCE_DEFINITIONS, 1, lambda obj: condition_of(obj, "Established") is not None
    )


async def custom_objects(world: World, n: int) -> None:
    names = [f"widget-{number}" for number in range(n)]
    objects = (named("example.com/v1", "Widget", name, spec={"size": 1}) for name in names)
    await world.create(WIDGETS, objects)
    await world.delete(WIDGETS, names, "default")


WORKLOADS = (
    Workload("start with N nodes", start_nodes, nodes=as_many_nodes, starts=True),
    Workload("N nodes idle", idle_minutes, nodes=as_many_nodes, virtual=True),
    Workload("N nodes lost", lose_nodes, nodes=as_many_nodes, virtual=True),
    Workload("create N pods", create_pods, nodes=nodes_for_pods),
    Workload("delete N pods", delete_pods, create_pods, nodes=nodes_for_pods),
    Workload("N pods apart on N nodes", spread_pods, nodes=as_many_nodes),
    Workload("N pods wait for a label", waiting_pods, nodes=nodes_for_pods),
    Workload(
        "N pods of nodes that are gone",
        lose_pods_of_nodes,
        create_pods,
        nodes=nodes_for_pods,
        virtual=True,
    ),
    Workload("N config maps", create_config_maps, size=4),
    Workload("N config maps watched", watched_config_maps, size=4),
    Workload("N watchers", watchers, size=8),
    Workload("N updates of one", one_changes, size=4),
    Workload("lists of N by selector", list_selected, create_pods, nodes=nodes_for_pods),
    Workload("list of N by pages", list_pages, create_config_maps, size=4),
    Workload("a Deployment of N", scale_up, nodes=nodes_for_pods),
    Workload("a rolling update of N", roll, scale_up, nodes=nodes_for_pods),
    Workload(
        "N replicas, one by one", replace_replicas, scale_up, nodes=nodes_for_pods, virtual=True
    ),
    Workload("N Deployments", deployments, nodes=nodes_for_pods),
    Workload("N StatefulSets", stateful_sets, nodes=nodes_for_pods),
    Workload("a DaemonSet on N nodes", daemon_set, nodes=as_many_nodes),
    Workload("N Jobs", jobs, nodes=nodes_for_pods),
    Workload("N CronJobs", cron_jobs, nodes=nodes_for_pods, virtual=True),
    Workload("N Services", services_of_pods, create_pods, nodes=nodes_for_pods),
    Workload("a Service of N endpoints", service_of_all, nodes=nodes_for_pods),
    Workload("N namespaces", namespaces),
    Workload("a namespace of N objects", full_namespace, size=4),
    Workload("N owners", owners),
    Workload("an owner of N", owner_of_all),
    Workload("a quota and N pods", quota, nodes=nodes_for_pods),
    Workload("N role bindings", bindings),
    Workload("N claims", volumes),
    Workload("N volumes for claims that wait", waiting_claims),
    Workload("N disruption budgets", budgets, nodes=nodes_for_pods),
    Workload("N custom objects", custom_objects, define, size=4),
)
