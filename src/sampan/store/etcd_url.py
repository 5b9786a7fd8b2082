"""Where an etcd is, and how to be known to it. Pure, but for reading the certificates.

Job: `etcd://host:port,host:port/prefix?cacert=…&cert=…&key=…` → an EtcdAddress.
`etcds://` is TLS with the system's authorities; any of the parameters means TLS too.
"""

from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from sampan.core.digits import is_digits
from sampan.core.fast_dataclass import dataclass
from sampan.store.contract import StoreError

DEFAULT_PORT = 2379
_FORM = "use etcd://host:port,host:port/prefix?cacert=FILE&cert=FILE&key=FILE"
_PARAMETERS = ("cacert", "cert", "key")


class BadEtcdUrl(StoreError):
    """The URL, or a file that it names, is of no use."""


@dataclass(frozen=True, slots=True)
class Tls:
    """PEM; None: the system's authorities, no certificate of our own."""

    authorities: bytes | None = None
    certificate: bytes | None = None
    key: bytes | None = None


@dataclass(frozen=True, slots=True)
class EtcdAddress:
    endpoints: tuple[str, ...]  # host:port
    prefix: str = ""  # before every key
    tls: Tls | None = None

    def __str__(self) -> str:
        return ",".join(self.endpoints)


def parse_etcd_url(url: str) -> EtcdAddress:
    """Raises BadEtcdUrl."""
    parts = urlsplit(url)
    endpoints = tuple(_endpoint(url, part) for part in parts.netloc.split(",") if part)
    if not endpoints:
        raise BadEtcdUrl(f"{url!r} names no etcd: {_FORM}")
    given = dict(parse_qsl(parts.query, keep_blank_values=True))
    if unknown := sorted(set(given) - set(_PARAMETERS)):
        raise BadEtcdUrl(f"{url!r} has an unknown parameter {unknown[0]!r}: {_FORM}")
    if ("cert" in given) != ("key" in given):
        raise BadEtcdUrl(f"{url!r} needs both cert= and key=, or neither")
    tls = None
    if given or parts.scheme == "etcds":
        pems = {name: _pem(name, path) for name, path in given.items()}
        tls = Tls(pems.get("cacert"), pems.get("cert"), pems.get("key"))
    return EtcdAddress(endpoints, unquote(parts.path).rstrip("/"), tls)


def _endpoint(url: str, text: str) -> str:
    host, colon, port = text.rpartition(":")
    if not colon or text.endswith("]"):
        host, port = text, str(DEFAULT_PORT)
    if not host or "@" in host or not is_digits(port) or not 0 < int(port) < 65536:
        raise BadEtcdUrl(f"{url!r}: {text!r} is not host:port; {_FORM}")
    return f"{host}:{port}"


def _pem(name: str, path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise BadEtcdUrl(f"{name}={path} cannot be read: {error.strerror}") from error
