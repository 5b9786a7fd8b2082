"""Where audit events go: a file that is rotated, a webhook that gets them in batches.

Job: take lines at once; write them out in the background.
Invariant: at most MOST lines wait; what comes then is dropped, and counted.
"""

import asyncio
import gzip
import os
import shutil
from collections import deque
from pathlib import Path

import orjson

from sampan.apiserver.outside.webhook_client import Caller, CallFailed
from sampan.core.backoff import Backoff
from sampan.core.clock import Clock
from sampan.core.fast_dataclass import dataclass
from sampan.core.log import get_logger
from sampan.core.metrics import Metrics
from sampan.core.tasks import Tasks

log = get_logger(__name__)

MOST = 10_000
BATCH = 400  # as upstream's webhook
BATCH_SECONDS = 30.0
ATTEMPTS, ASK_SECONDS = 5, 30.0
LAST_SECONDS = 5.0  # for what is left when the server stops
RETRY = Backoff(first_seconds=1.0, cap_seconds=30.0)


@dataclass(frozen=True, slots=True)
class AuditFile:
    path: str
    max_bytes: int = 100 * 1024 * 1024
    max_backups: int = 0  # 0: all
    max_age_days: int = 0  # 0: for ever
    compress: bool = False


class _Buffered:
    """Lines in order, taken by one task."""

    def __init__(self, name: str, clock: Clock, metrics: Metrics) -> None:
        self._lines: deque[bytes] = deque()
        self._wake = asyncio.Event()
        self._clock = clock
        self._tasks = Tasks(f"audit {name}")
        self._name = name
        self._dropped = metrics.counter(
            "apiserver_audit_error_total",
            "Counter of audit events that failed to be audited properly. Plugin identifies the "
            "plugin affected by the error.",
            ("plugin",),
        )
        self._started = False

    def write(self, line: bytes) -> None:
        if len(self._lines) >= MOST:
            self._dropped.add(self._name)
            return
        self._lines.append(line)
        self._wake.set()
        if not self._started:
            self._started = True
            self._tasks.supervise("writer", self._run)

    async def close(self) -> None:
        await self._tasks.stop()
        await self._flush()

    async def _run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            await self._flush()

    async def _flush(self) -> None:
        raise NotImplementedError

    def _take_lines(self, most: int) -> list[bytes]:
        return [self._lines.popleft() for _ in range(min(most, len(self._lines)))]


class FileSink(_Buffered):
    def __init__(self, settings: AuditFile, clock: Clock, metrics: Metrics) -> None:
        super().__init__("log", clock, metrics)
        self._settings = settings
        self._path = Path(settings.path)
        self._writing: asyncio.Future[None] | None = None

    async def close(self) -> None:
        await self._tasks.stop()
        if self._writing is not None:
            await self._writing
        await self._flush()

    async def _flush(self) -> None:
        loop = asyncio.get_running_loop()
        while self._lines:
            data = b"\n".join(self._take_lines(MOST)) + b"\n"
            # Whoever is cancelled here leaves the write under way; close waits for it.
            self._writing = loop.run_in_executor(None, self._append, data)
            await asyncio.shield(self._writing)

    def _append(self, data: bytes) -> None:
        size = self._path.stat().st_size if self._path.exists() else 0
        if size and size + len(data) > self._settings.max_bytes:
            self._rotate()
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        descriptor = os.open(self._path, flags, 0o600)
        try:
            os.write(descriptor, data)
        finally:
            os.close(descriptor)

    def _rotate(self) -> None:
        stamp = f"{self._clock.now():.6f}"
        rotated = self._path.with_name(f"{self._path.stem}-{stamp}{self._path.suffix}")
        os.replace(self._path, rotated)
        if self._settings.compress:
            packed = rotated.with_name(rotated.name + ".gz")
            with rotated.open("rb") as plain, gzip.open(packed, "wb") as target:
                shutil.copyfileobj(plain, target)
            packed.chmod(0o600)
            rotated.unlink()
        self._forget()

    def _forget(self) -> None:
        pattern = f"{self._path.stem}-*{self._path.suffix}*"
        backups = sorted(self._path.parent.glob(pattern), reverse=True)
        keep = self._settings.max_backups or len(backups)
        oldest = self._clock.now() - self._settings.max_age_days * 86400
        for index, backup in enumerate(backups):
            too_old = self._settings.max_age_days and backup.stat().st_mtime < oldest
            if index >= keep or too_old:
                backup.unlink()


class WebhookSink(_Buffered):
    def __init__(self, caller: Caller, clock: Clock, metrics: Metrics) -> None:
        super().__init__("webhook", clock, metrics)
        self._caller = caller

    async def _run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            if len(self._lines) < BATCH:
                await self._clock.sleep(min(1.0, BATCH_SECONDS))
            await self._flush()

    async def close(self) -> None:
        """Whoever stops does not wait long for somebody who does not answer."""
        await self._tasks.stop()
        try:
            async with asyncio.timeout(LAST_SECONDS):
                await self._flush()
        except TimeoutError:
            self._lose(len(self._lines), "no answer before the end")
            self._lines.clear()

    async def _flush(self) -> None:
        while self._lines:
            batch = self._take_lines(BATCH)
            sent = False
            try:
                await self._send(batch)
                sent = True
            finally:
                if not sent:  # cancelled: they are for the last attempt
                    self._lines.extendleft(reversed(batch))

    async def _send(self, batch: list[bytes]) -> None:
        document = {
            "kind": "EventList",
            "apiVersion": "audit.k8s.io/v1",
            "metadata": {},
            "items": [orjson.loads(line) for line in batch],
        }
        for attempt in range(1, ATTEMPTS + 1):
            try:
                await self._caller.post(document, ASK_SECONDS)
                return
            except CallFailed as error:
                if attempt == ATTEMPTS:
                    self._lose(len(batch), error)
                else:
                    await self._clock.sleep(RETRY.delay(attempt))

    def _lose(self, count: int, why: object) -> None:
        self._dropped.add(self._name, by=float(count))
        log.warning("audit events were lost", error=why, events=count)
