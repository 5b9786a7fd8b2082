"""A terminal that a page's commands are pasted into: bash, on a machine of its own.

Job: run one command after the other in one shell, and know what each printed and how it ended.
"""

import os
import secrets
import select
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path


class Terminal:
    def __init__(
        self, where: Sequence[str], directory: Path, environment: Mapping[str, str]
    ) -> None:
        self._where, self._directory, self._environment = where, directory, dict(environment)
        self._shell = self._start(["bash", "--noprofile", "--norc"])

    def run(self, words: str, seconds: float = 120.0) -> tuple[list[str], int]:
        """What it printed, line by line, and its exit code."""
        end = f"end-{secrets.token_hex(8)}"
        # Braces, not parentheses: what it exports and where it goes to is for the next one, too.
        script = f"{{\n{words}\n}} </dev/null\nprintf '\\n{end} %s\\n' $?\n"
        assert self._shell.stdin is not None
        self._shell.stdin.write(script.encode())
        self._shell.stdin.flush()
        deadline, mark, found = time.monotonic() + seconds, f"\n{end} ".encode(), b""
        while not (mark in found and found.endswith(b"\n")):
            found += read_some(self._shell, deadline, words, found)
        output, _, code = found.partition(mark)
        return output.decode(errors="replace").splitlines(), int(code)

    def start(self, words: str) -> "Foreground":
        """In a terminal beside this one, where it stays until Ctrl-C."""
        return Foreground(self._start(["bash", "--noprofile", "--norc", "-c", words]), words)

    def close(self) -> None:
        assert self._shell.stdin is not None
        self._shell.stdin.close()
        try:
            self._shell.wait(60)
        except subprocess.TimeoutExpired:  # a command of the page hangs, and was complained about
            os.killpg(self._shell.pid, signal.SIGKILL)
            self._shell.wait()
        assert self._shell.stdout is not None
        self._shell.stdout.close()

    def _start(self, command: list[str]) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            [*self._where, *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, cwd=self._directory, env=self._environment,
            start_new_session=True,
        )  # fmt: skip


class Foreground:
    def __init__(self, process: "subprocess.Popen[bytes]", words: str) -> None:
        self._process, self._words, self._found = process, words, b""

    def lines_until(self, is_last: Callable[[str], bool], seconds: float = 120.0) -> list[str]:
        """What it printed up to that line, and perhaps more."""
        deadline = time.monotonic() + seconds
        while not any(is_last(line) for line in self._lines()[:-1]):
            self._found += read_some(self._process, deadline, self._words, self._found)
        return self._lines()

    def _lines(self) -> list[str]:
        return self._found.decode(errors="replace").split("\n")

    def interrupt(self) -> None:
        """Ctrl-C."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGINT)
        self._process.communicate(timeout=120)


def read_some(
    process: "subprocess.Popen[bytes]", deadline: float, words: str, so_far: bytes
) -> bytes:
    assert process.stdout is not None
    descriptor = process.stdout.fileno()
    is_ready = select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))[0]
    found = os.read(descriptor, 65536) if is_ready else b""
    if not found:
        what = "the shell ended" if is_ready else "no end in sight"
        raise AssertionError(f"{what}: {words}\n{so_far.decode(errors='replace')}")
    return found
