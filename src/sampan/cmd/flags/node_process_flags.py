"""The processes of a machine that joins: `kubelet`, `join`, `token`, `service-proxy`.

Job: their flags, and the settings that they make.
"""

import argparse

from sampan.cmd.flags import common, node_flags, release_flags, scenario, values
from sampan.cmd.settings import (
    NodeChoices,
    NodeProcessSettings,
    ProxyProcessSettings,
    UpSettings,
)


def add_verbs(verbs: common.Verbs) -> None:
    kubelet = common.node_verb(
        verbs, "kubelet", "run one node, with an API server elsewhere or with none"
    )
    add = kubelet.add_argument
    add("--kubeconfig", metavar="FILE", default="", help="the API server to join, and who we are")
    add("--join", metavar="DIR", default="", help="the data dir of a cluster on this machine")
    add("--bootstrap-kubeconfig", metavar="FILE", default="",
        help="the API server to join, and a token to ask for a certificate with")  # fmt: skip
    _add_node_process(kubelet)
    join = common.node_verb(verbs, "join", "make this machine a node of a cluster elsewhere")
    join.add_argument("server", metavar="https://ADDRESS:PORT", help="its API server")
    join.add_argument("--token", required=True, help="as `sampan token create` printed it")
    join.add_argument("--ca-hash", required=True, metavar="sha256:HEX",
                      help="the fingerprint of the cluster's authority, likewise")  # fmt: skip
    join.set_defaults(kubeconfig="", join="", bootstrap_kubeconfig="joining")
    _add_node_process(join)
    token = common.verb(verbs, "token", "print the line that another machine joins with")
    token.add_argument("action", choices=("create",))
    token.add_argument("--kubeconfig", metavar="FILE", default="",
                       help="of a cluster that is not in --data-dir")  # fmt: skip
    token.add_argument("--server", metavar="https://HOST:PORT", default="",
                       help="where nodes find the API (default: as the cluster says)")  # fmt: skip
    _add_proxy(verbs)


def _add_proxy(verbs: common.Verbs) -> None:
    text = "run the service proxy of this machine, with an API server elsewhere"
    proxy = verbs.add_parser("service-proxy", help=text, description=text)
    add = proxy.add_argument
    add("--kubeconfig", metavar="FILE", default="", help="the API server, and who we are")
    add("--node-name", metavar="NAME", default="", help="default: the host's name")
    add("--cluster-cidr", metavar="CIDR[,CIDR]", type=values.networks, default=(),
        help="of pods: connections from elsewhere are masqueraded "
        "(default: as the cluster says)")  # fmt: skip
    add("--service-cidr", metavar="CIDR[,CIDR]", type=values.networks, default=(),
        help="what no Service takes of these is refused "
        "(default: as the cluster says)")  # fmt: skip
    add("--healthz-bind-address", metavar="ADDRESS:PORT", type=values.socket_address,
        help="answer /healthz and /livez there, as kube-proxy at port 10256")  # fmt: skip
    add("--metrics-bind-address", metavar="ADDRESS:PORT", type=values.socket_address,
        help="answer /metrics and /proxyMode there, as kube-proxy at port 10249")  # fmt: skip
    add("--ready-file", metavar="FILE", default="", help="written when the rules are there")
    common.log_level(proxy)


def _add_node_process(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    node_flags.add_flags(parser)
    release_flags.add_flags(parser, serves=False)
    parser.set_defaults(network=None)  # as the cluster says
    add("--runtime", choices=("auto", "cri", "native", "simulated"), default="auto",
        help="auto: crun and conmon (native) where they are installed, else a private containerd "
        "(cri); a node that was started before stays on what it has")  # fmt: skip
    add("--cri-socket", metavar="PATH", default="", help="use a runtime that already runs")
    add(scenario.FLAG, metavar="FILE", default="", help=scenario.HELP)
    add("--port", type=values.port, default=10250, help="of the node's own HTTP server")
    add("--manifest-url", metavar="URL", default="", help="static pods from here, too")
    add("--manifest-url-header", metavar="KEY:VALUE", type=values.header, action="append",
        default=[], help="to send with it; may be given again")  # fmt: skip
    add("--register-node", type=values.truth, default=True, metavar="BOOL",
        help="make the Node object (default: true)")  # fmt: skip
    add("--node-labels", metavar="K=V,…", type=values.labels, default={}, help="of a new node")
    add("--register-with-taints", metavar="K=V:EFFECT,…", type=values.taints, default=[],
        help="of a new node")  # fmt: skip
    add("--tls-cert-file", metavar="FILE", default="", help="what the node's HTTP server shows")
    add("--tls-private-key-file", metavar="FILE", default="", help="its key")
    add("--client-ca-file", metavar="FILE", default="", help="who may call the node's HTTP server")
    add("--stop-pods", action="store_true", help="stop containers when the node stops")
    add("--ready-file", metavar="FILE", default="", help="written when the node is started")
    common.log_level(parser)


def node_settings(given: argparse.Namespace) -> NodeProcessSettings:
    choices = NodeChoices(
        config=given.kubelet_config,
        manifests=given.manifests,
        manifest_url=given.manifest_url,
        manifest_url_headers=tuple(given.manifest_url_header),
        register=given.register_node,
        standalone=not (given.kubeconfig or given.join or given.bootstrap_kubeconfig)
        and bool(given.manifests or given.manifest_url),
        labels=dict(given.node_labels),
        taints=tuple(given.register_with_taints),
        port=given.port,
        **node_flags.choices(given),
    )
    return NodeProcessSettings(
        up=UpSettings(
            data_dir=given.data_dir,
            runtime=given.runtime,
            cri_socket=given.cri_socket,
            node_name=given.node_name,
            node_ips=given.node_ip,
            ready_file=given.ready_file,
            log_level=given.log_level,
            keep_pods=not given.stop_pods,
            network=given.network or "auto",
            cni=given.cni,
            plugins=node_flags.plugin_choices(given),
            ranges=node_flags.ranges(given),
            stub_domains=tuple(given.dns_stub_domain),
            node=choices,
            release=release_flags.choices(given),
        ),
        kubeconfig=given.kubeconfig,
        join=given.join,
        network=given.network,
        bootstrap_kubeconfig=given.bootstrap_kubeconfig,
        tls_cert_file=given.tls_cert_file,
        tls_private_key_file=given.tls_private_key_file,
        client_ca_file=given.client_ca_file,
    )


def proxy_settings(given: argparse.Namespace) -> ProxyProcessSettings:
    return ProxyProcessSettings(
        kubeconfig=given.kubeconfig,
        node_name=given.node_name,
        cluster_cidrs=given.cluster_cidr,
        service_cidrs=given.service_cidr,
        healthz_address=given.healthz_bind_address,
        metrics_address=given.metrics_bind_address,
        ready_file=given.ready_file,
        log_level=given.log_level,
    )
