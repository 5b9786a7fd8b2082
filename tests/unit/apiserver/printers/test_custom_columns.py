"""apiserver/printers/custom_columns.py: the cells of additionalPrinterColumns."""

import json
from pathlib import Path

import pytest

from sampan.apiserver.printers.custom_columns import custom_printer

RECORDED = json.loads(Path(__file__).with_name("custom_columns_recorded.json").read_text())
THING = RECORDED["data"]


@pytest.mark.parametrize(
    "row", RECORDED["rows"], ids=lambda row: f"{row['jsonPath']}:{row['type']}"
)
def test_cells_are_what_kube_apiserver_showed(row):
    printer = custom_printer([{"name": "C", "jsonPath": row["jsonPath"], "type": row["type"]}])
    assert printer.cells(THING, 0.0) == ["web", row["cell"]]


def test_columns_end_before_the_first_whose_path_cannot_be_read():
    columns = [
        {"name": "A", "type": "string", "jsonPath": ".spec.text"},
        {"name": "B", "type": "string", "jsonPath": '.spec.numbers["0"]'},
        {"name": "C", "type": "string", "jsonPath": ".spec.int"},
    ]
    printer = custom_printer(columns)
    assert [column.name for column in printer.columns] == ["Name", "A"]
    assert printer.cells(THING, 0.0) == ["web", "hello"]


def test_an_age_is_counted_from_now():
    thing = {"metadata": {"name": "a", "creationTimestamp": "1970-01-01T00:00:10Z"}}
    assert custom_printer([]).cells(thing, 75.0) == ["a", "65s"]
