"""cmd/errors.py: what libraries say, as one sentence."""

import pytest
import yaml

from sampan.cmd.errors import reason_of, sentence_of


def test_a_file_that_is_not_there_is_said_without_numbers(tmp_path):
    with pytest.raises(FileNotFoundError) as raised:
        (tmp_path / "none").read_text()
    assert reason_of(raised.value) == "no such file or directory"


def test_broken_yaml_is_said_by_its_line():
    with pytest.raises(yaml.YAMLError) as raised:
        yaml.safe_load("a:\n\tb: 1")
    assert reason_of(raised.value).startswith("line 2: ")
    assert reason_of(ValueError("two\nlines")) == "two lines"


def test_nobody_answers_and_somebody_else_does():
    refused = "dial 127.0.0.1:1: [Errno 111] Connect call failed ('127.0.0.1', 1)"
    assert sentence_of(OSError(refused)).startswith("no API server answers at 127.0.0.1:1: ")
    other = "dial h:2: [SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed"
    assert "another cluster's" in sentence_of(OSError(other))
    assert sentence_of(ValueError("as it is")) == "as it is"
