"""Connections to the ports of a pod, made in its network namespace.

Job: the path of a network namespace and a port → a connected socket.
"""

import asyncio
import ctypes
import os
import socket
import threading

_CLONE_NEWNET = 0x40000000
_CONNECT_SECONDS = 30.0


async def connect_inside(namespace: str, port: int) -> socket.socket:
    """`namespace`: its path; empty: the node's own. Raises OSError."""
    loop = asyncio.get_running_loop()
    last: OSError = ConnectionRefusedError(f"port {port}")
    for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
        made = await asyncio.to_thread(socket_inside, namespace, family)
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                await loop.sock_connect(made, (address, port))
            return made
        except (OSError, TimeoutError) as error:
            made.close()
            last = error if isinstance(error, OSError) else last
    raise last


def socket_inside(namespace: str, family: int) -> socket.socket:
    """A socket belongs to the network namespace that its thread was in when it was made."""
    if not namespace:
        return _plain_socket(family)
    made: list[socket.socket] = []
    failures: list[OSError] = []

    def make() -> None:
        try:
            opened = os.open(namespace, os.O_RDONLY)
        except OSError as error:
            failures.append(error)  # the pod has ended
            return
        try:
            if ctypes.CDLL(None, use_errno=True).setns(opened, _CLONE_NEWNET) != 0:
                number = ctypes.get_errno()
                raise OSError(number, os.strerror(number))
            made.append(_plain_socket(family))
        except OSError as error:
            failures.append(error)
        finally:
            os.close(opened)

    # Never one of a pool: it stays in the pod's namespace until it ends.
    thread = threading.Thread(target=make, name="pod-socket")
    thread.start()
    thread.join()
    if failures:
        raise failures[0]
    return made[0]


def _plain_socket(family: int) -> socket.socket:
    made = socket.socket(family, socket.SOCK_STREAM)
    made.setblocking(False)
    return made
