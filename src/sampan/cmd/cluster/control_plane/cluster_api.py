"""The API server of `sampan up`: certificates, store, listeners and the administrator's kubeconfig.

Job: settings and what is known of the nodes → an API server that answers; all of it stopped.
Invariant: a data directory has one of them at a time: its holder's, or its holder's child's.
Owner: all_in_one.py, or the process that has only this part.
"""

import errno
import socket
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path

from sampan.api import features
from sampan.apiserver.authn.settings import ProxyClientSettings
from sampan.apiserver.server import ApiServer
from sampan.apiserver.settings import ApiServerSettings
from sampan.client.kubeconfig import Connection
from sampan.client.kubeconfig_file import write_kubeconfig
from sampan.cmd.cluster import contexts, pki, rotation
from sampan.cmd.cluster.addresses import advertise_address, opening, reachable, server_names, url_of
from sampan.cmd.cluster.certificates.ensure import ensure
from sampan.cmd.cluster.data_dir import OWN_STORE, DataDir
from sampan.cmd.cluster.nodes import NodeIdentity
from sampan.cmd.cluster.progress import Progress
from sampan.cmd.cluster.releases import KEPT
from sampan.cmd.cluster.served_api import ServedApi, why_not_bound
from sampan.cmd.errors import CannotStart
from sampan.cmd.flags.scenario import scripts_in
from sampan.cmd.flags.security_settings import server_settings
from sampan.cmd.settings import UpSettings
from sampan.core.clock import SystemClock
from sampan.core.fast_dataclass import dataclass
from sampan.core.http.origin import Origin
from sampan.core.http.server import bound_socket
from sampan.core.tasks import Tasks
from sampan.core.tls import client_context, server_context
from sampan.version import VERSION

Bind = Callable[[str, int], socket.socket]


@dataclass(frozen=True, slots=True)
class NodesAround:
    """What an API server has to know of its cluster's own nodes."""

    identity: NodeIdentity
    gateways: tuple[str, ...]  # where the pods of this machine come to, if anywhere
    mount_volumes: bool
    place_of: Callable[[Origin], Awaitable[Origin]]  # where a kubelet is really found
    bind: Bind = bound_socket  # on the machine's network, which may not be this process's own


