"""An operator: each Greeting has a ConfigMap with its text.

Run it against any cluster: `kopf run operator_of_greetings.py --all-namespaces`.
"""

import kopf
import kubernetes


@kopf.on.startup()
def connect(**_):
    try:
        kubernetes.config.load_incluster_config()
    except kubernetes.config.ConfigException:
        kubernetes.config.load_kube_config()


@kopf.on.resume("greetings.example.com")
@kopf.on.create("greetings.example.com")
@kopf.on.update("greetings.example.com")
def greet(body, spec, name, namespace, **_):
    """May be called again for what is done already: it says what must be, not what to do."""
    wanted = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name},
        "data": {"text": f"hello {spec['who']}"},
    }
    kopf.adopt(wanted, owner=body)
    try:
        kubernetes.client.CoreV1Api().patch_namespaced_config_map(
            name,
            namespace,
            wanted,
            field_manager="greeter",
            force=True,
            _content_type="application/apply-patch+yaml",
        )
    except kubernetes.client.ApiException as error:
        raise kopf.TemporaryError(f"the API says {error.status}", delay=1) from error
    return {"text": wanted["data"]["text"]}
