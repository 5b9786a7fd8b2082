"""Logs: a constant sentence plus fields, one line each, on standard error.

Job: `get_logger(__name__).info("pod terminated", pod=key, took_seconds=took)`.
Invariant: one event is one line; a value with spaces, quotes or what is not printed is quoted, and
    written so that it moves no cursor and begins no line.
Invariant: the same failure brings its traceback once in a minute, and a log file of our own has an
    end: beyond MOST_BYTES what there is becomes FILE.1, whose predecessor goes.
"""

import fcntl
import logging
import os
import sys
import traceback
from datetime import UTC, datetime
from types import TracebackType

from sampan.core.bounded import Bounded
from sampan.core.clock import SystemClock

MOST_BYTES = 16 << 20
LINES_BETWEEN_LOOKS = 500
TRACEBACK_SECONDS = 60.0
_LETTER = {logging.DEBUG: "D", logging.INFO: "I", logging.WARNING: "W", logging.ERROR: "E"}


class Logger:
    __slots__ = ("_logger", "_told")

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger
        # Which failures brought their traceback when; one that was forgotten brings it again.
        self._told: Bounded[tuple[str, type, str], float] = Bounded(32)

    def debug(self, sentence: str, **fields: object) -> None:
        if self._logger.isEnabledFor(logging.DEBUG):
            self._write(logging.DEBUG, sentence, fields)

    def info(self, sentence: str, **fields: object) -> None:
        if self._logger.isEnabledFor(logging.INFO):
            self._write(logging.INFO, sentence, fields)

    def warning(self, sentence: str, **fields: object) -> None:
        self._write(logging.WARNING, sentence, fields)

    def error(self, sentence: str, **fields: object) -> None:
        self._write(logging.ERROR, sentence, fields)

    def bug(self, sentence: str, error: BaseException, **fields: object) -> None:
        """A failure that nobody expected: the line, and the traceback below it."""
        self._write(logging.ERROR, sentence, {**fields, "error": error})
        key = (sentence, type(error), _place(error.__traceback__))
        now = SystemClock.monotonic()
        if now - self._told.get(key, float("-inf")) < TRACEBACK_SECONDS:
            return
        self._told[key] = now
        for line in "".join(traceback.format_exception(error)).splitlines():
            self._logger.error("  %s", _printable(line))

    def _write(self, level: int, sentence: str, fields: dict[str, object]) -> None:
        pairs = "".join(f" {name}={_text(value)}" for name, value in fields.items())
        self._logger.log(level, "%s%s", sentence, pairs)


def get_logger(name: str) -> Logger:
    return Logger(logging.getLogger(name))


def set_up(level: str = "info", stream: object = None, own_file: str = "") -> None:
    """Called once per process, by cmd/ only. `own_file`: standard error may be this file, which
    nobody else looks after."""
    handler = _Bounded(stream or sys.stderr)
    handler.own_file = own_file
    handler.setFormatter(_Line())
    root = logging.getLogger("sampan")
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    root.propagate = False


class _Bounded(logging.StreamHandler):  # type: ignore[type-arg]  # generic for type checkers only
    """Looks now and then whether the file has become too long."""

    own_file = ""
    _lines = 0

    def emit(self, record: logging.LogRecord) -> None:
        super().emit(record)
        self._lines += 1
        if self._lines >= LINES_BETWEEN_LOOKS:
            self._lines = 0
            begin_anew(self.own_file)


def begin_anew(name: str) -> None:
    """Where standard error is that file and it is too long. All who write append to the same one,
    so it is emptied, not moved; what somebody writes at that moment may be lost."""
    if not name:
        return
    try:
        with open(name, "rb") as file:
            there, ours = os.fstat(file.fileno()), os.fstat(sys.stderr.fileno())
            if there.st_size <= MOST_BYTES or not os.path.samestat(there, ours):
                return
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            older = os.open(f"{name}.1", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with open(older, "wb") as kept:
                while part := file.read(1 << 20):
                    kept.write(part)
            os.truncate(name, 0)
    except (OSError, ValueError):
        return  # it is gone, another process is at it, or the disk is full: it stays as it is


def _place(where: TracebackType | None) -> str:
    """The line that failed."""
    while where is not None and where.tb_next is not None:
        where = where.tb_next
    return f"{where.tb_frame.f_code.co_filename}:{where.tb_lineno}" if where is not None else ""


class _Line(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created, UTC)
        part = record.name.removeprefix("sampan.")
        letter = _LETTER.get(record.levelno, "?")
        return f"{letter} {moment:%H:%M:%S.%f} {part}: {record.getMessage()}"


def _text(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, BaseException):
        value = f"{type(value).__name__}: {value}"
    text = str(value)
    if text and text.isprintable() and not any(character in ' "=' for character in text):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{_printable(escaped)}"'


def _printable(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)
