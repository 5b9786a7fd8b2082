"""The processes of the control plane, each by itself: `apiserver`, `scheduler`, `controllers`, and
`certs`, which makes what they know each other by.

Job: their flags, under upstream's names where it has them, and the settings that they make.
"""

import argparse

from sampan.api.rules.durations import parse_seconds
from sampan.cmd.errors import CannotStart
from sampan.cmd.flags import api_server_flags, common, release_flags, tracing, values
from sampan.cmd.flags.shown_flags import shown_flags
from sampan.cmd.settings import (
    DEFAULT_PORT,
    SERVICE_CIDR,
    ApiServerProcessSettings,
    CertsSettings,
    ComponentSettings,
    ControllersSettings,
    ElectionChoices,
    SchedulerProcessSettings,
    ServerFiles,
    ServingChoices,
)

SCHEDULER_PORT, CONTROLLERS_PORT = 10259, 10257  # upstream's


def add_verbs(verbs: common.Verbs) -> None:
    _add_certs(verbs)
    _add_apiserver(verbs)
    _add_scheduler(verbs)
    _add_controllers(verbs)


def _add_certs(verbs: common.Verbs) -> None:
    text = "make a cluster's authority and keys, and a machine's certificates and kubeconfigs"
    add = verbs.add_parser("certs", help=text, description=text).add_argument
    add("--cert-dir", metavar="DIR", required=True,
        help="ca.crt, ca.key, sa.key and what they sign; what is good in it stays")  # fmt: skip
    add("--server", metavar="https://HOST:PORT", required=True,
        help="where clients find the API servers: a load balancer, or one of them")  # fmt: skip
    add("--names", metavar="NAME,…", type=values.names, default=(),
        help="of the API server's certificate, beside this machine's own")  # fmt: skip
    _service_range(add)


def _add_apiserver(verbs: common.Verbs) -> None:
    text = "run an API server, on a store of its own or on one that several share"
    parser = verbs.add_parser("apiserver", help=text, description=text)
    add = parser.add_argument
    add("--etcd-servers", metavar="URL,…", type=values.names, default=(),
        help="https://HOST:PORT or http://HOST:PORT")  # fmt: skip
    add("--etcd-cafile", metavar="FILE", default="", help="who signs etcd's certificates")
    add("--etcd-certfile", metavar="FILE", default="", help="as whom etcd knows us")
    add("--etcd-keyfile", metavar="FILE", default="", help="its key")
    add("--store", metavar="URL", default="",
        help="instead: sqlite:////absolute/path, memory: or etcd://…/prefix")  # fmt: skip
    add("--bind-address", metavar="IP", default="127.0.0.1", help="default: %(default)s")
    add("--secure-port", type=values.port, default=DEFAULT_PORT, help="default: %(default)s")
    add("--advertise-address", metavar="IP", default="",
        help="in the endpoints of the Service kubernetes (default: as it listens)")  # fmt: skip
    _service_range(add)
    add("--service-node-port-range", metavar="FIRST-LAST", type=values.port_range,
        default=(30000, 32767), help="default: 30000-32767")  # fmt: skip
    add("--cert-dir", metavar="DIR", default="",
        help="as `sampan certs` filled it: for all files below that are not given")  # fmt: skip
    add("--tls-cert-file", metavar="FILE", default="", help="what clients are shown")
    add("--tls-private-key-file", metavar="FILE", default="", help="its key")
    add("--client-ca-file", metavar="FILE", default="", help="who signs clients' certificates")
    add("--service-account-signing-key-file", metavar="FILE", default="", help="signs tokens")
    add("--service-account-signing-endpoint", metavar="SOCKET", default="",
        help="instead: where a program of yours signs them (ExternalJWTSigner)")  # fmt: skip
    add("--kubelet-client-certificate", metavar="FILE", default="", help="as whom it calls nodes")
    add("--kubelet-client-key", metavar="FILE", default="", help="its key")
    add("--kubelet-certificate-authority", metavar="FILE", default="",
        help="who signs the nodes' certificates")  # fmt: skip
    add("--proxy-client-cert-file", metavar="FILE", default="",
        help="as whom it calls the servers of APIServices; --requestheader-client-ca-file signs "
        "it")  # fmt: skip
    add("--proxy-client-key-file", metavar="FILE", default="", help="its key")
    add(tracing.FLAG, metavar="FILE", default="", help=tracing.HELP)
    release_flags.add_flags(parser)
    api_server_flags.add_flags(parser)
    _end(parser)


