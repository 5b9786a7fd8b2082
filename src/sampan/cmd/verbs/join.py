"""`sampan join`: this machine becomes a node of a cluster elsewhere.

Job: trust the cluster by its fingerprint, then run as `sampan kubelet` with a bootstrap token.
"""

import sys
from base64 import b64encode
from dataclasses import replace

import yaml

from sampan.cmd.cluster.ca_pin import authority_of
from sampan.cmd.cluster.data_dir import DataDirError, open_data_dir, write_private
from sampan.cmd.errors import CannotStart
from sampan.cmd.settings import NodeProcessSettings
from sampan.cmd.verbs import kubelet

FILE = "bootstrap.kubeconfig"


def run(server: str, token: str, ca_hash: str, settings: NodeProcessSettings) -> int:
    try:
        ca = authority_of(server, ca_hash)
        path = open_data_dir(settings.up.data_dir).root / FILE
        write_private(path, yaml.safe_dump(bootstrap_kubeconfig(server, token, ca)).encode())
    except (CannotStart, DataDirError) as error:
        print(f"sampan: {error}", file=sys.stderr)
        return 1
    return kubelet.run(replace(settings, bootstrap_kubeconfig=str(path)))


def bootstrap_kubeconfig(server: str, token: str, ca: bytes) -> dict[str, object]:
    cluster = {"server": server, "certificate-authority-data": b64encode(ca).decode()}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "sampan", "cluster": cluster}],
        "users": [{"name": "node", "user": {"token": token}}],
        "contexts": [{"name": "sampan", "context": {"cluster": "sampan", "user": "node"}}],
        "current-context": "sampan",
    }
