"""Beside the library: what the small reader reads is the same; what it is not sure of it leaves."""

import contextlib

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from sampan.client.plain_yaml import Unusual, read, write

KUBECONFIG = """\
apiVersion: v1
# by hand
clusters:
- cluster:
    certificate-authority-data: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCg==
    server: https://127.0.0.1:6443
    insecure-skip-tls-verify: true
  name: dev
contexts:
  - context:
      cluster: "dev"
      user: 'dev-admin'
    name: dev
current-context: dev
kind: Config
preferences: {}
users:
- name: dev-admin
  user:
    exec:
      args: []
      env:
      - name: A
        value: b
      installHint:
"""
UNUSUAL = [
    "", "a: 1", "a: 2024-01-01", "a: &x b", "a: [b, c]", "a: {b: c}", "a: b c", "a: |\n  x\n",
    "a: b\n  c", "yes: a", "a: on", "a: tRue", "- a\n- b\n c", "a: b # c", "a:\tb", "a: ~", "a: .5",
    'a: "\\n"', "a: 'it''s'", "a: b\r\nc: d", "a: b:", "a: %b", "a: é", "a\n", "a: b\n c: d",
    "<<: a", "? a", "a: !!str b", "---\na: b", "a: b\n---\nc: d", "a: -", "a: - b", "a: b\n- c",
]  # fmt: skip


def test_a_kubeconfig_is_read():
    assert read(KUBECONFIG) == yaml.safe_load(KUBECONFIG)


@pytest.mark.parametrize("text", UNUSUAL)
def test_what_is_unusual_is_left_to_the_library(text):
    with contextlib.suppress(yaml.YAMLError):
        yaml.safe_load(text)
    with pytest.raises(Unusual):
        read(text)


SCALARS = st.one_of(
    st.booleans(), st.none(), st.text("abzA1/:=+._-~% '\"#,&*!|>{}[]\n", max_size=8)
)
KEYS = st.text("abcxyz-./01", min_size=1, max_size=6)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=12,
)


@given(st.dictionaries(KEYS, VALUES, max_size=4))
def test_what_the_library_writes_is_read_the_same_or_not_at_all(document):
    text = yaml.safe_dump(document)
    with contextlib.suppress(Unusual):
        assert read(text) == document


@given(st.text("ab:- \n'\"#{}[]~|>&*!?%,=1.tru\t", max_size=30))
def test_any_text_is_read_the_same_or_not_at_all(text):
    with contextlib.suppress(Unusual):
        assert read(text) == yaml.safe_load(text)


def test_a_kubeconfig_is_written_as_it_was_read():
    document = read(KUBECONFIG)
    text = write(document)
    assert read(text) == yaml.safe_load(text) == document


@given(st.dictionaries(KEYS, VALUES, min_size=1, max_size=4))
def test_what_is_written_both_read_as_it_was(document):
    try:
        text = write(document)
    except Unusual:
        return
    assert read(text) == document
    assert yaml.safe_load(text) == document


@pytest.mark.parametrize("value", [1, 1.5, "it's", "é", "a\nb", b"x"])
def test_what_it_might_not_read_again_is_not_written(value):
    with pytest.raises(Unusual):
        write({"a": value})
