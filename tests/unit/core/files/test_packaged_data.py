"""core/files/packaged_data.py: every file of src/sampan/data/ can be read, and says what it is."""

import pytest

from sampan.core.files.packaged_data import FOLDER, packaged_data

MADE = "docs.zip"  # by the build, beside what is written by hand
FILES = sorted(path for path in FOLDER.glob("*") if path.is_file() and path.name != MADE)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_file_is_json_that_says_what_it_is(path):
    assert path.suffix == ".json"
    assert packaged_data(path.stem)["about"]


def test_what_is_read_is_the_callers():
    first = packaged_data("flow_control")
    first["flowSchemas"].clear()
    assert packaged_data("flow_control")["flowSchemas"]
