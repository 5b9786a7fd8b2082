"""A cluster's kubeconfig, quickly. Pure.

Job: Connection → the file's text, as JSON, which every reader of YAML reads.
"""

import base64

import orjson

from sampan.client.kubeconfig import Connection


def kubeconfig_text(connection: Connection, name: str = "sampan") -> str:
    assert connection.ca is not None
    assert connection.pair is not None
    certificate, key = (base64.b64encode(data).decode() for data in connection.pair)
    authority = base64.b64encode(connection.ca).decode()
    cluster = {"server": connection.server, "certificate-authority-data": authority}
    user = {"client-certificate-data": certificate, "client-key-data": key}
    context = {"cluster": name, "user": name, "namespace": connection.namespace}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": name, "user": user}],
        "contexts": [{"name": name, "context": context}],
        "current-context": name,
    }
    return orjson.dumps(document).decode()
