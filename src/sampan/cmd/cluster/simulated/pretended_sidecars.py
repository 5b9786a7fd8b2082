"""The sidecars of a CSI driver that simulated nodes pretend to have.

Job: provisioner, attacher, resizer and capacity as beside any driver, which is in this process.
"""

from functools import partial

from sampan.client.contract import Client
from sampan.core.clock import Clock
from sampan.drivers.sidecars.sidecars import Sidecars
from sampan.kubelet.simulated.pretence import PretendedDriver
from sampan.kubelet.simulated.pretended_csi import DriverFaults, PretendedCsi


def sidecars_of(driver: PretendedDriver, client: Client, clock: Clock) -> Sidecars:
    faults = DriverFaults(client, driver.name, "", clock)
    connect = partial(PretendedCsi, driver, "", faults)
    return Sidecars(connect, lambda: client, "", clock)
