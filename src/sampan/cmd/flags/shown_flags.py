"""The flags of a process, as /flagz shows them.

Job: the parser and what it read → every flag of the verb with its value, as Go prints it.
Invariant: no flag's value is a secret (tokens and keys are files): tests/unit/cmd/flags says so.
"""

import argparse
from collections.abc import Mapping

from sampan.api.rules.durations import seconds_text


def keep_flags(parser: argparse.ArgumentParser, given: argparse.Namespace) -> None:
    """For `shown_flags`: only the parser knows what each is called."""
    (verbs,) = (item for item in parser._actions if isinstance(item, argparse._SubParsersAction))
    given.shown_flags = {
        max(action.option_strings, key=len).removeprefix("--"): _shown(getattr(given, action.dest))
        for action in verbs.choices[given.verb]._actions
        if action.option_strings and hasattr(given, action.dest)
    }


def shown_flags(given: argparse.Namespace) -> Mapping[str, str]:
    """Empty where nobody kept them."""
    found: Mapping[str, str] = getattr(given, "shown_flags", {})
    return found


def _shown(value: object) -> str:
    match value:
        case None:
            return ""
        case bool():
            return str(value).lower()
        case tuple() | list():
            return f"[{','.join(map(_shown, value))}]"
        case float():
            return seconds_text(value)
    return str(value)
