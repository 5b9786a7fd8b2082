"""`describe`: everything about objects, for people.

Job: find them (by the beginning of their names, too), ask for what belongs to them, write lines.
"""

from collections.abc import Callable

from sampan.api.errors import ApiError
from sampan.api.objects import Obj, controller_of, uid_of
from sampan.cli import common_flags
from sampan.cli.command import Command
from sampan.cli.common_flags import switch
from sampan.cli.describe import autoscaler, cluster, generic, network, node, pod, storage, workloads
from sampan.cli.describe.events import event_lines
from sampan.cli.describe.writer import Writer
from sampan.cli.errors import CliError, Several
from sampan.cli.flags import Flag, Values
from sampan.cli.objects import manifests, selection
from sampan.cli.objects.builder import Builder
from sampan.cli.objects.discovery import ApiResource
from sampan.cli.objects.infos import Info, get_object, info_of
from sampan.cli.printers.terminal_text import described
from sampan.cli.session import Session

Plain = Callable[[Writer, Obj, float], None]
PLAIN: dict[tuple[str, str], Plain] = {
    ("", "Pod"): pod.pod,
    ("batch", "Job"): workloads.job,
    ("batch", "CronJob"): workloads.cron_job,
    ("autoscaling", "HorizontalPodAutoscaler"): autoscaler.autoscaler,
    ("", "Endpoints"): network.endpoints,
    ("discovery.k8s.io", "EndpointSlice"): network.endpoint_slice,
    ("networking.k8s.io", "NetworkPolicy"): network.network_policy,
    ("networking.k8s.io", "IngressClass"): network.ingress_class,
    ("networking.k8s.io", "ServiceCIDR"): network.service_cidr,
    ("networking.k8s.io", "IPAddress"): network.ip_address,
    ("", "ConfigMap"): cluster.config_map,
    ("", "Secret"): cluster.secret,
    ("", "PersistentVolume"): storage.volume,
    ("storage.k8s.io", "StorageClass"): storage.storage_class,
    ("storage.k8s.io", "VolumeAttributesClass"): storage.attributes_class,
    ("storage.k8s.io", "CSINode"): storage.csi_node,
    ("scheduling.k8s.io", "PriorityClass"): cluster.priority_class,
    ("", "ServiceAccount"): cluster.service_account,
    ("policy", "PodDisruptionBudget"): cluster.disruption_budget,
    ("rbac.authorization.k8s.io", "Role"): cluster.role,
    ("rbac.authorization.k8s.io", "ClusterRole"): cluster.role,
    ("rbac.authorization.k8s.io", "RoleBinding"): cluster.binding,
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): cluster.binding,
    ("", "ResourceQuota"): cluster.quota,
    ("", "LimitRange"): cluster.limits,
}
WITHOUT_EVENTS = {
    "Secret", "ResourceQuota", "LimitRange", "Role", "ClusterRole", "RoleBinding",
    "ClusterRoleBinding", "Namespace", "NetworkPolicy",
}  # fmt: skip
OWNERS = {"ReplicaSet", "ReplicationController", "StatefulSet", "DaemonSet"}


def run(session: Session, values: Values) -> None:
    session.check_context()
    words = values.arguments
    if not words and not manifests.has_files(values):
        raise CliError(
            f'You must specify the type of resource to describe. Use "{session.program} '
            'api-resources" for a complete list of supported resources.\n'
        )
    builder = Builder(session, continue_on_error=True)
    builder.in_namespace(everywhere=bool(values["all-namespaces"])).files(values)
    builder.requires_namespace = builder.requires_namespace and not values["all-namespaces"]
    builder.labels(values.text("selector")).arguments(words, allow_empty_selector=True)
    builder.chunk = max(values["chunk-size"], 0)
    result = builder.do()
    found = list(result.visit())
    failures: list[Exception] = [one for one in found if isinstance(one, Exception)]
    if len(failures) == 1 and getattr(failures[0], "code", 0) == 404 and len(words) == 2:
        _describe_near(session, values, result.resources[0], failures[0])
        return
    if failures:  # as kubectl: what the visit met with is one failure, and never says `error:`
        failures = [Several(failures)]
    infos = [one for one in found if isinstance(one, Info)]
    _describe_all(session, values, infos, failures)
    if failures:
        raise Several(failures)
    if not infos:
        where = "" if values["all-namespaces"] else f" in {session.namespace} namespace."
        session.complain(f"No resources found{where}")


def _describe_near(
    session: Session, values: Values, resource: ApiResource, failure: Exception
) -> None:
    """There is none of that name: those whose names begin so."""
    near = _by_prefix(session, resource, values.arguments[1])
    if not near:
        raise failure
    for info in near:
        session.print(described(description(session, info, events=bool(values["show-events"]))))


def _describe_all(
    session: Session, values: Values, infos: list[Info], failures: list[Exception]
) -> None:
    """What fails in the same words is told once."""
    told: set[str] = set()
    is_first = True
    for info in infos:
        try:
            if info.source:
                info = get_object(session, info.resource, info.namespace, info.name)
            text = described(description(session, info, events=bool(values["show-events"])))
        except (ApiError, CliError) as error:
            if str(error) not in told:
                told.add(str(error))
                failures.append(error)
            continue
        session.write(text if is_first else f"\n\n{text}")
        is_first = False


def _by_prefix(session: Session, resource: ApiResource, prefix: str) -> list[Info]:
    objects = selection.list_objects(session, resource, session.namespace, {})
    return [
        info_of(resource, obj, session.namespace)
        for obj in objects
        if obj["metadata"]["name"].startswith(prefix)
    ]


