"""The client's verbs: where each is, and what one line says about it.

Job: the table of verbs, in kubectl's groups and order; a verb's module is imported when asked for.
To add a verb: a file under verbs/ with COMMAND, and a row here.
"""

import importlib

from sampan.cli.command import Command

# group → (name, module, attribute, one line)
_V = "sampan.cli.verbs."
GROUPS: tuple[tuple[str, tuple[tuple[str, str, str, str], ...]], ...] = (
    ("Basic Commands (Beginner)", (
        ("create", "basic.create", "CREATE", "Create a resource from a file or from stdin"),
        ("expose", "basic.expose", "EXPOSE", "Take a replication controller, service, deployment or pod and expose it as a new Kubernetes service"),
        ("run", "basic.run", "RUN", "Run a particular image on the cluster"),
        ("set", "basic.set", "SET", "Set specific features on objects"),
    )),
    ("Basic Commands (Intermediate)", (
        ("explain", "inspect.explain", "EXPLAIN", "Get documentation for a resource"),
        ("get", "inspect.get", "GET", "Display one or many resources"),
        ("edit", "change.edit", "EDIT", "Edit a resource on the server"),
        ("delete", "basic.delete", "DELETE", "Delete resources by file names, stdin, resources and names, or by resources and label selector"),
    )),
    ("Deploy Commands", (
        ("rollout", "change.rollout", "ROLLOUT", "Manage the rollout of a resource"),
        ("scale", "change.scale", "SCALE", "Set a new size for a deployment, replica set, or replication controller"),
        ("autoscale", "change.autoscale", "AUTOSCALE", "Auto-scale a deployment, replica set, stateful set, or replication controller"),
    )),
    ("Cluster Management Commands", (
        ("certificate", "cluster.certificate", "CERTIFICATE", "Modify certificate resources"),
        ("cluster-info", "cluster.cluster_info", "CLUSTER_INFO", "Display cluster information"),
        ("top", "cluster.top", "TOP", "Display resource (CPU/memory) usage"),
        ("cordon", "cluster.drain", "CORDON", "Mark node as unschedulable"),
        ("uncordon", "cluster.drain", "UNCORDON", "Mark node as schedulable"),
        ("drain", "cluster.drain", "DRAIN", "Drain node in preparation for maintenance"),
        ("taint", "cluster.taint", "TAINT", "Update the taints on one or more nodes"),
    )),
    ("Troubleshooting and Debugging Commands", (
        ("describe", "inspect.describe", "DESCRIBE", "Show details of a specific resource or group of resources"),
        ("logs", "inspect.logs", "LOGS", "Print the logs for a container in a pod"),
        ("attach", "inspect.attach", "ATTACH", "Attach to a running container"),
        ("exec", "inspect.exec", "EXEC", "Execute a command in a container"),
        ("port-forward", "inspect.port_forward", "PORT_FORWARD", "Forward one or more local ports to a pod"),
        ("proxy", "cluster.proxy", "PROXY", "Run a proxy to the Kubernetes API server"),
        ("cp", "inspect.cp", "CP", "Copy files and directories to and from containers"),
        ("auth", "cluster.auth", "AUTH", "Inspect authorization"),
        ("debug", "inspect.debug", "DEBUG", "Create debugging sessions for troubleshooting workloads and nodes"),
        ("events", "inspect.events", "EVENTS", "List events"),
    )),
    ("Advanced Commands", (
        ("diff", "change.diff", "DIFF", "Diff the live version against a would-be applied version"),
        ("apply", "change.apply", "APPLY", "Apply a configuration to a resource by file name or stdin"),
        ("patch", "change.patch", "PATCH", "Update fields of a resource"),
        ("replace", "change.replace", "REPLACE", "Replace a resource by file name or stdin"),
        ("wait", "inspect.wait", "WAIT", "Wait for a specific condition on one or many resources"),
        ("kustomize", "change.kustomize", "KUSTOMIZE", "Build a kustomization target from a directory or URL"),
    )),
    ("Settings Commands", (
        ("label", "change.label", "LABEL", "Update the labels on a resource"),
        ("annotate", "change.label", "ANNOTATE", "Update the annotations on a resource"),
        ("completion", "cluster.completion", "COMPLETION", "Output shell completion code for the specified shell (bash, zsh, fish, or powershell)"),
    )),
    ("Other Commands", (
        ("alpha", "cluster.alpha", "ALPHA", "Commands for features in alpha"),
        ("api-resources", "cluster.api_resources", "API_RESOURCES", "Print the supported API resources on the server"),
        ("api-versions", "cluster.api_resources", "API_VERSIONS", 'Print the supported API versions on the server, in the form of "group/version"'),
        ("config", "cluster.config", "CONFIG", "Modify kubeconfig files"),
        ("plugin", "cluster.plugin", "PLUGIN", "Provides utilities for interacting with plugins"),
        ("version", "cluster.version", "VERSION", "Print the client and server version information"),
    )),
)  # fmt: skip
EXTRA = (
    ("options", "cluster.options", "OPTIONS", "Print the list of flags inherited by all commands"),
)
_BY_NAME = {row[0]: row for group in GROUPS for row in group[1]} | {row[0]: row for row in EXTRA}


def names() -> list[str]:
    return [row[0] for group in GROUPS for row in group[1]]


def line_of(name: str) -> str:
    return _BY_NAME[name][3]


def is_verb(name: str) -> bool:
    return name in _BY_NAME


def find(name: str) -> Command | None:
    row = _BY_NAME.get(name)
    if row is None:
        return None
    command: Command = getattr(importlib.import_module(_V + row[1]), row[2])
    return command
