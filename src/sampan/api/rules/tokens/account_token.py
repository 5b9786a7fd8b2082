"""Service account tokens that several parts know of. Pure.

Job: one description of the volume through which a pod has its account's token, for whoever mounts
    it and whoever meets it in nearly every pod; the accounts of the parts of a node.
"""

from sampan.api.objects import Obj

TOKEN_SECONDS = 3607  # as upstream: recognisable as the default
# As whom the network of a node asks the API: Services, names and policies concern all nodes, the
# kubelet's own certificate is for what concerns its node.
NODE_ACCOUNTS_NAMESPACE, NETWORK_ACCOUNT = "kube-system", "sampan-node-network"
# As whom a node keeps the directories of its local volumes.
VOLUMES_ACCOUNT = "sampan-node-volumes"
NODE_ACCOUNTS = (NETWORK_ACCOUNT, VOLUMES_ACCOUNT)


def token_projection() -> Obj:
    """The caller's own."""
    namespace = {
        "path": "namespace",
        "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"},
    }
    bundle = {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}
    return {
        "defaultMode": 0o644,
        "sources": [
            {"serviceAccountToken": {"expirationSeconds": TOKEN_SECONDS, "path": "token"}},
            {"configMap": bundle},
            {"downwardAPI": {"items": [namespace]}},
        ],
    }
