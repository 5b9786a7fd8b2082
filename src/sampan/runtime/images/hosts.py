"""Where images are asked for: registries and their mirrors, as containerd's certs.d says it.

Job: directories with a `hosts.toml` (or certificates alone) per registry → the hosts to ask, in
    their order, with their certificates, headers and what they may be asked for.
Invariant: a registry at an address of the machine itself, or of its link, is one that somebody has
    named here: else a pod's image could be anything that listens there.
Invariant: a file that cannot be understood stops the pull with its name: nobody is asked whom it
    did not mean.
"""

import ipaddress
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from sampan.core.durations import NANO, DurationError, parse_duration
from sampan.core.fast_dataclass import dataclass
from sampan.runtime.images.content import ImageError

PULL, RESOLVE = "pull", "resolve"
_CAPABILITIES = {PULL, RESOLVE, "push"}
_HUB, _HUB_HOST = "docker.io", "registry-1.docker.io"
_HOST_KEYS = {
    "capabilities", "ca", "client", "skip_verify", "header", "override_path", "dial_timeout",
}  # fmt: skip
_CONNECT_SECONDS = 30.0  # as containerd


@dataclass(frozen=True, slots=True)
class Encryption:
    """Empty: the system's certificates, and no client's."""

    authorities: tuple[str, ...] = ()  # files
    clients: tuple[tuple[str, str], ...] = ()  # certificate and key; no key: both in one file
    skip_verify: bool = False


@dataclass(frozen=True, slots=True)
class Host:
    """`api`: what its URLs begin with."""

    api: str  # https://registry-1.docker.io/v2
    capabilities: frozenset[str] = frozenset((PULL, RESOLVE))
    encryption: Encryption = Encryption()
    headers: tuple[tuple[str, str], ...] = ()
    connect_seconds: float = _CONNECT_SECONDS
    named: bool = True  # False: nobody but who wants the image has named it

    @property
    def is_near(self) -> bool:
        """It is at an address of this machine itself, and was named for it."""
        return self.named and _is_this_machine(urlsplit(self.api).netloc)

    def may(self, what: str) -> bool:
        return what in self.capabilities

    def is_mirror_of(self, registry: str) -> bool:
        """As containerd: a mirror is told whose images are meant."""
        own = _HUB_HOST if registry == _HUB else registry
        return urlsplit(self.api).netloc != own


def hosts_of(registry: str, directories: Sequence[Path]) -> list[Host]:
    """What the first of `directories` says that knows the registry; the registry itself comes last.
    Raises ImageError."""
    for root in directories:
        for name in (_with_port(registry), registry, "_default"):
            if (root / name).is_dir():
                return _hosts_in(root / name, registry)
    return [Host(_api_of(registry), named=False)]


def _with_port(registry: str) -> str:
    host, colon, port = registry.rpartition(":")
    return f"{host}_{port}_" if colon else registry


def _api_of(registry: str) -> str:
    """Plain HTTP only where the registry is this machine."""
    host = _HUB_HOST if registry == _HUB else registry
    scheme = "http" if _is_this_machine(host) else "https"
    return f"{scheme}://{host}/v2"


def _is_this_machine(registry: str) -> bool:
    name = urlsplit(f"//{registry}").hostname or ""
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _hosts_in(directory: Path, registry: str) -> list[Host]:
    import tomllib  # with the first image of a registry

    file = directory / "hosts.toml"
    try:
        table = tomllib.loads(file.read_text())
    except FileNotFoundError:
        return [Host(_api_of(registry), encryption=_certificates_in(directory))]
    except (OSError, ValueError) as error:
        raise ImageError(f"{file} cannot be read: {error}") from error
    try:
        return _hosts(table, directory, registry)
    except (ValueError, TypeError, AttributeError) as error:
        raise ImageError(f"{file} is not as it should be: {error}") from error


def _hosts(table: Mapping[str, Any], directory: Path, registry: str) -> list[Host]:
    listed = dict(table.get("host") or {})
    found = [_host(url, settings, directory) for url, settings in listed.items()]
    own = {key: value for key, value in table.items() if key not in ("server", "host")}
    server = table.get("server") or _api_of(registry)
    return [*found, _host(server, own, directory)]


def _host(url: str, table: Mapping[str, Any], directory: Path) -> Host:
    """Raises ValueError, TypeError, AttributeError."""
    if unknown := sorted(set(table) - _HOST_KEYS):
        raise ValueError(f"unknown: {', '.join(unknown)}")
    if not url.startswith("http"):
        url = f"https://{url}"
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{url!r} is no URL of a host")
    path = parts.path.rstrip("/")
    if not table.get("override_path") and not path.endswith("/v2"):
        path = f"{path}/v2"
    capabilities = frozenset(
        str(word).lower() for word in table.get("capabilities") or (PULL, RESOLVE)
    )
    if unknown := sorted(capabilities - _CAPABILITIES):
        raise ValueError(f"unknown capability {unknown[0]}")
    encryption = Encryption(
        tuple(_file(name, directory) for name in _texts(table.get("ca"), "ca")),
        tuple(_pair(entry, directory) for entry in _entries(table.get("client"))),
        bool(table.get("skip_verify")),
    )
    headers = tuple(
        (name.lower(), value)
        for name, given in (table.get("header") or {}).items()
        for value in _texts(given, name)
    )
    wait = _seconds(table.get("dial_timeout"))
    return Host(f"{parts.scheme}://{parts.netloc}{path}", capabilities, encryption, headers, wait)


def _entries(given: Any) -> list[Any]:
    return [] if given is None else [given] if isinstance(given, str) else list(given)


def _texts(given: Any, name: str) -> list[str]:
    found = _entries(given)
    if not all(isinstance(entry, str) for entry in found):
        raise ValueError(f"{name} is no text and no list of texts")
    return found


def _pair(entry: Any, directory: Path) -> tuple[str, str]:
    if isinstance(entry, str):
        return _file(entry, directory), ""
    certificate, key = _texts(entry, "client")
    return _file(certificate, directory), _file(key, directory)


def _file(name: str, directory: Path) -> str:
    return os.path.join(directory, name)


def _seconds(given: Any) -> float:
    if given is None:
        return _CONNECT_SECONDS
    try:
        seconds = parse_duration(str(given)) / NANO
    except DurationError as error:
        raise ValueError(f"dial_timeout: {given!r} is no duration like 10s") from error
    if seconds <= 0:
        raise ValueError(f"dial_timeout: {given!r} must be more than nothing")
    return seconds


def _certificates_in(directory: Path) -> Encryption:
    """As Docker lays them out: ca.crt, client.cert and client.key."""
    pairs = []
    for certificate in sorted(directory.glob("*.cert")):
        key = certificate.with_suffix(".key")
        if not key.exists():
            raise ImageError(f"{certificate} lacks its key, {key.name}")
        pairs.append((str(certificate), str(key)))
    return Encryption(tuple(str(file) for file in sorted(directory.glob("*.crt"))), tuple(pairs))
