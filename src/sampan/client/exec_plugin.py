"""Exec credential plugins: `exec` of a kubeconfig's user.

Job: run it as client.authentication.k8s.io has it, and read its ExecCredential.
Invariant: what it prints is never shown: it may be a secret.
"""

import subprocess
from collections.abc import Mapping
from typing import Any

import orjson

from sampan.api.objects import Obj

PLUGIN_SECONDS = 120.0
VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")


class PluginError(Exception):
    """It cannot be run, or says nothing usable."""


def credentials(plugin: Obj, cluster: Obj, environment: Mapping[str, str]) -> Obj:
    """The fields of a kubeconfig's user that the plugin gives: token, certificate and key."""
    command = str(plugin.get("command") or "")
    version = str(plugin.get("apiVersion") or "")
    if version not in VERSIONS:
        raise PluginError(f'exec plugin: invalid apiVersion "{version}"')
    info = {"kind": "ExecCredential", "apiVersion": version, "spec": {"interactive": False}}
    if plugin.get("provideClusterInfo"):
        info["spec"] = {"interactive": False, "cluster": _cluster_info(cluster)}
    surroundings = {
        **environment,
        **{entry["name"]: entry["value"] for entry in plugin.get("env") or []},
        "KUBERNETES_EXEC_INFO": orjson.dumps(info).decode(),
    }
    try:
        ran = subprocess.run(
            [command, *(plugin.get("args") or [])],
            stdout=subprocess.PIPE,
            env=surroundings,
            timeout=PLUGIN_SECONDS,
            check=False,
        )
    except FileNotFoundError as error:
        hint = plugin.get("installHint")
        why = f"exec: executable {command} not found"
        raise PluginError(f"{why}\n\n{hint}" if hint else why) from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PluginError(f"exec: {error}") from error
    if ran.returncode:
        name = f"executable {command} failed with exit code {ran.returncode}"
        raise PluginError(f"exec: {name}")
    return _identity(ran.stdout, version)


def _identity(output: bytes, version: str) -> Obj:
    try:
        value: Any = orjson.loads(output)
    except orjson.JSONDecodeError as error:
        raise PluginError(f"decoding stdout: {error}") from error
    if not isinstance(value, dict) or value.get("apiVersion") != version:
        raise PluginError(f"exec plugin is configured to use API version {version}")
    status = value.get("status") or {}
    identity: Obj = {}
    if status.get("token"):
        identity["token"] = status["token"]
    if status.get("clientCertificateData"):
        import base64

        for field, name in (("Certificate", "certificate"), ("Key", "key")):
            text = str(status.get(f"client{field}Data") or "")
            identity[f"client-{name}-data"] = base64.b64encode(text.encode()).decode()
    if not identity:
        raise PluginError("exec plugin didn't return a token or cert/key pair")
    return identity


def _cluster_info(cluster: Obj) -> Obj:
    names = {
        "server": "server",
        "tls-server-name": "tls-server-name",
        "insecure-skip-tls-verify": "insecure-skip-tls-verify",
        "certificate-authority-data": "certificate-authority-data",
        "proxy-url": "proxy-url",
    }
    return {name: cluster[field] for field, name in names.items() if cluster.get(field)}
