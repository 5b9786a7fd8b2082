"""Which credentials of a pod's pull secrets fit an image. Pure.

Job: read docker configurations out of secrets; match registries and paths as upstream does.
Invariant: a more specific entry comes before a less specific one.
"""

import base64
import binascii
import fnmatch
import json
from collections.abc import Iterable, Sequence
from urllib.parse import urlsplit

from sampan.api.objects import Obj
from sampan.kubelet.image_reference import Reference
from sampan.kubelet.runtime import Credentials

_DEFAULT_REGISTRIES = ("docker.io", "index.docker.io", "registry-1.docker.io")


def credentials_for(image: Reference, secrets: Iterable[Obj]) -> list[Credentials]:
    """In the order in which they are to be tried; empty where no entry fits."""
    entries = [entry for secret in secrets for entry in _entries(secret)]
    # As upstream's keyring: by the pattern in reverse order, so that longer paths come first.
    entries.sort(key=lambda entry: entry[0], reverse=True)
    fitting = [found for pattern, found in entries if matches(pattern, image)]
    return list(dict.fromkeys(fitting))


def matches(pattern: str, image: Reference) -> bool:
    """Does an entry for `pattern` (host, port and path) speak for the image?"""
    if "://" not in pattern:
        pattern = f"https://{pattern}"
    parts = urlsplit(pattern)
    host, path = parts.netloc, _without_version(parts.path)
    if image.registry in _DEFAULT_REGISTRIES and host in _DEFAULT_REGISTRIES:
        return _path_fits(path, image.path)
    return _host_fits(host, image.registry) and _path_fits(path, image.path)


def _host_fits(pattern: str, host: str) -> bool:
    """Label by label, with `*` inside a label; ports must be the same."""
    pattern_name, _, pattern_port = pattern.partition(":")
    name, _, port = host.partition(":")
    if pattern_port != port:
        return False
    wanted, labels = pattern_name.split("."), name.split(".")
    return len(wanted) == len(labels) and all(
        fnmatch.fnmatchcase(label, want) for want, label in zip(wanted, labels, strict=True)
    )


def _path_fits(prefix: str, path: str) -> bool:
    return path.startswith(prefix.strip("/")) if prefix.strip("/") else True


def _without_version(path: str) -> str:
    """Old entries name the registry's API: https://index.docker.io/v1/."""
    for version in ("/v1/", "/v2/"):
        if path.startswith(version):
            return path[len(version) :]
    return "" if path in ("/v1", "/v2") else path


def _entries(secret: Obj) -> Sequence[tuple[str, Credentials]]:
    data = secret.get("data") or {}
    for key in (".dockerconfigjson", ".dockercfg"):
        if key in data:
            try:
                config = json.loads(base64.b64decode(data[key]))
                entries = config.get("auths") or {} if key == ".dockerconfigjson" else config
                return [(pattern, _credentials(entry)) for pattern, entry in entries.items()]
            except (ValueError, binascii.Error, AttributeError):
                # As upstream: a secret that cannot be read is as good as none.
                return []
    return []


def _credentials(entry: Obj) -> Credentials:
    username, password = entry.get("username") or "", entry.get("password") or ""
    if entry.get("auth"):
        decoded = base64.b64decode(entry["auth"] + "=" * (-len(entry["auth"]) % 4)).decode()
        username, _, password = decoded.partition(":")
    return Credentials(
        username=username,
        password=password,
        identity_token=entry.get("identitytoken") or "",
        registry_token=entry.get("registrytoken") or "",
    )
