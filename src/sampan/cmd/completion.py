"""Completion of the cluster's own verbs: their flags, values, names of clusters and snapshots.

Job: what could come next after a verb of `sampan` that is not one of the client's.
"""

import argparse
import os
from pathlib import Path

from sampan.cli.completion import candidates
from sampan.cli.completion.candidates import Answer
from sampan.cli.completion.directives import DEFAULT, NO_FILES
from sampan.cli.session import Io, Session
from sampan.cli.verb_position import without_flag
from sampan.cmd.flags.parser import parser_of_verbs

ASKING = ("why", "trace")  # about an object, as `describe` is


def complete(words: list[str], kubeconfig: str) -> Answer:
    """`words` begin with the verb; the last one is what is being typed. `kubeconfig` is that of a
    cluster of this machine, for who has none."""
    *before, last = words
    parser, rest = _parser(before)
    if last.startswith("-") and "=" not in last:
        return Answer(_flags(parser, rest, last), NO_FILES)
    name, equals, typed = last.partition("=")
    flag = _action(parser, name) if equals and last.startswith("-") else None
    if flag is None and rest and rest[-1].startswith("-") and "=" not in rest[-1]:
        flag, typed = _action(parser, rest[-1]), last
    if flag is not None and flag.nargs != 0:
        return _values(flag, typed, before, kubeconfig)
    return _arguments(parser, before, last, kubeconfig)


def is_cluster_named(words: list[str]) -> bool:
    """The last word is the value of a `--name` that is not the client's verb's own flag."""
    *before, last = words
    if not last.startswith("--name=") and before[-1] != "--name":
        return False
    return without_flag([*before, f"{last}x"], "name")[1] != ""


def clusters(typed: str) -> Answer:
    """`--name`, which every verb of the client takes that has no such flag itself."""
    return _begun(_clusters(), typed)


def _parser(words: list[str]) -> tuple[argparse.ArgumentParser, list[str]]:
    """The parser of the verb, or of the verb's verb; and the words after its name."""
    parser: argparse.ArgumentParser = parser_of_verbs(words[0])
    rest = list(words)
    while rest:
        inner = _verbs(parser)
        if inner is None or rest[0] not in inner.choices:
            break
        parser, rest = inner.choices[rest[0]], rest[1:]
    return parser, rest


def _verbs(
    parser: argparse.ArgumentParser,
) -> "argparse._SubParsersAction[argparse.ArgumentParser] | None":
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return action
    return None


def _flags(parser: argparse.ArgumentParser, rest: list[str], last: str) -> list[str]:
    given = {word.partition("=")[0] for word in rest}
    return [
        f"{name}\t{_said(action)}"
        for action in sorted(parser._actions, key=lambda one: "".join(one.option_strings[-1:]))
        if action.help is not argparse.SUPPRESS and not given & set(action.option_strings)
        for name in sorted(action.option_strings, key=len, reverse=True)
        if name.startswith(last)
    ]


def _said(action: argparse.Action) -> str:
    """Without what argparse would fill in."""
    text = str(action.help or "").replace("%(default)s", str(action.default))
    return " ".join(text.replace("%%", "%").split())


def _action(parser: argparse.ArgumentParser, name: str) -> argparse.Action | None:
    return next((one for one in parser._actions if name in one.option_strings), None)


def _values(flag: argparse.Action, typed: str, words: list[str], kubeconfig: str) -> Answer:
    if flag.choices is not None:
        return _begun([str(choice) for choice in flag.choices], typed)
    if flag.dest == "cluster_name":
        return _begun(_clusters(), typed)
    if flag.dest == "namespace":
        return _client(["get", "--namespace", typed], kubeconfig)
    if flag.dest == "snapshot":
        return _begun(_snapshots(), typed)
    return Answer([], DEFAULT)


def _arguments(
    parser: argparse.ArgumentParser, words: list[str], last: str, kubeconfig: str
) -> Answer:
    inner = _verbs(parser)
    if inner is not None:
        lines = {choice.dest: choice.help for choice in inner._choices_actions}
        found = [f"{name}\t{lines.get(name) or ''}" for name in inner.choices]
        return _begun(found, last)
    verb = words[0]
    given = [word for word in words[1:] if not word.startswith("-")]
    if verb in ASKING:
        return _client(["describe", *_kept(words), *given[:1], last], kubeconfig)
    if verb == "snapshot" and len(given) == 1 and given[0] != "save":
        return _begun(_snapshots(), last)
    return _own_arguments(parser, last, is_first=not given)


def _own_arguments(parser: argparse.ArgumentParser, last: str, *, is_first: bool) -> Answer:
    own = [action for action in parser._actions if not action.option_strings]
    for action in own:
        if action.choices is not None and is_first:
            return _begun([str(choice) for choice in action.choices], last)
    takes_files = any("FILE" in str(action.metavar) for action in own)
    return Answer([], DEFAULT if takes_files else NO_FILES)


def _kept(words: list[str]) -> list[str]:
    """-n NAMESPACE, where it was given."""
    for at, word in enumerate(words[:-1]):
        if word in ("-n", "--namespace"):
            return ["-n", words[at + 1]]
    return []


def _begun(words: list[str], typed: str) -> Answer:
    return Answer([word for word in words if word.startswith(typed)], NO_FILES)


def _clusters() -> list[str]:
    from sampan.cmd.cluster.cluster_names import known_clusters

    return [name for name, _ in known_clusters(os.environ, Path.cwd()) if name]


def _snapshots() -> list[str]:
    from sampan.cmd.chosen_cluster import chosen_path

    root = chosen_path(os.environ, Path.cwd(), os.path.expanduser("~")) / "snapshots"
    return sorted(path.name.split(".")[0] for path in root.glob("*")) if root.is_dir() else []


def _client(words: list[str], kubeconfig: str) -> Answer:
    """As a verb of the client would complete it."""
    session = Session("sampan", "sampan", Io(), found_kubeconfig=kubeconfig)
    try:
        return candidates.complete(session, words)
    finally:
        session.close()
