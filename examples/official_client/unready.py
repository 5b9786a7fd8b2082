"""A tool: which Deployments of a cluster are not fully ready, and what their pods say.

`python unready.py [--namespace NAME]`; exit code 1 where there are any.
"""

import argparse
import sys

from kubernetes import client, config


def unready(api: client.ApiClient, namespace: str = "") -> list[str]:
    apps, core = client.AppsV1Api(api), client.CoreV1Api(api)
    found = (
        apps.list_namespaced_deployment(namespace).items
        if namespace
        else apps.list_deployment_for_all_namespaces().items
    )
    lines = []
    for deployment in found:
        wanted, ready = deployment.spec.replicas, deployment.status.ready_replicas or 0
        if ready >= wanted:
            continue
        meta = deployment.metadata
        lines.append(f"{meta.namespace}/{meta.name}: {ready} of {wanted} ready")
        labels = ",".join(f"{k}={v}" for k, v in deployment.spec.selector.match_labels.items())
        for pod in core.list_namespaced_pod(meta.namespace, label_selector=labels).items:
            for status in pod.status.container_statuses or ():
                if status.state.waiting is not None:
                    lines.append(f"  {pod.metadata.name}: {status.state.waiting.reason}")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--namespace", default="")
    given = parser.parse_args()
    config.load_kube_config()
    lines = unready(client.ApiClient(), given.namespace)
    print("\n".join(lines))
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