def _add_scheduler(verbs: common.Verbs) -> None:
    text = "run the scheduler, with an API server elsewhere"
    parser = verbs.add_parser("scheduler", help=text, description=text)
    parser.add_argument("--config", dest="scheduler_config", metavar="FILE", default="",
                        help="a KubeSchedulerConfiguration")  # fmt: skip
    _add_component(parser, SCHEDULER_PORT)


def _add_controllers(verbs: common.Verbs) -> None:
    text = "run the controllers, with an API server elsewhere"
    parser = verbs.add_parser("controllers", help=text, description=text)
    add = parser.add_argument
    common.controllers(parser)
    add("--use-service-account-credentials", type=values.truth, default=False, metavar="BOOL",
        help="each controller acts as a service account of its own (default: false)")  # fmt: skip
    add("--root-ca-file", metavar="FILE", default="",
        help="what pods verify the API server with (default: the kubeconfig's)")  # fmt: skip
    add("--cluster-signing-cert-file", metavar="FILE", default="", help="signs certificates")
    add("--cluster-signing-key-file", metavar="FILE", default="", help="its key")
    add("--service-account-private-key-file", metavar="FILE", default="",
        help="signs the tokens that secrets hold")  # fmt: skip
    add("--cluster-cidr", metavar="CIDR[,CIDR]", type=values.networks, default=(),
        help="nodes get their podCIDRs from here, one of each family "
        "(default: from nobody)")  # fmt: skip
    _add_component(parser, CONTROLLERS_PORT)


def _add_component(parser: argparse.ArgumentParser, port: int) -> None:
    """What the scheduler and the controllers have in common."""
    add = parser.add_argument
    add("--kubeconfig", metavar="FILE", default="", help="the API server, and who we are")
    add("--leader-elect", type=values.truth, default=None, metavar="BOOL",
        help="work only while no other process does (default: true)")  # fmt: skip
    for name, text in (("lease-duration", "15s"), ("renew-deadline", "10s"),
                       ("retry-period", "2s")):  # fmt: skip
        add(f"--leader-elect-{name}", metavar="DURATION", type=parse_seconds, default=0.0,
            help=f"default: {text}")  # fmt: skip
    add("--leader-elect-resource-name", metavar="NAME", default="", help="of the Lease")
    add("--leader-elect-resource-namespace", metavar="NAME", default="",
        help="default: kube-system")  # fmt: skip
    add("--bind-address", metavar="IP", default="127.0.0.1", help="default: %(default)s")
    add("--secure-port", type=values.port, default=port,
        help="health checks and /metrics; 0: none (default: %(default)s)")  # fmt: skip
    add("--tls-cert-file", metavar="FILE", default="",
        help="what callers are shown (default: a certificate made at start)")  # fmt: skip
    add("--tls-private-key-file", metavar="FILE", default="", help="its key")
    add("--client-ca-file", metavar="FILE", default="",
        help="whose certificates they may show (default: as the API server's)")  # fmt: skip
    add("--authentication-kubeconfig", metavar="FILE", default="",
        help="with which tokens are reviewed (default: --kubeconfig)")  # fmt: skip
    add("--authorization-kubeconfig", metavar="FILE", default="",
        help="with which is asked what callers may (default: --kubeconfig)")  # fmt: skip
    add("--authorization-always-allow-paths", metavar="PATH,…", type=values.names,
        default=ServingChoices().open_paths,
        help="for everybody (default: /healthz,/readyz,/livez)")  # fmt: skip
    release_flags.add_flags(parser, serves=False)
    _end(parser)


def _service_range(add: common.Add) -> None:
    add("--service-cluster-ip-range", metavar="CIDR[,CIDR]", type=values.networks,
        default=(SERVICE_CIDR,),
        help="one of each family; Services have the first one's "
        f"(default: {SERVICE_CIDR})")  # fmt: skip


