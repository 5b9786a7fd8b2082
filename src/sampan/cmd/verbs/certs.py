"""`sampan certs`: the keys of a cluster whose parts are processes of their own.

Job: in one directory, as kubeadm lays it out: the authority, the key of service account tokens,
    this machine's certificates (an API server's, an etcd member's), and kubeconfigs for the
    administrator, scheduler and controllers.
Invariant: what is there and good stays; the authority and the token key are never replaced.
"""

import socket
import sys
from pathlib import Path
from urllib.parse import urlsplit

from sampan.client.kubeconfig import Connection
from sampan.client.kubeconfig_file import write_kubeconfig
from sampan.cmd.cluster import machine, pki
from sampan.cmd.cluster.addresses import server_names
from sampan.cmd.cluster.certificates import signing
from sampan.cmd.cluster.certificates.ensure import ensure
from sampan.cmd.errors import CannotStart
from sampan.cmd.settings import CertsSettings
from sampan.core.clock import Clock, SystemClock

# What every machine of the control plane has the same of; the rest is a machine's own.
SHARED = (
    "ca.crt", "ca.key", "etcd-ca.crt", "etcd-ca.key", "front-proxy-ca.crt", "front-proxy-ca.key",
    "sa.key",
)  # fmt: skip
# Kubeconfig → whose certificate is in it; kubeadm's names.
KUBECONFIGS = {
    "admin.conf": "admin",
    "scheduler.conf": "scheduler",
    "controller-manager.conf": "controller-manager",
}


def run(settings: CertsSettings) -> int:
    try:
        for line in make(settings, SystemClock()):
            print(line)
    except CannotStart as error:
        print(f"sampan: {error}", file=sys.stderr)
        return 1
    return 0


def make(settings: CertsSettings, clock: Clock) -> list[str]:
    """What was made, line by line. Raises CannotStart."""
    parsed = urlsplit(settings.server)
    if parsed.scheme != "https" or not parsed.hostname:
        raise CannotStart(f"--server {settings.server!r} is not https://HOST:PORT")
    root = Path(settings.cert_dir).absolute()
    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        return _make(root, settings, parsed.hostname, clock)
    except OSError as error:
        raise CannotStart(f"cannot write {root}: {error}") from error


def _make(root: Path, settings: CertsSettings, host: str, clock: Clock) -> list[str]:
    address = machine.primary_address()
    own = server_names(address, socket.gethostname(), (address,), settings.service_cidrs)
    names = [*own, host, *settings.names, *signing.kept_names(root, "apiserver")]
    wanted = pki.server_leaves(names) + pki.component_leaves()
    wanted += pki.etcd_leaves([*names, *signing.kept_names(root, pki.ETCD)])
    made = ensure(root, wanted, clock)
    paths = pki.Pki(root)
    for file, leaf in KUBECONFIGS.items():
        known_as = Connection(
            settings.server,
            ca=paths.ca.read_bytes(),
            certificate=paths.certificate(leaf).read_bytes(),
            key=paths.key(leaf).read_bytes(),
        )
        # New each time: `server` may be another one.
        (root / file).unlink(missing_ok=True)
        write_kubeconfig(root / file, known_as)
    lines = [f"{root}: {made} made" if made else f"{root}: all kept"]
    lines += [f"  {root / file}" for file in KUBECONFIGS]
    return [*lines, f"the same on every machine of the control plane: {' '.join(SHARED)}"]
