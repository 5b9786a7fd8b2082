"""Logs of the machine, as its node shows them: files, and what NodeLogQuery asks for.

Job: a path and a query below `/logs/` → a listing, a file, or what journalctl and the files of
    services have.
Invariant: nothing outside of the directory is read, whatever a query says; a query takes half a
    minute at most.
Owner: KubeletServer.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from urllib.parse import parse_qs

from sampan.core.http.messages import Headers, Reply, Request, Response, Stream
from sampan.kubelet.server.node_log_files import BLOCK_BYTES, ROOT, is_below, log_file
from sampan.kubelet.server.node_log_query import (
    BadQuery,
    NodeLogQuery,
    Options,
    file_names,
    journal_arguments,
    read,
    validate,
)

JOURNAL = "journalctl"
SECONDS = 30.0
_TEXT: Headers = (("content-type", "text/plain; charset=utf-8"),)
_JOURNAL: Headers = (("content-type", "text/plain;charset=UTF-8"),)


class NodeLogs:
    def __init__(self, root: str = ROOT, journal: str = JOURNAL) -> None:
        self._root, self._journal = root, journal

    async def answer(self, place: list[str], request: Request, *, queries: bool) -> Reply:
        """`queries`: they are heeded; else only files are shown."""
        if not queries:
            return log_file(place, self._root)
        try:
            query = read(parse_qs(request.query, keep_blank_values=True))
            if query is None:
                return log_file(place, self._root)
            if "".join(place):
                return Response(406, _TEXT, b"path not allowed in query mode\n")
            validate(query, self._why_no_file(query))
        except BadQuery as error:
            return Response(error.status, _TEXT, f"{error}\n".encode())
        if query.files:
            return log_file(query.files[0].replace("\\", "/").split("/"), self._root)
        return Stream(200, _JOURNAL, self._written(query))

    def _why_no_file(self, query: NodeLogQuery) -> str:
        name = next(iter(query.files), "")
        if not name:
            return ""
        if name.startswith("/") or not is_below(name, self._root):
            return f"statat {name}: path escapes from parent"
        try:
            os.stat(os.path.join(self._root, name))
        except OSError as error:
            return f"statat {name}: {(error.strerror or '').lower()}"
        return ""

    async def _written(self, query: NodeLogQuery) -> AsyncIterator[bytes]:
        deadline = asyncio.get_running_loop().time() + SECONDS
        units = await self._units(deadline)
        native = [name for name in query.services if f"{name}.service" in units]
        if native:
            async for block in self._journal_of(query, native, deadline):
                yield block
        others = [name for name in query.services if name not in native]
        if others and query.options != Options():
            listed = " ".join(others)
            told = f"options present and query resolved to log files for [{listed}]"
            yield f"\n{told}\ntry without specifying options\n".encode()
            return
        for service in others:
            yield self._of_files(service)

    async def _units(self, deadline: float) -> str:
        """Who writes to the journal; nobody, where there is none."""
        blocks = []
        try:
            async for block in self._output(["--field", "_SYSTEMD_UNIT"], deadline):
                blocks.append(block)
        except OSError:
            return ""
        return b"".join(blocks).decode(errors="replace")

    async def _journal_of(
        self, query: NodeLogQuery, services: Sequence[str], deadline: float
    ) -> AsyncIterator[bytes]:
        try:
            async for block in self._output(journal_arguments(query, services), deadline):
                yield block
        except OSError:
            yield b"\nerror: journal output not available\n"

    async def _output(self, arguments: Sequence[str], deadline: float) -> AsyncIterator[bytes]:
        """As it comes; what is not there in time is left out."""
        process = await asyncio.create_subprocess_exec(
            self._journal, *arguments,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )  # fmt: skip
        assert process.stdout is not None
        try:
            async with asyncio.timeout_at(deadline):
                while block := await process.stdout.read(BLOCK_BYTES):
                    yield block
        except TimeoutError:
            return
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()

    def _of_files(self, service: str) -> bytes:
        for name in file_names(service):
            path = os.path.join(self._root, name)
            if not is_below(name, self._root) or not os.path.isfile(path):
                continue
            try:
                with open(path, "rb") as file:
                    return file.read()
            except OSError as error:
                return f"\nerror getting log for {service}: {error}\n".encode()
        return f"\nlog not found for {service}\n".encode()
