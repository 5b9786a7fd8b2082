"""The cluster's certificates and keys: made on the first start, kept ever after.

Job: say which certificates a cluster needs, and where they lie; certificates/ makes and keeps them.
Invariant: the CAs and the service account key are made once and never replaced: clients keep
    trusting the cluster and issued tokens stay valid.
Invariant: keys are 0600 from the moment they exist.
"""

from collections.abc import Sequence
from pathlib import Path

from sampan.core.fast_dataclass import dataclass

CA_DAYS = 3650
LEAF_DAYS = 365
RENEW_DAYS = 60
KUBELET_CLIENT = "kube-apiserver-kubelet-client"
FRONT_PROXY_CLIENT = "front-proxy-client"
FRONT_PROXY_CA = "front-proxy-ca"
ETCD_CA = "etcd-ca"
ETCD, ETCD_CLIENT = "etcd", "apiserver-etcd-client"
AUTHORITIES = {"ca": "kubernetes", FRONT_PROXY_CA: FRONT_PROXY_CA, ETCD_CA: ETCD_CA}  # file → name


@dataclass(frozen=True, slots=True)
class Leaf:
    """One certificate to have: who it names, and what it may be used for."""

    file: str
    common_name: str
    organizations: tuple[str, ...] = ()
    names: tuple[str, ...] = ()  # DNS names and addresses it serves under; none: a client's
    authority: str = "ca"  # who signs it
    calls: bool = False  # it serves, and calls others of its kind

    @property
    def serves(self) -> bool:
        return bool(self.names)


@dataclass(frozen=True, slots=True)
class Pki:
    """Where everything lies."""

    root: Path

    @property
    def ca(self) -> Path:
        return self.root / "ca.crt"

    @property
    def ca_key(self) -> Path:
        return self.root / "ca.key"

    @property
    def token_key(self) -> Path:
        """Signs service account tokens."""
        return self.root / "sa.key"

    def certificate(self, file: str) -> Path:
        return self.root / f"{file}.crt"

    def key(self, file: str) -> Path:
        return self.root / f"{file}.key"


def leaves(server_names: Sequence[str], node_name: str, node_names: Sequence[str]) -> list[Leaf]:
    """Every leaf certificate of a cluster, with the identities that the original uses."""
    return [
        *server_leaves(server_names),
        *component_leaves(),
        Leaf("kubelet-client", f"system:node:{node_name}", ("system:nodes",)),
        node_leaf(node_name, node_names),
    ]


def node_leaf(name: str, served: Sequence[str]) -> Leaf:
    """With which a node's own server is known, under the names that it serves."""
    return Leaf("kubelet", f"system:node:{name}", ("system:nodes",), tuple(served))


def server_leaves(names: Sequence[str]) -> list[Leaf]:
    """Of an API server."""
    return [
        Leaf("apiserver", "kube-apiserver", names=tuple(dict.fromkeys(names))),
        # Bound to system:kubelet-api-admin and nothing else: whoever got it into his hands, or is
        # asked with it in a kubelet's place, may not rule the cluster.
        Leaf("apiserver-kubelet-client", KUBELET_CLIENT),
        # Signed by an authority of its own: whoever shows it speaks for others, and nobody whom
        # the cluster's own authority signs may do that.
        Leaf(FRONT_PROXY_CLIENT, FRONT_PROXY_CLIENT, authority=FRONT_PROXY_CA),
    ]


def etcd_leaves(names: Sequence[str]) -> list[Leaf]:
    """Of a member of etcd, for clients and for the other members, and of an API server that is its
    client. Signed by an authority of its own: it would let nobody else in."""
    return [
        Leaf(ETCD, "etcd", names=tuple(dict.fromkeys(names)), authority=ETCD_CA, calls=True),
        Leaf(ETCD_CLIENT, "kube-apiserver-etcd-client", authority=ETCD_CA),
    ]


def component_leaves() -> list[Leaf]:
    """Of who calls API servers."""
    return [
        Leaf("admin", "kubernetes-admin", ("system:masters",)),
        Leaf("scheduler", "system:kube-scheduler"),
        Leaf("controller-manager", "system:kube-controller-manager"),
    ]
