"""Room for what waits in a socket."""

import socket

from sampan.network.socket_buffers import widen_receiving, widen_sending


class Modest(socket.socket):
    """Of root of a user namespace: nothing beyond the machine's limit."""

    def setsockopt(self, level, option, value):
        if option in (32, 33):
            raise PermissionError
        super().setsockopt(level, option, value)


def test_there_is_more_room_with_and_without_the_right_to_it():
    for kind in (socket.socket, Modest):
        with kind(socket.AF_INET, socket.SOCK_DGRAM) as opened:
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
            widen_receiving(opened, 65536)
            widen_sending(opened, 65536)
            for option in (socket.SO_RCVBUF, socket.SO_SNDBUF):
                assert opened.getsockopt(socket.SOL_SOCKET, option) >= 65536
