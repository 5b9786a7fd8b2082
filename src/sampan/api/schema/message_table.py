"""The messages of the API as Go and protobuf know them, from the tables of fields.

Job: text of the tables → numbers, names and marks per message. Pure.
"""

from collections.abc import Iterator

from sampan.api.schema import core_fields, group_fields

Messages = dict[
    str, dict[int, str]
]  # message → number → token (`name`, `name!`, `name?`, `name?!`, `*Inlined`)


def load_messages() -> Messages:
    messages: Messages = {}
    for table in (core_fields.FIELDS, group_fields.FIELDS):
        _load(table, messages)
    return messages


def inlined_message(message: str, token: str) -> str:
    """The message that `*Name` stands for: of the same package."""
    return f"{message.rpartition('.')[0]}.{token[1:]}"


def own_tokens(messages: Messages, message: str) -> Iterator[str]:
    """All fields that the message has in JSON, those of inlined messages among them."""
    for token in messages.get(message, {}).values():
        if token.startswith("*"):
            yield from own_tokens(messages, inlined_message(message, token))
        else:
            yield token


def fields_always_written(messages: Messages, message: str) -> frozenset[str]:
    """Names of the fields that Go writes in any case, or whose zero it can tell from nothing."""
    return frozenset(
        token.rstrip("!?") for token in own_tokens(messages, message) if token.endswith(("!", "?"))
    )


def always_written(messages: Messages, message: str) -> list[str]:
    """Names of the fields that Go writes in any case."""
    return [token.rstrip("!?") for token in own_tokens(messages, message) if token.endswith("!")]


def emptiness_told(messages: Messages, message: str) -> list[str]:
    """Names of the lists that Go writes in any case, and whose emptiness validation sees."""
    return [token[:-2] for token in own_tokens(messages, message) if token.endswith("?!")]


def _load(table: str, messages: Messages) -> None:
    package, numbers = "", dict[int, str]()
    number = 1
    for line in table.strip().splitlines():
        if line.startswith("["):
            package = line[1:-1]
            continue
        tokens = line
        if not line.startswith(" "):
            name, _, tokens = line.partition(":")
            numbers, number = {}, 1
            messages[f"{package}.{name}"] = numbers
        for token in tokens.split():
            if token.isdigit():
                number = int(token)
            else:
                numbers[number] = token
                number += 1
