"""[N10] Files of variables, as an original v1.35 reads them."""

import pytest

from sampan.kubelet.container_spec.env_files import BadEnvFile, EnvText, env_files_of
from tests.support.processor_time import spent

FILE = """
# a comment, and a blank line

  FIRST='one'   # and why
SPACED= 'nothing'
LITERAL='a=b # $HOME \\n "c"'
LINES='one
  two

three' # end
EMPTY=''
"""


def value_in(text, name):
    return EnvText("/v/e", text).value_of(name)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("FIRST", "one"),
        ("SPACED", ""),
        ("LITERAL", 'a=b # $HOME \\n "c"'),
        ("LINES", "one\n  two\n\nthree"),
        ("EMPTY", ""),
        ("ABSENT", ""),
    ],
)
def test_a_value_is_what_stands_between_its_quotes(name, value):
    assert value_in(FILE, name) == value
    assert value_in(FILE.replace("\n", "\r\n"), name) == value


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("A='1'\nnonsense", "at line 2: missing '='"),
        ("='1'", "at line 1: empty variable name"),
        ("A ='1'", "at line 1: whitespace before '=' is not allowed"),
        ("A=1", "at line 1: value must be enclosed in single quotes"),
        ('A="1"', "at line 1: value must be enclosed in single quotes"),
        ("A=", "at line 1: value must be enclosed in single quotes"),
        ("\nA='1\n2", "starting at line 2: unclosed single quote"),
        ("A='1\n2' 3", "at line 2: unexpected content after closing quote"),
    ],
)
def test_what_is_not_of_the_form_is_an_error(text, why):
    with pytest.raises(BadEnvFile) as error:
        value_in(text, "WANTED")
    assert str(error.value) == f"invalid environment variable format {why}"


def test_what_comes_after_the_name_that_is_asked_for_is_not_looked_at():
    assert value_in("A='1'\nnonsense", "A") == "1"


def test_a_file_is_parsed_once_for_all_that_is_asked_of_it():
    names = [f"N{number}" for number in range(20_000)]
    file = EnvText("/v/e", "\n".join(f"{name}='{name}'" for name in names))
    with spent() as one:
        assert [file.value_of(name) for name in names] == names
    assert one.seconds < 1


def test_each_file_is_named_once():
    reference = {"volumeName": "v", "path": "a.env", "key": "K"}
    entry = {"name": "X", "valueFrom": {"fileKeyRef": reference}}
    container = {"env": [entry, {**entry, "name": "Y"}, {"name": "Z", "value": "1"}]}
    assert env_files_of(container) == {("v", "a.env")}
