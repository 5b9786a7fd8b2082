"""Logs: a constant sentence plus fields, one line each, on standard error.

Job: `get_logger(__name__).info("pod terminated", pod=key, took_seconds=took)`.
Invariant: one event is one line; a value with spaces, quotes or what is not printed is quoted, and
    written so that it moves no cursor and begins no line.
"""

import logging
import sys
import traceback
from datetime import UTC, datetime

_LETTER = {logging.DEBUG: "D", logging.INFO: "I", logging.WARNING: "W", logging.ERROR: "E"}


class Logger:
    __slots__ = ("_logger",)

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger

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
        for line in "".join(traceback.format_exception(error)).splitlines():
            self._logger.error("  %s", _printable(line))

    def _write(self, level: int, sentence: str, fields: dict[str, object]) -> None:
        pairs = "".join(f" {name}={_text(value)}" for name, value in fields.items())
        self._logger.log(level, "%s%s", sentence, pairs)


def get_logger(name: str) -> Logger:
    return Logger(logging.getLogger(name))


def set_up(level: str = "info", stream: object = None) -> None:
    """Called once per process, by cmd/ only."""
    handler = logging.StreamHandler(stream or sys.stderr)  # type: ignore[arg-type]  # any text stream
    handler.setFormatter(_Line())
    root = logging.getLogger("sampan")
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    root.propagate = False


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
