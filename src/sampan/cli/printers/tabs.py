"""Columns of text, as Go's text/tabwriter lays them out.

Job: rows of cells to aligned lines.
Invariant: the last cell of a row is never padded, and a column is as wide as the widest cell of
    the neighbouring rows that have it.
"""

from collections.abc import Sequence

Rows = Sequence[Sequence[str]]


def align(rows: Rows, *, minimum: int = 6, padding: int = 3) -> str:
    return "".join(line + "\n" for line in _laid_out(rows, [], minimum, padding))


def _laid_out(rows: Rows, widths: list[int], minimum: int, padding: int) -> list[str]:
    """The lines of rows whose first columns are as wide as `widths` says."""
    column, at, lines = len(widths), 0, list[str]()
    while at < len(rows):
        if column >= len(rows[at]) - 1:
            lines.append(_line(rows[at], widths))
            at += 1
            continue
        block, width = at, minimum
        while at < len(rows) and column < len(rows[at]) - 1:
            width = max(width, _width(rows[at][column]) + padding)
            at += 1
        lines += _laid_out(rows[block:at], [*widths, width], minimum, padding)
    return lines


def _line(cells: Sequence[str], widths: list[int]) -> str:
    padded = [
        cell + " " * max(widths[index] - _width(cell), 0) if index < len(widths) else cell
        for index, cell in enumerate(cells[:-1])
    ]
    return "".join([*padded, *cells[-1:]])


def _width(text: str) -> int:
    return len(text)