def description(session: Session, info: Info, *, events: bool) -> str:
    writer = Writer()
    obj, kind, now = info.obj, info.resource.kind, session.clock.now()
    plain = PLAIN.get((info.resource.group, kind))
    if plain is not None:
        plain(writer, obj, now)
    elif kind in OWNERS and info.resource.group in ("apps", ""):
        _owner(session, writer, info)
    elif not _special(session, writer, info, now):
        generic.generic(writer, obj, info.resource.namespaced)
    if events and kind not in WITHOUT_EVENTS:
        event_lines(session, writer, info, now)
    return writer.text()


def _owner(session: Session, writer: Writer, info: Info) -> None:
    obj = info.obj
    path = f"/api/v1/namespaces/{info.namespace}/pods"
    pods = [
        item
        for item in session.api.json("GET", path).get("items") or []
        if (controller_of(item) or {}).get("uid") == uid_of(obj)
    ]
    if info.resource.kind == "StatefulSet":
        workloads.stateful_set(writer, obj, pods)
    elif info.resource.kind == "DaemonSet":
        workloads.daemon_set(writer, obj, pods)
    else:
        workloads.replica_set(writer, obj, pods)


def _special(session: Session, writer: Writer, info: Info, now: float) -> bool:
    obj = info.obj
    match (info.resource.group, info.resource.kind):
        case ("", "Service"):
            network.service(writer, obj, _slices(session, info.namespace, info.name))
        case ("networking.k8s.io", "Ingress"):
            network.ingress(writer, obj, _backends(session, info))
        case ("apps", "Deployment"):
            workloads.deployment(writer, obj, _replica_sets(session, info))
        case ("", "PersistentVolumeClaim"):
            storage.claim(writer, obj, _claim_users(session, info), now)
        case ("", "Namespace"):
            path = f"/api/v1/namespaces/{info.name}"
            quotas = _items(session, f"{path}/resourcequotas")
            cluster.namespace(writer, obj, quotas, _items(session, f"{path}/limitranges"))
        case ("", "Node"):
            pods, lease = _node_pods(session, info.name), _lease(session, info.name)
            node.node(writer, obj, pods, lease, now)
        case ("certificates.k8s.io", "CertificateSigningRequest"):
            from sampan.cli.describe import certificates

            certificates.signing_request(writer, obj, now)
        case _:
            return False
    return True


def _node_pods(session: Session, name: str) -> list[Obj] | None:
    """None where the user may not see them."""
    try:
        query = {"fieldSelector": f"spec.nodeName={name}"}
        pods: list[Obj] = session.api.json("GET", "/api/v1/pods", query).get("items") or []
    except ApiError as error:
        if error.reason != "Forbidden":
            raise
        return None
    return pods


def _replica_sets(session: Session, info: Info) -> list[Obj]:
    """The deployment's own, oldest first."""
    found = [
        item
        for item in _items(session, f"/apis/apps/v1/namespaces/{info.namespace}/replicasets")
        if (controller_of(item) or {}).get("uid") == uid_of(info.obj)
    ]
    return sorted(
        found, key=lambda item: (item["metadata"]["creationTimestamp"], item["metadata"]["name"])
    )


def _items(session: Session, path: str) -> list[Obj]:
    items: list[Obj] = session.api.json("GET", path).get("items") or []
    return items


def _lease(session: Session, name: str) -> Obj | str:
    """Or why it cannot be had."""
    try:
        path = f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{name}"
        return session.api.json("GET", path)
    except ApiError as error:
        return error.message


def _slices(session: Session, namespace: str, name: str) -> list[Obj]:
    path = f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices"
    query = {"labelSelector": f"kubernetes.io/service-name={name}"}
    items: list[Obj] = session.api.json("GET", path, query).get("items") or []
    return items


def _claim_users(session: Session, info: Info) -> list[str]:
    pods = _items(session, f"/api/v1/namespaces/{info.namespace}/pods")
    return [
        item["metadata"]["name"]
        for item in pods
        for volume in item["spec"].get("volumes") or []
        if (volume.get("persistentVolumeClaim") or {}).get("claimName") == info.name
    ]


def _backends(session: Session, info: Info) -> dict[str, str]:
    found: dict[str, str] = {}
    spec = info.obj["spec"]
    backends = [
        path["backend"]
        for rule in spec.get("rules") or []
        for path in (rule.get("http") or {}).get("paths") or []
    ]
    for backend in [*backends, *([spec["defaultBackend"]] if spec.get("defaultBackend") else [])]:
        name, port = network.service_of(backend)
        if name:
            found[f"{name}:{port}"] = _backend_endpoints(session, info.namespace, name, port)
    return found


def _backend_endpoints(session: Session, namespace: str, name: str, port: str) -> str:
    try:
        service = session.api.json("GET", f"/api/v1/namespaces/{namespace}/services/{name}")
    except ApiError as error:
        return f"<error: {error.message}>"
    for entry in service["spec"].get("ports") or []:
        if port in (str(entry["port"]), entry.get("name")):
            return network.endpoints_text(
                _slices(session, namespace, name), entry.get("name") or ""
            )
    return ""


DESCRIBE = Command(
    "describe",
    "describe (-f FILENAME | TYPE [NAME_PREFIX | -l label] | TYPE/NAME) [options]",
    "Show details of a specific resource or group of resources.",
    run,
    (
        *common_flags.FILES,
        common_flags.SELECTOR,
        common_flags.ALL_NAMESPACES,
        Flag("chunk-size", "int64", 500, "Return large lists in chunks of this size."),
        switch("show-events", "Display events related to the described object.", default=True),
    ),
)
