"""What a user can choose about `sampan up` and `sampan kubelet`, as frozen values.

Job: hold the choices, with their defaults. Flags become this in cmd/flags/ and nowhere else.
"""

from collections.abc import Mapping
from dataclasses import field
from typing import Literal

from sampan.cmd.flags.api_server_flags import SecurityChoices
from sampan.core.fast_dataclass import dataclass

NetworkMode = Literal["auto", "host-gw", "vxlan", "none"]
StubDomain = tuple[str, tuple[tuple[str, int], ...]]  # a domain, its name servers and their ports
CniChoice = Literal["builtin", "reference"]
RuntimeChoice = Literal["auto", "cri", "native", "simulated", "none"]
ClockChoice = Literal["real", "virtual"]
DEFAULT_DATA_DIR = "./sampan-data"
DEFAULT_PORT = 6443
SERVICE_CIDR = "10.96.0.0/12"
CLUSTER_CIDR = "10.244.0.0/16"  # of pods
SERVICE_CIDR_IPV6, CLUSTER_CIDR_IPV6 = "fd00:10:96::/112", "fd00:10:244::/56"
CLUSTER_DOMAIN = "cluster.local"


@dataclass(frozen=True, slots=True)
class ReleaseChoices:
    """Which Kubernetes; cmd/cluster/releases.py reads the words."""

    kubernetes_version: str = ""  # empty: as before, or the default
    emulated_version: str = ""
    feature_gates: tuple[str, ...] = ()  # each A=true,B=false
    runtime_config: tuple[str, ...] = ()  # each group/version=true


@dataclass(frozen=True, slots=True)
class NodeChoices:
    """What a user can choose about one node, wherever it runs."""

    config: str = ""  # a KubeletConfiguration file
    config_dir: str = ""  # a directory of drop-ins for it
    manifests: str = ""  # a directory of static pods, or one file
    manifest_url: str = ""
    manifest_url_headers: tuple[tuple[str, str], ...] = ()
    register: bool = True
    standalone: bool = False  # there is no API server
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Mapping[str, str], ...] = ()
    port: int = 0  # of the node's own HTTP server; 0: 10250, or any where that is taken
    credential_provider_config: str = ""  # a file, or a directory of files
    credential_provider_bin_dir: str = ""
    cgroup_driver: str = ""  # empty: as the runtime is set up
    scenario: str = ""  # a file that says how simulated pods behave
    shutdown_seconds: float = 0.0  # how long pods may take when the node is stopped; 0: not so
    shutdown_critical_seconds: float = 0.0  # how much of it is kept for critical pods
    registry_mirrors: tuple[tuple[str, str], ...] = ()  # registry, URL; several of one: in order


@dataclass(frozen=True, slots=True)
class Ranges:
    """Of addresses, one of each family, the main one first; empty: as before, or the default."""

    cluster: tuple[str, ...] = ()  # of pods
    service: tuple[str, ...] = ()
    families: tuple[str, ...] = ()  # ipv4, ipv6; empty: those of the ranges


@dataclass(frozen=True, slots=True)
class PluginChoices:
    """With --network none: the user's CNI plugin, and what is left to sampan."""

    conf_dir: str = ""  # empty: where they usually are
    bin_dir: str = ""
    service_proxy: bool = True  # Services and names


@dataclass(frozen=True, slots=True)
class IngressChoices:
    """Where Ingresses are served; 0: any free port."""

    http_port: int
    https_port: int


