"""The program that stays outside of our namespaces, as we see it.

Job: start it, ask it, end with it.
Owner: Rootless.
"""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sampan.cmd.rootless import host_side
from sampan.cmd.rootless.id_ranges import IdRange, as_words

_PROGRAM = Path(host_side.__file__)


class OutsideError(Exception):
    """It could not do what was asked; the message says why."""


class Outside:
    def __init__(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        # Of its own session: Ctrl-C is for us, and we may still need it.
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(_PROGRAM), str(theirs.fileno())],
            pass_fds=(theirs.fileno(),),
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        theirs.close()
        self._channel = ours

    def close(self) -> None:
        self._channel.close()
        self._process.wait()

    def give_ids(self, pid: int, users: Sequence[IdRange], groups: Sequence[IdRange]) -> None:
        """Raises OutsideError."""
        self._ask(do="give_ids", pid=pid, users=as_words(users), groups=as_words(groups))

    def connect(self, arguments: Sequence[str]) -> int:
        """The pid of the program that moves packets. Raises OutsideError."""
        data, _ = self._ask(do="connect", arguments=list(arguments))
        return int(data["pid"])

    def bound_socket(self, address: str, port: int, kind: str = "tcp") -> socket.socket:
        """On the machine's own network. Raises OSError, as binding does."""
        try:
            _, [descriptor] = self._ask(do="bind", address=address, port=port, kind=kind)
        except OutsideError as error:
            raise OSError(*error.args) from error
        opened = socket.socket(fileno=descriptor)
        opened.setblocking(False)
        return opened

    def _ask(self, **question: Any) -> tuple[dict[str, Any], list[int]]:
        try:
            self._channel.send(json.dumps(question).encode())
            data, opened, _, _ = socket.recv_fds(self._channel, host_side.MOST_BYTES, 1)
            for descriptor in opened:
                os.set_inheritable(descriptor, False)
        except OSError as error:
            raise OutsideError(f"the program outside of the namespace is gone: {error}") from error
        if not data:
            raise OutsideError("the program outside of the namespace has ended")
        answer: dict[str, Any] = json.loads(data)
        if "errno" in answer:
            raise OutsideError(answer["errno"], answer["error"])
        if "error" in answer:
            raise OutsideError(answer["error"])
        return answer, opened
