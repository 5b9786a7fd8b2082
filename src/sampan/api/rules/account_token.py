"""The volume through which a pod has its service account's token. Pure.

Job: one description of it, for whoever mounts it and whoever meets it in nearly every pod.
"""

from sampan.api.objects import Obj

TOKEN_SECONDS = 3607  # as upstream: recognisable as the default


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