@dataclass(frozen=True, slots=True)
class UpSettings:
    data_dir: str = ""  # main.py says which one is meant
    kubeconfig: str = ""  # also write it here; it is always in the data dir
    bind_address: str = "127.0.0.1"
    port: int = DEFAULT_PORT  # 0: the one of last time if it is free, else any
    store: str = ""  # empty: SQLite in the data dir
    runtime: RuntimeChoice = "auto"
    rootless: bool = False  # in a user namespace of our own
    cgroup_place: str = ""  # the cgroup that an ordinary user was given to divide
    nodes: int = 1  # simulated ones
    node_names: tuple[str, ...] = ()  # theirs, instead of a number of them
    nodes_file: str = ""  # types of simulated nodes, instead of both
    cri_socket: str = ""
    node_name: str = ""
    node_ips: tuple[str, ...] = ()  # empty: the machine's own
    name_servers: tuple[str, ...] = ()  # empty: the machine's own
    ready_file: str = ""
    log_level: str = "warning"
    keep_pods: bool = False
    network: NetworkMode = "auto"  # how pods reach those of other nodes
    cni: CniChoice = "builtin"  # who makes pods' interfaces
    plugins: PluginChoices = PluginChoices()
    ranges: Ranges = Ranges()
    stub_domains: tuple[StubDomain, ...] = ()
    node: NodeChoices = NodeChoices()
    controllers: tuple[str, ...] = ("*",)  # `*` is all, `-job` all but that one
    stages: tuple[str, ...] = ()  # files of KWOK's Stages
    tracing: bool = True  # every step of an object's way is remembered, for `sampan trace`
    tracing_config_file: str = ""  # where spans are exported to
    scheduler: bool = True  # False: somebody else's takes its place
    scheduler_config: str = ""  # a KubeSchedulerConfiguration file
    security: SecurityChoices = field(default_factory=SecurityChoices)
    clock: ClockChoice = "real"  # virtual: it moves when somebody says so
    quiet_nodes: bool = False  # simulated ones whose heartbeats nobody waits for
    measures_plugins: bool = False  # of the scheduler, each time one is asked
    processes: bool = False  # each part is a process of its own
    release: ReleaseChoices = ReleaseChoices()
    flags: Mapping[str, str] = field(default_factory=dict)  # all of them, for /flagz
    manifests_to_apply: tuple[str, ...] = ()  # files and directories, when the cluster is there
    ingress: IngressChoices | None = None  # None: Ingresses are somebody else's


@dataclass(frozen=True, slots=True)
class NodeProcessSettings:
    """`sampan kubelet`: a node as a process of its own."""

    up: UpSettings  # what it shares with the node of an all-in-one cluster
    server: str = ""  # with `join`: where the API is, if that is not where its kubeconfig says
    awaits_ready: bool = False  # it is started when it is Ready
    kubeconfig: str = ""  # how it reaches the API; empty: by `join`, or not at all
    join: str = ""  # the data directory of a cluster on this machine
    network: NetworkMode | None = None  # None: as the cluster says
    bootstrap_kubeconfig: str = ""  # with what it asks for a certificate of its own
    tls_cert_file: str = ""
    tls_private_key_file: str = ""
    client_ca_file: str = ""  # who may call the node's HTTP server


@dataclass(frozen=True, slots=True)
class ServerFiles:
    """What an API server is known by and knows others by; empty: from the directory of keys."""

    certificate: str = ""
    key: str = ""
    client_ca: str = ""
    token_key: str = ""  # signs service account tokens
    kubelet_certificate: str = ""  # as whom it calls kubelets
    kubelet_key: str = ""
    kubelet_ca: str = ""  # who signs the kubelets' certificates
    proxy_certificate: str = ""  # as whom it calls the servers of others' APIs
    proxy_key: str = ""


@dataclass(frozen=True, slots=True)
class ApiServerProcessSettings:
    """`sampan apiserver`: an API server as a process of its own."""

    store: str  # URL
    cert_dir: str = ""
    files: ServerFiles = ServerFiles()
    bind_address: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    advertise_address: str = ""  # empty: as it listens, or the machine's
    service_cidrs: tuple[str, ...] = (SERVICE_CIDR,)
    node_ports: tuple[int, int] = (30000, 32767)
    security: SecurityChoices = field(default_factory=SecurityChoices)
    token_endpoint: str = ""  # the socket of who signs tokens, instead of a key
    tracing_config_file: str = ""  # where spans are exported to
    ready_file: str = ""
    log_level: str = "warning"
    release: ReleaseChoices = ReleaseChoices()
    flags: Mapping[str, str] = field(default_factory=dict)  # all of them, for /flagz


