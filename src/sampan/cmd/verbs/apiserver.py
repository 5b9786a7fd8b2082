"""`sampan apiserver`: an API server as a process of its own, on any store.

Job: settings → keys, store, listener; start and stop them.
Invariant: it makes no authority and no token key: servers of one cluster share those.
Invariant: several of them on one etcd are one API: each is in the endpoints of `kubernetes`.
"""

import socket
import ssl
import sys
from collections.abc import Callable
from pathlib import Path

from sampan.api import features
from sampan.apiserver.authn.settings import ProxyClientSettings
from sampan.apiserver.server import ApiServer
from sampan.apiserver.settings import ApiServerSettings
from sampan.cmd.background import own_log
from sampan.cmd.cluster import machine, pki, rotation
from sampan.cmd.cluster.addresses import EVERYWHERE, server_names, url_of
from sampan.cmd.cluster.certificates import signing
from sampan.cmd.cluster.certificates.ensure import ensure
from sampan.cmd.cluster.process import process_metrics, run_alone
from sampan.cmd.cluster.progress import Progress
from sampan.cmd.cluster.releases import use_release
from sampan.cmd.cluster.served_api import ServedApi, listening_socket
from sampan.cmd.errors import CannotStart
from sampan.cmd.flags.security_settings import server_settings
from sampan.cmd.settings import ApiServerProcessSettings, ServerFiles
from sampan.core import log
from sampan.core.clock import Clock, SystemClock
from sampan.core.tasks import Tasks
from sampan.core.telemetry.traces import Traces
from sampan.core.tls import client_context, server_context

Adjust = Callable[[ApiServerSettings], ApiServerSettings]


def run(settings: ApiServerProcessSettings) -> int:
    log.set_up(settings.log_level, own_file=own_log())
    progress = Progress(sys.stdout, SystemClock())
    use_release(settings.release, warn=progress.warn)
    process = ApiServerProcess(settings, progress, SystemClock())
    return run_alone(
        process,
        progress,
        settings.ready_file,
        lambda: f"ready in {progress.elapsed_seconds():.2f} s",
    )


class ApiServerProcess:
    def __init__(
        self,
        settings: ApiServerProcessSettings,
        progress: Progress,
        clock: Clock,
        adjust: Adjust = lambda settings: settings,
    ) -> None:
        """`adjust`: for nodes of this process, which are found elsewhere than others."""
        self._settings, self._progress, self._clock = settings, progress, clock
        self._adjust = adjust
        self._metrics = process_metrics(Traces(clock))
        self._tasks = Tasks("apiserver")
        self._api = ServedApi(clock, self._metrics)
        self.port = 0
        self.server: ApiServer | None = None  # once it is started

    async def start(self) -> None:
        """Returns when requests are answered. Raises CannotStart."""
        settings = self._settings
        self._api.export_traces(settings.tracing_config_file)
        address = settings.advertise_address or _own_address(settings.bind_address)
        files = self._ensure_files(address)
        try:
            tls = server_context(files.certificate, files.key, files.client_ca)
            if settings.security.proxy_ca_file:
                tls.load_verify_locations(settings.security.proxy_ca_file)
        except (OSError, ssl.SSLError) as error:
            raise CannotStart(f"{files.certificate}, {files.key}: {error}") from error
        with self._progress.step("store") as step:
            store = await self._api.open(settings.store)
            step.detail = f"{settings.store.split(':')[0]}, revision {store.revision}"
        with self._progress.step("API server") as step:
            listening = listening_socket(settings.bind_address, settings.port, "--secure-port")
            self.port = listening.getsockname()[1]
            to_nodes = _tls_to_nodes(files)
            chosen = server_settings_of(settings, files, (address, self.port), to_nodes)
            self.server = await self._api.serve(store, self._adjust(chosen), [listening], tls)
            step.detail = url_of(address, self.port)
        self._keep_loaded(tls, files.certificate, files.key)
        self._keep_loaded(to_nodes, files.kubelet_certificate, files.kubelet_key)
        self._keep_fresh(address)

    async def stop(self) -> None:
        await self._tasks.stop()
        await self._api.stop()

    def hurry(self) -> None:
        """Nothing takes long here."""

    def _ensure_files(self, address: str) -> ServerFiles:
        """All of them, by their paths. Raises CannotStart."""
        settings = self._settings
        if settings.cert_dir:
            root = Path(settings.cert_dir)
            shared = ["ca.crt", "front-proxy-ca.crt"]
            shared += [] if settings.token_endpoint else ["sa.key"]
            if missing := [file for file in shared if not (root / file).exists()]:
                raise CannotStart(
                    f"{root} holds no {', '.join(missing)}: `sampan certs` makes them, once for "
                    "all servers of a cluster"
                )
            ensure(root, self._leaves(address), self._clock)
        return files_of(settings.files, settings.cert_dir, bool(settings.token_endpoint))

    def _leaves(self, address: str) -> list[pki.Leaf]:
        """Whose files are not given, we have to have."""
        settings, given = self._settings, self._settings.files
        names = [
            *server_names(
                settings.bind_address, socket.gethostname(), (address,), settings.service_cidrs
            ),
            *signing.kept_names(Path(settings.cert_dir), "apiserver"),
        ]
        is_given = {
            "apiserver": given.certificate,
            "apiserver-kubelet-client": given.kubelet_certificate,
            pki.FRONT_PROXY_CLIENT: given.proxy_certificate,
        }
        return [leaf for leaf in pki.server_leaves(names) if not is_given[leaf.file]]

    def _keep_loaded(self, tls: ssl.SSLContext, certificate: str, key: str) -> None:
        pair = (Path(certificate), Path(key))
        self._tasks.supervise(
            f"certificate {pair[0].name}", lambda: rotation.keep_loaded(tls, pair, self._clock)
        )

    def _keep_fresh(self, address: str) -> None:
        root = Path(self._settings.cert_dir)
        if self._settings.cert_dir and pki.Pki(root).ca_key.exists():
            self._tasks.supervise(
                "renewal",
                lambda: rotation.keep_fresh(
                    root, self._leaves(address), tuple, lambda: None, self._clock
                ),
            )


