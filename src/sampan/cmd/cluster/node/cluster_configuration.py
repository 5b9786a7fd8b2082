"""What a machine that joins must know of its cluster: ranges of addresses, and the network's mode.

Job: keep them in a ConfigMap that nodes may read, as kubeadm does; read it, or kubeadm's own.
Invariant: who gave flags is not overruled; a cluster that says nothing is no reason not to start.
"""

import ipaddress
from collections.abc import Mapping

from sampan.api.errors import AlreadyExists, ApiError, Conflict, Forbidden, NotFound
from sampan.api.objects import Obj, name_of
from sampan.api.resources import CONFIG_MAPS, SERVICE_CIDRS
from sampan.client.contract import Client
from sampan.cmd.flags import values
from sampan.cmd.settings import CLUSTER_DOMAIN
from sampan.core.fast_dataclass import dataclass
from sampan.core.log import get_logger

NAMESPACE, NAME = "kube-system", "sampan-config"  # of the ConfigMap
_NAMES = (NAME, "kubeadm-config")  # where it is looked for
_DOCUMENT, _MODE = "ClusterConfiguration", "network"
_MODES = ("auto", "host-gw", "vxlan", "none")
_DEFAULT_SERVICE_CIDR = "kubernetes"  # the API server's own, as it was started
log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ClusterConfiguration:
    """Ranges are lists with commas, one of each family; empty: not known."""

    cluster_cidr: str = ""
    service_cidr: str = ""
    network: str = ""

    def record(self) -> dict[str, str]:
        """As a data directory remembers it."""
        facts = {"cluster_cidr": self.cluster_cidr, "service_cidr": self.service_cidr,
                 "network": self.network}  # fmt: skip
        return {name: fact for name, fact in facts.items() if fact}


def config_map(known: ClusterConfiguration) -> Obj:
    """kubeadm's document: what reads that one finds its words here."""
    subnets = {"podSubnet": known.cluster_cidr, "serviceSubnet": known.service_cidr}
    lines = [f"  {name}: {cidr}\n" for name, cidr in subnets.items() if cidr]
    document = (
        "apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\nnetworking:\n"
        f"  dnsDomain: {CLUSTER_DOMAIN}\n{''.join(lines)}"
    )
    data = {_DOCUMENT: document, **({_MODE: known.network} if known.network else {})}
    metadata = {"name": NAME, "namespace": NAMESPACE}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def configuration_in(found: Obj) -> ClusterConfiguration:
    """Of a ConfigMap that somebody may have edited: what makes no sense is not known."""
    import yaml  # only who joins needs it

    data = found.get("data") or {}
    try:
        document = yaml.safe_load(str(data.get(_DOCUMENT) or ""))
    except yaml.YAMLError as error:
        log.warning("the cluster's configuration cannot be read", error=error)
        document = None
    networking = document.get("networking") if isinstance(document, Mapping) else None
    if not isinstance(networking, Mapping):
        networking = {}
    mode = str(data.get(_MODE) or "")
    return ClusterConfiguration(
        _ranges(networking.get("podSubnet")),
        _ranges(networking.get("serviceSubnet")),
        mode if mode in _MODES else "",
    )


def _ranges(found: object) -> str:
    try:
        return ",".join(str(ipaddress.ip_network(each)) for each in values.names(str(found or "")))
    except ValueError as error:
        log.warning("the cluster's configuration has no such range", error=error)
        return ""


async def read_configuration(client: Client) -> ClusterConfiguration | None:
    """None: the cluster does not say, or cannot be asked now."""
    for name in _NAMES:
        try:
            return configuration_in(await client.get(CONFIG_MAPS, NAMESPACE, name))
        except (NotFound, Forbidden):
            continue
        except ApiError as error:
            log.warning("cluster configuration not readable", error=error)
            return None
    return None


async def publish(client: Client, known: ClusterConfiguration) -> None:
    """Where the API refuses (another's, say) its nodes are told by flags."""
    try:
        if not known.service_cidr:
            known = ClusterConfiguration(
                known.cluster_cidr, await service_cidr(client), known.network
            )
        await _put(client, config_map(known))
    except ApiError as error:
        log.warning("cluster configuration for joining nodes not published", error=error)


async def service_cidr(client: Client) -> str:
    """As the API itself says it, in any cluster since v1.33; empty: not known."""
    try:
        listed = (await client.list(SERVICE_CIDRS)).items
    except ApiError as error:
        log.warning("service CIDR not known", error=error)
        return ""
    for found in listed:
        if name_of(found) == _DEFAULT_SERVICE_CIDR:
            return ",".join(found["spec"]["cidrs"])
    return ""


async def _put(client: Client, wanted: Obj) -> None:
    try:
        await client.create(CONFIG_MAPS, wanted, NAMESPACE)
        return
    except AlreadyExists:
        found = await client.get(CONFIG_MAPS, NAMESPACE, name_of(wanted))
    # What is not ours to say, an administrator may have said.
    data = {**(found.get("data") or {}), **wanted["data"]}
    if found.get("data") != data:
        try:
            await client.update(CONFIG_MAPS, {**found, "data": data})
        except Conflict:
            log.info("cluster configuration was published by another process")