@dataclass(frozen=True, slots=True)
class Beside:
    """`sampan testserver`: what is wanted beside an API server."""

    controllers: tuple[str, ...] = (
        "namespace-controller", "garbage-collector-controller",
        "clusterrole-aggregation-controller",
    )  # fmt: skip
    nodes: int = 0  # simulated; with them comes the scheduler
    scenario: str = ""  # what their pods do
    stages: tuple[str, ...] = ()  # files of KWOK's Stages


@dataclass(frozen=True, slots=True)
class CertsSettings:
    """`sampan certs`: the authority of a cluster, and what it signs for one machine."""

    cert_dir: str
    server: str  # URL, for the kubeconfigs
    names: tuple[str, ...] = ()  # of the API server, beside those of the machine
    service_cidrs: tuple[str, ...] = (SERVICE_CIDR,)


@dataclass(frozen=True, slots=True)
class ElectionChoices:
    """Of the leader among several processes; None and 0: not chosen here."""

    elects: bool | None = None
    namespace: str = ""
    name: str = ""
    lease_seconds: float = 0.0
    renew_seconds: float = 0.0
    retry_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class ServingChoices:
    """The port on which a component says how it is."""

    bind_address: str = "127.0.0.1"
    port: int = 0  # 0: there is none
    certificate: str = ""  # empty: one that lasts as long as the process
    key: str = ""
    client_ca: str = ""  # whose certificates callers may show; empty: as the cluster says
    authentication_kubeconfig: str = ""  # who has tokens reviewed; empty: the process itself
    authorization_kubeconfig: str = ""  # and who has wishes
    open_paths: tuple[str, ...] = ("/healthz", "/readyz", "/livez")


@dataclass(frozen=True, slots=True)
class ComponentSettings:
    """What the processes of the scheduler and of the controllers have in common."""

    kubeconfig: str = ""
    election: ElectionChoices = ElectionChoices()
    serving: ServingChoices = ServingChoices()
    ready_file: str = ""
    log_level: str = "warning"
    release: ReleaseChoices = ReleaseChoices()
    flags: Mapping[str, str] = field(default_factory=dict)  # all of them, for /flagz


@dataclass(frozen=True, slots=True)
class SchedulerProcessSettings:
    """`sampan scheduler`: the scheduler as a process of its own."""

    component: ComponentSettings
    config: str = ""  # a KubeSchedulerConfiguration file


@dataclass(frozen=True, slots=True)
class ControllersSettings:
    """`sampan controllers`: the controllers as a process of their own."""

    component: ComponentSettings
    controllers: tuple[str, ...] = ("*",)
    account_credentials: bool = False  # each controller acts as its own service account
    root_ca_file: str = ""  # what pods verify the API server with; empty: the kubeconfig's
    signing_cert_file: str = ""  # signs certificates; empty: nobody does
    signing_key_file: str = ""
    account_key_file: str = ""  # signs the tokens in secrets; empty: nobody does
    cluster_cidrs: tuple[str, ...] = ()  # nodes get their podCIDR from here; empty: from nobody


@dataclass(frozen=True, slots=True)
class ProxyProcessSettings:
    """`sampan service-proxy`: the service proxy as a process of its own."""

    kubeconfig: str
    node_name: str = ""
    cluster_cidrs: tuple[str, ...] = ()  # of pods: what comes from elsewhere is masqueraded
    service_cidrs: tuple[str, ...] = ()  # what is left for them is refused
    healthz_address: tuple[str, int] | None = None  # None: nobody asks
    metrics_address: tuple[str, int] | None = None
    ready_file: str = ""
    log_level: str = "warning"