def files_of(given: ServerFiles, cert_dir: str, has_signer: bool = False) -> ServerFiles:
    """Those that are given, and for the others kubeadm's names in the directory; `has_signer`:
    another program has the key of tokens. Raises CannotStart where there is none."""
    if not cert_dir:
        _check_given(given, has_signer)
        return given
    paths = pki.Pki(Path(cert_dir))
    client = "apiserver-kubelet-client"
    return ServerFiles(
        given.certificate or str(paths.certificate("apiserver")),
        given.key or str(paths.key("apiserver")),
        given.client_ca or str(paths.ca),
        given.token_key or str(paths.token_key),
        given.kubelet_certificate or str(paths.certificate(client)),
        given.kubelet_key or str(paths.key(client)),
        given.kubelet_ca or str(paths.ca),
        given.proxy_certificate or str(paths.certificate(pki.FRONT_PROXY_CLIENT)),
        given.proxy_key or str(paths.key(pki.FRONT_PROXY_CLIENT)),
    )


def _check_given(given: ServerFiles, has_signer: bool) -> None:
    """Raises CannotStart."""
    wanted = _FLAGS.keys() - {"token_key"} if has_signer else _FLAGS.keys()
    missing = [flag for name, flag in _FLAGS.items() if name in wanted and not getattr(given, name)]
    if missing:
        raise CannotStart(
            f"--cert-dir, or else {', '.join(missing)}: there is no other way to know"
        )


_FLAGS = {
    "certificate": "--tls-cert-file",
    "key": "--tls-private-key-file",
    "client_ca": "--client-ca-file",
    "token_key": "--service-account-signing-key-file",
    "kubelet_certificate": "--kubelet-client-certificate",
    "kubelet_key": "--kubelet-client-key",
    "kubelet_ca": "--kubelet-certificate-authority",
}


def _tls_to_nodes(files: ServerFiles) -> ssl.SSLContext:
    """Raises CannotStart."""
    try:
        return client_context(
            ca_path=files.kubelet_ca,
            cert_path=files.kubelet_certificate,
            key_path=files.kubelet_key,
        )
    except (OSError, ssl.SSLError) as error:
        names = f"{files.kubelet_certificate}, {files.kubelet_key}, {files.kubelet_ca}"
        raise CannotStart(f"{names}: {error}") from error


def server_settings_of(
    settings: ApiServerProcessSettings,
    files: ServerFiles,
    advertised: tuple[str, int],
    to_nodes: ssl.SSLContext,
) -> ApiServerSettings:
    """Raises CannotStart."""
    try:
        client_ca, endpoint = Path(files.client_ca).read_bytes(), settings.token_endpoint
        if endpoint and not features.enabled("ExternalServiceAccountTokenSigner"):
            raise CannotStart(
                "setting `--service-account-signing-endpoint` requires enabling "
                "ExternalServiceAccountTokenSigner feature gate"
            )
        return ApiServerSettings(
            service_cidrs=settings.service_cidrs,
            node_ports=range(settings.node_ports[0], settings.node_ports[1] + 1),
            advertise_address=advertised[0],
            advertise_port=advertised[1],
            hostname=socket.gethostname(),
            token_signing_key_pem=b"" if endpoint else Path(files.token_key).read_bytes(),
            token_signing_endpoint=endpoint,
            ca_bundle_pem=client_ca.decode(),
            mount_service_account_tokens=True,
            kubelet_tls=lambda: to_nodes,
            proxy_client=proxy_client_of(settings, files),
            flags=settings.flags,
            **server_settings(settings.security, client_ca),
        )
    except OSError as error:
        raise CannotStart(f"cannot read {error.filename}: {error.strerror}") from error


def proxy_client_of(
    settings: ApiServerProcessSettings, files: ServerFiles
) -> ProxyClientSettings | None:
    """Raises OSError."""
    if not files.proxy_certificate:
        return None
    authority = settings.security.proxy_ca_file
    if not authority and settings.cert_dir:
        authority = str(pki.Pki(Path(settings.cert_dir)).certificate(pki.FRONT_PROXY_CA))
    if not authority or not files.proxy_key:
        raise CannotStart(
            "--proxy-client-cert-file needs --proxy-client-key-file and "
            "--requestheader-client-ca-file"
        )
    return ProxyClientSettings(
        files.proxy_certificate, files.proxy_key, Path(authority).read_text(),
        pki.FRONT_PROXY_CLIENT,
    )  # fmt: skip


def _own_address(bind_address: str) -> str:
    return machine.primary_address() if bind_address in EVERYWHERE else bind_address
