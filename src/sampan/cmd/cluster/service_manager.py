"""What a service manager (systemd) is told of this process, where one has started it.

Job: sd_notify's datagram: READY=1, STOPPING=1.
Invariant: nobody who does not listen keeps the process from starting or stopping.
"""

import socket
from collections.abc import Mapping

from sampan.core.log import get_logger

VARIABLE = "NOTIFY_SOCKET"
log = get_logger(__name__)


def notify(state: str, environment: Mapping[str, str]) -> None:
    address = environment.get(VARIABLE, "")
    if not address:
        return
    # A name that begins with @ is in the abstract namespace.
    place = f"\0{address[1:]}" if address.startswith("@") else address
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
        try:
            sender.sendto(state.encode(), socket.MSG_DONTWAIT, place)
        except OSError as error:
            log.warning("service manager not notified", state=state, error=error)
