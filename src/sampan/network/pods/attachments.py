"""Which sandbox has which interface, addresses and host ports on this node.

Job: one small file per attachment, written before the interface is made and removed after it is
    gone, so that a killed process forgets nothing.
Invariant: an address that an interface still has is in a file.
Owner: PodInterfaces; nobody else writes in this directory.
"""

import ipaddress
import json
from dataclasses import asdict
from pathlib import Path

from sampan.core.fast_dataclass import dataclass
from sampan.core.files.json_files import Damaged, json_object
from sampan.core.log import get_logger
from sampan.network.pods.plugin_protocol import PortMapping

Key = tuple[str, str]  # container and interface
log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Attachment:
    container: str
    interface: str
    host_interface: str
    addresses: tuple[str, ...]  # 10.244.0.5/24
    ports: tuple[PortMapping, ...] = ()
    guarded: bool = False  # its veth passes what is its own (veth_guard.py)

    @property
    def key(self) -> Key:
        return self.container, self.interface

    @property
    def owner(self) -> str:
        """As one word."""
        return f"{self.container}-{self.interface}"

    def bare_addresses(self) -> list[str]:
        return [address.partition("/")[0] for address in self.addresses]


class Attachments:
    def __init__(self, directory: Path) -> None:
        self._directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        self._all: dict[Key, Attachment] = {}
        for file in directory.glob("*.json"):
            attachment = _read(file)
            if attachment is not None:
                self._all[attachment.key] = attachment

    def all(self) -> list[Attachment]:
        return list(self._all.values())

    def get(self, key: Key) -> Attachment | None:
        return self._all.get(key)

    def of_container(self, container: str) -> list[Attachment]:
        return [each for each in self._all.values() if each.container == container]

    def taken(self) -> set[str]:
        return {address for each in self._all.values() for address in each.bare_addresses()}

    def put(self, attachment: Attachment) -> None:
        fresh = self._file(attachment).with_suffix(".new")
        fresh.write_text(json.dumps(asdict(attachment)))
        fresh.replace(self._file(attachment))
        self._all[attachment.key] = attachment

    def remove(self, attachment: Attachment) -> None:
        self._file(attachment).unlink(missing_ok=True)
        self._all.pop(attachment.key, None)

    def _file(self, attachment: Attachment) -> Path:
        return self._directory / f"{attachment.owner}.json"


def _read(file: Path) -> Attachment | None:
    """A file that is cut off was written when the machine stopped: its interface never was."""
    try:
        found = json_object(file)
        ports = tuple(PortMapping(**port) for port in found.pop("ports"))
        for address in found["addresses"]:
            ipaddress.ip_interface(address)
        return Attachment(**{**found, "addresses": tuple(found["addresses"])}, ports=ports)
    except (Damaged, ValueError, TypeError, KeyError) as error:
        log.warning("record of a pod's interface unreadable", file=file, error=error)
        if file.is_file():
            file.unlink()
        return None