class ClusterApi:
    def __init__(
        self,
        settings: UpSettings,
        data: DataDir,
        progress: Progress,
        api: ServedApi,
        around: NodesAround,
    ) -> None:
        self._settings, self._data, self._progress = settings, data, progress
        self._api, self._around = api, around
        self._machine_clock = SystemClock()  # clients look at certificates by their own
        self._tasks = Tasks("certificates")
        self._pki = pki.Pki(data.pki)
        self._served: list[rotation.Served] = []
        self._url = ""
        self.shared = False  # other processes use the same store

    async def start(self) -> ApiServer:
        """Returns when requests are answered. Raises CannotStart."""
        self._ensure_certificates()
        with self._progress.step("store") as step:
            url = self._settings.store or f"sqlite:///{self._data.store}"
            self._api.export_traces(self._settings.tracing_config_file)
            store = await self._api.open(url)
            self.shared = store.shared
            step.detail = f"{url.split(':')[0]}, revision {store.revision}"
        with self._progress.step("API server") as step:
            listening = _listen(self._settings, self._data, self._around.bind)
            port = listening.getsockname()[1]
            advertised = advertise_address(
                self._settings.bind_address,
                self._around.identity.address,
                next(iter(self._around.gateways), ""),
            )
            settings = self._api_server_settings(advertised, port)
            sockets = [listening, *self._for_pods(advertised, port)]
            server = await self._api.serve(store, settings, sockets, self._server_tls(), step.count)
            self._url = step.detail = url_of(reachable(self._settings.bind_address), port)
        if opened := opening(self._settings.bind_address, port):
            self._progress.warn(opened)
        self._write_kubeconfig(self._url)
        ranges = self._settings.ranges
        self._data.remember(
            port=port, version=VERSION, store=self._settings.store or OWN_STORE,
            encrypted=bool(self._settings.security.encryption_file),
            cluster_cidr=",".join(ranges.cluster), service_cidr=",".join(ranges.service),
            **{KEPT: features.release().minor},
        )  # fmt: skip
        return server

    async def stop(self) -> None:
        await self._tasks.stop()
        await self._api.stop()

    def tls_of_node(self) -> ssl.SSLContext:
        """With what a node of this process serves, renewed here."""
        return self._tls("kubelet")

    def _ensure_certificates(self) -> None:
        identity = self._around.identity
        with self._progress.step("certificates") as step:
            bind = self._settings.bind_address
            wanted = pki.leaves(
                [
                    *server_names(
                        bind, identity.name, identity.addresses, self._settings.ranges.service
                    ),
                    *self._around.gateways,
                ],
                identity.name,
                [identity.name, *identity.addresses, "localhost", "127.0.0.1"],
            )
            made = ensure(self._data.pki, wanted, self._machine_clock)
            step.detail = f"{made} made" if made else "kept"
        self._tasks.supervise(
            "certificates",
            lambda: rotation.keep_fresh(
                self._data.pki, wanted, lambda: self._served,
                lambda: self._write_kubeconfig(self._url, use=False), self._machine_clock,
            ),
        )  # fmt: skip

    def _for_pods(self, advertised: str, port: int) -> list[socket.socket]:
        """Where the server is for this machine only, its pods find it at their gateway; where it is
        for everybody, IPv6 is not left out."""
        more = [advertised] if advertised in self._around.gateways else []
        if self._settings.rootless:
            more.append("127.0.0.1")  # ours is not the machine's
        if self._settings.bind_address == "0.0.0.0" and "ipv6" in self._settings.ranges.families:
            more.append("::")
        try:
            return [bound_socket(address, port, only_its_family=True) for address in more]
        except OSError as error:
            self._progress.warn(f"pods cannot reach the API at {advertised}:{port}: {error}")
            return []

    def _api_server_settings(self, address: str, port: int) -> ApiServerSettings:
        return ApiServerSettings(
            service_cidrs=self._settings.ranges.service,
            advertise_address=address,
            advertise_port=port,
            hostname=socket.gethostname(),
            token_signing_key_pem=self._pki.token_key.read_bytes(),
            ca_bundle_pem=self._pki.ca.read_text(),
            mount_service_account_tokens=self._around.mount_volumes,
            kubelet_place=self._around.place_of,
            scripts_of=scripts_in(self._settings.node.scenario),
            kubelet_tls=self._tls_to_nodes,
            flags=self._settings.flags,
            proxy_client=ProxyClientSettings(
                str(self._pki.certificate(pki.FRONT_PROXY_CLIENT)),
                str(self._pki.key(pki.FRONT_PROXY_CLIENT)),
                self._pki.certificate(pki.FRONT_PROXY_CA).read_text(),
                pki.FRONT_PROXY_CLIENT,
            ),
            **server_settings(self._settings.security, self._pki.ca.read_bytes()),
        )

    def _server_tls(self) -> ssl.SSLContext:
        context = self._tls("apiserver")
        if self._settings.security.proxy_ca_file:
            context.load_verify_locations(self._settings.security.proxy_ca_file)
        return context

    def _tls_to_nodes(self) -> ssl.SSLContext:
        """With what the API server shows to nodes, renewed as what it shows to its clients."""
        file = "apiserver-kubelet-client"
        context = client_context(
            ca_path=self._pki.ca,
            cert_path=self._pki.certificate(file),
            key_path=self._pki.key(file),
        )
        self._served.append(rotation.Served(context, file))
        return context

    def _tls(self, file: str) -> ssl.SSLContext:
        context = server_context(self._pki.certificate(file), self._pki.key(file), self._pki.ca)
        self._served.append(rotation.Served(context, file))
        return context

    def _write_kubeconfig(self, url: str, *, use: bool = True) -> None:
        admin = Connection(
            url,
            ca=self._pki.ca.read_bytes(),
            certificate=self._pki.certificate("admin").read_bytes(),
            key=self._pki.key("admin").read_bytes(),
        )
        path = self._data.kubeconfig
        try:
            write_kubeconfig(path, admin)
            if self._settings.kubeconfig:
                path = Path(self._settings.kubeconfig).absolute()
                contexts.put(self._data, path, admin, use=use)
        except OSError as error:
            raise CannotStart(f"cannot write the kubeconfig {path}: {error}") from error


def _listen(settings: UpSettings, data: DataDir, bind: Bind) -> socket.socket:
    """The port asked for; with 0 the one of last time where it is free, else any."""
    last = data.record().get("port")
    wanted = [settings.port] if settings.port else [last if isinstance(last, int) else 0, 0]
    for port in wanted:
        try:
            return bind(settings.bind_address, port)
        except OSError as error:
            if error.errno == errno.EADDRINUSE and port != wanted[-1]:
                continue
            why = why_not_bound(settings.bind_address, port, "--port", error)
            raise CannotStart(why) from error
    raise AssertionError("the last port either was bound or raised")