def _end(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--ready-file", metavar="FILE", default="", help="written when it is there")
    common.log_level(parser)


def certs_settings(given: argparse.Namespace) -> CertsSettings:
    return CertsSettings(given.cert_dir, given.server, given.names, given.service_cluster_ip_range)


def apiserver_settings(given: argparse.Namespace) -> ApiServerProcessSettings:
    """Raises CannotStart."""
    return ApiServerProcessSettings(
        store=_store(given),
        cert_dir=given.cert_dir,
        files=ServerFiles(
            given.tls_cert_file,
            given.tls_private_key_file,
            given.client_ca_file,
            given.service_account_signing_key_file,
            given.kubelet_client_certificate,
            given.kubelet_client_key,
            given.kubelet_certificate_authority,
            given.proxy_client_cert_file,
            given.proxy_client_key_file,
        ),
        bind_address=given.bind_address,
        port=given.secure_port,
        advertise_address=given.advertise_address,
        service_cidrs=given.service_cluster_ip_range,
        node_ports=given.service_node_port_range,
        security=api_server_flags.choices(given),
        token_endpoint=_token_endpoint(given),
        tracing_config_file=given.tracing_config_file,
        ready_file=given.ready_file,
        log_level=given.log_level,
        release=release_flags.choices(given),
        flags=shown_flags(given),
    )


def _token_endpoint(given: argparse.Namespace) -> str:
    endpoint: str = given.service_account_signing_endpoint
    if endpoint and (given.service_account_signing_key_file or given.account_key_files):
        raise CannotStart(
            "can't set `--service-account-signing-key-file` and/or `--service-account-key-file` "
            "with `--service-account-signing-endpoint` (They are mutually exclusive)"
        )
    if endpoint.startswith("@"):
        raise CannotStart("--service-account-signing-endpoint: abstract sockets are not there")
    return endpoint


def _store(given: argparse.Namespace) -> str:
    tls = {
        "cacert": given.etcd_cafile, "cert": given.etcd_certfile, "key": given.etcd_keyfile,
    }  # fmt: skip
    if given.store:
        if given.etcd_servers or any(tls.values()):
            raise CannotStart("--store and --etcd-… say the same thing: give one of them")
        return str(given.store)
    if not given.etcd_servers:
        raise CannotStart("--etcd-servers or --store says where objects are kept")
    return etcd_store(given.etcd_servers, {key: path for key, path in tls.items() if path})


def etcd_store(servers: tuple[str, ...], tls: dict[str, str]) -> str:
    """The URL of a store. Raises CannotStart."""
    schemes = {server.partition("://")[0] for server in servers}
    if not schemes <= {"http", "https"} or len(schemes) != 1:
        raise CannotStart("--etcd-servers are all http://HOST:PORT, or all https://HOST:PORT")
    if tls and schemes == {"http"}:
        raise CannotStart("--etcd-servers with http:// need no certificates: write https://")
    hosts = ",".join(server.partition("://")[2].rstrip("/") for server in servers)
    files = "&".join(f"{key}={path}" for key, path in tls.items())
    scheme = "etcds" if schemes == {"https"} else "etcd"
    return f"{scheme}://{hosts}" + (f"/?{files}" if files else "")


def scheduler_settings(given: argparse.Namespace) -> SchedulerProcessSettings:
    return SchedulerProcessSettings(_component(given), given.scheduler_config)


def controllers_settings(given: argparse.Namespace) -> ControllersSettings:
    return ControllersSettings(
        component=_component(given),
        controllers=given.controllers,
        account_credentials=given.use_service_account_credentials,
        root_ca_file=given.root_ca_file,
        signing_cert_file=given.cluster_signing_cert_file,
        signing_key_file=given.cluster_signing_key_file,
        account_key_file=given.service_account_private_key_file,
        cluster_cidrs=given.cluster_cidr,
    )


def _component(given: argparse.Namespace) -> ComponentSettings:
    return ComponentSettings(
        kubeconfig=given.kubeconfig,
        election=ElectionChoices(
            given.leader_elect,
            given.leader_elect_resource_namespace,
            given.leader_elect_resource_name,
            given.leader_elect_lease_duration,
            given.leader_elect_renew_deadline,
            given.leader_elect_retry_period,
        ),
        serving=ServingChoices(
            given.bind_address,
            given.secure_port,
            given.tls_cert_file,
            given.tls_private_key_file,
            given.client_ca_file,
            given.authentication_kubeconfig,
            given.authorization_kubeconfig,
            given.authorization_always_allow_paths,
        ),
        ready_file=given.ready_file,
        log_level=given.log_level,
        release=release_flags.choices(given),
        flags=shown_flags(given),
    )
