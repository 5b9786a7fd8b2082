"""The tables of messages, read."""

from sampan.api.schema.message_table import (
    always_written,
    emptiness_told,
    fields_always_written,
    inlined_message,
    load_messages,
    own_tokens,
)

CORE = "io.k8s.api.core.v1."


def test_fields_are_numbered_and_gaps_are_kept():
    messages = load_messages()
    assert messages[CORE + "LocalObjectReference"] == {1: "name"}
    projection = {1: "*LocalObjectReference", 2: "items", 4: "optional?"}
    assert messages[CORE + "ConfigMapProjection"] == projection


def test_the_table_is_read_message_by_message():
    messages = load_messages()
    assert "Nobody" not in messages
    assert CORE + "Nobody" not in messages
    assert len(messages) == len(list(messages)) > 600
    assert messages.get(CORE + "Nobody", {}) == {}


def test_inlined_messages_lend_their_fields():
    messages = load_messages()
    message = CORE + "ConfigMapKeySelector"
    assert inlined_message(message, "*LocalObjectReference") == CORE + "LocalObjectReference"
    assert list(own_tokens(messages, message)) == ["name", "key!", "optional?"]
    assert fields_always_written(messages, message) == {"key", "optional"}
    assert always_written(messages, message) == ["key"]


def test_a_list_whose_emptiness_is_told_is_always_written():
    messages = load_messages()
    message = (
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinitionSpec"
    )
    assert emptiness_told(messages, message) == ["versions"]
    assert "versions" in always_written(messages, message)
    assert emptiness_told(messages, CORE + "ConfigMapKeySelector") == []
