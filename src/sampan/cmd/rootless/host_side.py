"""What stays outside when `sampan up` enters a user namespace: a small program of its own.

Job: do for the process inside what only somebody outside can: give its namespace ids, connect it
    with the network, listen on addresses of the machine. Questions and answers are JSON, each one
    message at the socket that it was started with.
Invariant: it needs nothing but Python's own library, so that it stays small.
Invariant: it does what an ordinary user may do anyway; it ends with the process inside.
"""

import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import Any

MOST_BYTES = 1 << 16
SECONDS = 10.0
# Among a program's words: where it says that it is ready; or the file that its pid is in when it
# has gone to the background, ready.
READY, PID_FILE = "{ready}", "{pid-file}"

Answer = tuple[dict[str, Any], list[int]]


def give_ids(pid: int, users: list[str], groups: list[str]) -> Answer:
    for program, arguments in (("newuidmap", users), ("newgidmap", groups)):
        done = subprocess.run(
            [program, str(pid), *arguments],
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        if done.returncode != 0:
            return {"error": f"{program}: {done.stderr.strip() or done.returncode}"}, []
    return {}, []


def connect(arguments: list[str]) -> Answer:
    """Starts what moves packets between the namespace and the machine; it outlives us."""
    if any(PID_FILE in word for word in arguments):
        return _connect_in_background(arguments)
    ready, ready_write = os.pipe()
    arguments = [word.replace(READY, str(ready_write)) for word in arguments]
    try:
        process = subprocess.Popen(
            arguments, pass_fds=(ready_write,), start_new_session=True, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        )  # fmt: skip
        os.close(ready_write)
        ready_write = -1
        if not os.read(ready, 1):
            assert process.stderr is not None
            output = process.stderr.read(MOST_BYTES // 4).decode(errors="replace").strip()
            return {"error": f"{arguments[0]}: {output or 'it ended without a word'}"}, []
        return {"pid": process.pid}, []
    finally:
        os.close(ready)
        if ready_write >= 0:
            os.close(ready_write)


def _connect_in_background(arguments: list[str]) -> Answer:
    # Files, not pipes: what goes to the background keeps them open.
    with tempfile.NamedTemporaryFile() as file, tempfile.TemporaryFile() as complaint:
        done = subprocess.run(
            [word.replace(PID_FILE, file.name) for word in arguments], start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=complaint, timeout=SECONDS,
            check=False,
        )  # fmt: skip
        if done.returncode != 0:
            complaint.seek(0)
            output = complaint.read(MOST_BYTES // 4).decode(errors="replace").strip()
            return {"error": f"{arguments[0]}: {output or 'it ended without a word'}"}, []
        with open(file.name) as written:
            return {"pid": int(written.read())}, []


def bind(address: str, port: int, kind: str) -> Answer:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    opened = socket.socket(family, socket.SOCK_STREAM if kind == "tcp" else socket.SOCK_DGRAM)
    try:
        if kind == "tcp":
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind((address, port))
    except OSError:
        opened.close()
        raise
    return {}, [opened.detach()]


WORK: dict[str, Callable[..., Answer]] = {"give_ids": give_ids, "connect": connect, "bind": bind}


def answer(question: dict[str, Any]) -> Answer:
    try:
        return WORK[question.pop("do")](**question)
    except OSError as error:
        return {"error": error.strerror or str(error), "errno": error.errno}, []
    except subprocess.TimeoutExpired as error:
        return {"error": str(error)}, []


def main() -> None:
    channel = socket.socket(fileno=int(sys.argv[1]))
    while question := channel.recv(MOST_BYTES):
        output, opened = answer(json.loads(question))
        socket.send_fds(channel, [json.dumps(output).encode()], opened)
        for descriptor in opened:
            os.close(descriptor)


if __name__ == "__main__":
    main()
