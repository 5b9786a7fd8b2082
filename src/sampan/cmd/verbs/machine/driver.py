"""`sampan driver`: a driver of our own as a process of its own.

Job: settings → the driver; start it, wait for a signal, stop it.
"""

import argparse
import os
import signal
import sys
import threading
from functools import partial

from sampan.client.contract import Client
from sampan.cmd.background import own_log
from sampan.cmd.cluster.process import Parts, run_alone
from sampan.cmd.cluster.progress import Progress
from sampan.cmd.flags import driver_flags
from sampan.core import log
from sampan.core.clock import SystemClock


def run(given: argparse.Namespace) -> int:
    log.set_up(given.log_level, own_file=own_log())
    progress = Progress(sys.stdout, SystemClock())
    ready = f"{given.kind} driver is ready"
    if given.with_parent:
        threading.Thread(target=_end_with_parent, daemon=True).start()
    return run_alone(_driver(given), progress, given.ready_file, lambda: ready)


def _end_with_parent() -> None:
    """Whoever started it has the other end of its standard input, for as long as he lives."""
    sys.stdin.buffer.read()
    os.kill(os.getpid(), signal.SIGTERM)


def _driver(given: argparse.Namespace) -> Parts:
    if given.kind == "device-plugin":
        from sampan.drivers.device_plugin.device_plugin import DevicePlugin

        return DevicePlugin(driver_flags.device_plugin_settings(given), SystemClock())
    endpoint = os.path.abspath(given.endpoint)
    if given.kind == "csi-sidecars":
        from sampan.drivers.sidecars.sidecars import Sidecars, at_socket

        client = partial(_client, given.kubeconfig)
        return Sidecars(at_socket(endpoint), client, given.node_name, SystemClock())
    registration = os.path.abspath(given.registration) if given.registration else ""
    if given.kind == "dra":
        from sampan.drivers.dra.dra_driver import DraDriver

        settings, client = driver_flags.dra_settings(given), partial(_client, given.kubeconfig)
        return DraDriver(settings, client, endpoint, registration, SystemClock())
    if given.kubeconfig:
        from sampan.drivers.csi.installed_driver import InstalledDriver

        client = partial(_client, given.kubeconfig)
        chosen = driver_flags.csi_settings(given)
        return InstalledDriver(chosen, endpoint, registration, client, SystemClock())
    from sampan.drivers.csi.csi_driver import CsiDriver

    return CsiDriver(driver_flags.csi_settings(given), endpoint, registration, SystemClock())


def _client(path: str) -> Client:
    """Raises CannotStart."""
    from sampan.client.rest import connect
    from sampan.cmd.cluster.component import read_connection

    return connect(read_connection(path), clock=SystemClock())
