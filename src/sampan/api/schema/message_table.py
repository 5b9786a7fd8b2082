"""The messages of the API as Go and protobuf know them, by data/messages.json.

Job: lists of fields → numbers, names and marks per message. Pure.
Invariant: the fields of a message that nobody asks for are not read.
"""

from collections.abc import Iterator, Mapping

from sampan.api import features
from sampan.api.versioned_data import versioned_data
from sampan.core.digits import is_digits

# Message → number → token (`name`, `name!`, `name?`, `name?!`, `*Inlined`).
Messages = Mapping[str, dict[int, str]]


def load_messages() -> Messages:
    """Of the process's release; read-only, as all who ask share them."""
    return features.of_release(_read)


def _read(_release: features.Release) -> Messages:
    packages: dict[str, dict[str, str]] = versioned_data("messages")["packages"]
    return _Table(packages)


class _Table(Mapping[str, dict[int, str]]):
    def __init__(self, packages: dict[str, dict[str, str]]) -> None:
        self._packages = packages
        self._length = sum(map(len, packages.values()))

    def __getitem__(self, message: str) -> dict[int, str]:
        package, _, name = message.rpartition(".")
        return _numbered(self._packages[package][name])

    def __iter__(self) -> Iterator[str]:
        return (
            f"{package}.{name}" for package in self._packages for name in self._packages[package]
        )

    def __len__(self) -> int:
        return self._length


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


def _numbered(fields: str) -> dict[int, str]:
    found, number = dict[int, str](), 1
    for token in fields.split():
        if is_digits(token):
            number = int(token)
        else:
            found[number] = token
            number += 1
    return found
