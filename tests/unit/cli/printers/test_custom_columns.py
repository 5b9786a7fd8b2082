import pytest

from sampan.cli.errors import CliError
from sampan.cli.printers.custom_columns import printer_of

POD = {"metadata": {"name": "a"}, "spec": {"nodeName": "n"}}


def test_a_header_may_be_empty():
    spec = ":.metadata.name,NODE:.spec.nodeName"
    assert printer_of("custom-columns", spec, headers=False).text(POD).split() == ["a", "n"]
    assert printer_of("custom-columns", spec, headers=True).text(POD).split() == ["NODE", "a", "n"]


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        (".metadata.name", "expected <header>:<json-path-expr>"),
        ("", "no custom columns given"),
    ],
)
def test_a_specification_that_is_none_is_refused(spec, why):
    with pytest.raises(CliError, match=why):
        printer_of("custom-columns", spec, headers=True)


@pytest.mark.parametrize(
    ("content", "why"),
    [("", "missing header line"), ("A\n", "missing spec line"), ("A B\n.x\n", "don't match")],
)
def test_a_file_that_is_no_specification_is_refused(tmp_path, content, why):
    (tmp_path / "columns").write_text(content)
    with pytest.raises(CliError, match=why):
        printer_of("custom-columns-file", str(tmp_path / "columns"), headers=True)
