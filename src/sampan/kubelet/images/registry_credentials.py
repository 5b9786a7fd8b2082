"""Which credentials fit an image: of a pod's pull secrets and of docker's configurations. Pure.

Job: read docker configurations; match registries and paths as upstream does.
Invariant: a more specific entry comes before a less specific one.
"""

import base64
import fnmatch
import json
from collections.abc import Iterable, Sequence
from urllib.parse import urlsplit

from sampan.api.objects import Obj
from sampan.kubelet.contracts.runtime import Credentials
from sampan.kubelet.images.reference import Reference

Entries = Sequence[tuple[str, Credentials]]
"""Pattern (host, port and path) and what it is good for."""

_DEFAULT_REGISTRIES = ("docker.io", "index.docker.io", "registry-1.docker.io")


def credentials_for(image: Reference, secrets: Iterable[Obj]) -> list[Credentials]:
    """In the order in which they are to be tried; empty where no entry fits."""
    return fitting(image, [entry for secret in secrets for entry in _entries(secret)])


def fitting(image: Reference, entries: Entries) -> list[Credentials]:
    # As upstream's keyring: by the pattern in reverse order, so that longer paths come first.
    ordered = sorted(entries, key=lambda entry: entry[0], reverse=True)
    return list(dict.fromkeys(found for pattern, found in ordered if matches(pattern, image)))


def entries_of(text: str | bytes, *, legacy: bool) -> Entries:
    """Of a config.json, or (`legacy`) of the older .dockercfg. Raises ValueError."""
    config = json.loads(text)
    try:
        found = config if legacy else config.get("auths") or {}
        return [(pattern, _credentials(entry)) for pattern, entry in found.items()]
    except (AttributeError, TypeError) as error:
        raise ValueError(f"not a docker configuration: {error}") from error


def matches(pattern: str, image: Reference) -> bool:
    """Does an entry for `pattern` (host, port and path) speak for the image?"""
    if "://" not in pattern:
        pattern = f"https://{pattern}"
    parts = urlsplit(pattern)
    host, path = parts.netloc, _without_version(parts.path)
    if image.registry in _DEFAULT_REGISTRIES and host in _DEFAULT_REGISTRIES:
        return _path_fits(path, image.path)
    return fits(f"{host}/{path}", image)


def fits(pattern: str, image: Reference) -> bool:
    """As `matches`, by the letter: docker.io has no other names here, and no API in the path."""
    host, _, path = pattern.partition("/")
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


def _entries(secret: Obj) -> Entries:
    data = secret.get("data") or {}
    for key in (".dockerconfigjson", ".dockercfg"):
        if key in data:
            try:
                return entries_of(base64.b64decode(data[key]), legacy=key == ".dockercfg")
            except ValueError:  # binascii's own error is one
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
