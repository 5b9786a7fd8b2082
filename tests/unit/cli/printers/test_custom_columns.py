import pytest

from sampan.cli.errors import CliError
from sampan.cli.printers.custom_columns import parse, text_of

POD = {"metadata": {"name": "a"}, "spec": {"nodeName": "n"}}


def test_a_header_may_be_empty():
    columns = parse(":.metadata.name,NODE:.spec.nodeName")
    assert text_of(columns, [POD], headers=False).split() == ["a", "n"]
    assert text_of(columns, [POD]).split() == ["NODE", "a", "n"]


def test_a_column_without_a_path_is_refused():
    with pytest.raises(CliError, match="expected <header>:<json-path-expr>"):
        parse(".metadata.name")
