"""Columns of text, as Go's text/tabwriter lays them out.

Job: rows of cells to aligned lines.
Invariant: the last cell of a row is never padded, and a column is as wide as the widest cell of
    the neighbouring rows that have it.
"""

from collections.abc import Sequence

Rows = Sequence[Sequence[str]]


def aligned(rows: Rows, *, minimum: int = 6, padding: int = 3) -> str:
    lines: list[str] = []
    _lay_out(rows, 0, len(rows), [], lines, minimum, padding)
    return "".join(line + "\n" for line in lines)


def _lay_out(
    rows: Rows, start: int, end: int, widths: list[int], out: list[str], minimum: int, padding: int
) -> None:
    column, at = len(widths), start
    while at < end:
        if column >= len(rows[at]) - 1:
            out.append(_line(rows[at], widths))
            at += 1
            continue
        block = at
        width = minimum
        while at < end and column < len(rows[at]) - 1:
            width = max(width, _width(rows[at][column]) + padding)
            at += 1
        _lay_out(rows, block, at, [*widths, width], out, minimum, padding)


def _line(cells: Sequence[str], widths: list[int]) -> str:
    padded = [
        cell + " " * max(widths[index] - _width(cell), 0) if index < len(widths) else cell
        for index, cell in enumerate(cells[:-1])
    ]
    return "".join([*padded, *cells[-1:]])


def _width(text: str) -> int:
    return len(text)
