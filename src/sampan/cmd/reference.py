"""Every verb and flag as a document (docs/cli.md).

Job: markdown from the parser's own tables. `python -m sampan.cmd.reference` prints it.
"""

import argparse

from sampan.cli import reference as client_reference
from sampan.cmd.flags.examples import EXAMPLES
from sampan.cmd.flags.parser import parser_of_verbs
from sampan.cmd.help_screen import GROUPS

HEAD = """\
# Every verb

Made from the parser by `python -m sampan.cmd.reference > docs/cli.md`; a test keeps it true. First
the verbs around a cluster, then those that kubectl has, which work against any Kubernetes, and as
`kubectl VERB` where `kubectl` is a link to `sampan`.

Every flag of the first may also come from the environment (`SAMPAN_DATA_DIR`, `SAMPAN_NODES`), and
those of `up` from a file (`sampan up --config cluster.yaml`: `dataDir: …`, `nodes: 3`;
`sampan config explain` lists them); the command line wins, then the environment.
"""


def text() -> str:
    verbs = _children(parser_of_verbs())
    lines = [HEAD]
    for title, names in (*GROUPS, ("Settings of a cluster", ("config",))):
        lines.append(f"## {title}\n")
        for name in names:
            lines += _verb(name, verbs[name])
    lines.append("# Verbs that kubectl has\n")
    return "\n".join(lines) + "\n" + client_reference.text()


def _verb(path: str, parser: argparse.ArgumentParser, what: str = "") -> list[str]:
    what = what or (parser.description or "").partition("\n")[0]
    lines = [f"### {path}\n", f"{what[:1].upper()}{what[1:].rstrip('.')}.\n"]
    children = _children(parser)
    if not children:
        lines += [f"    {' '.join(['sampan', path, *_arguments(parser)])} [flags]\n"]
    if path in EXAMPLES:
        lines += ["Examples:\n", *(f"  {line}" for line in EXAMPLES[path].splitlines()), ""]
    for group in parser._action_groups:
        flags = [_flag(action) for action in group._group_actions if _is_shown(action)]
        if flags:
            own_title = group.title not in ("options", "positional arguments")
            lines += [*([f"{group.title}:\n"] if own_title else []), *flags, ""]
    for name, child in children.items():
        lines += _verb(f"{path} {name}", child, _short(parser, name))
    return lines


def _children(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def _short(parser: argparse.ArgumentParser, child: str) -> str:
    [action] = [item for item in parser._actions if isinstance(item, argparse._SubParsersAction)]
    [text] = [choice.help for choice in action._choices_actions if choice.dest == child]
    return str(text)


def _arguments(parser: argparse.ArgumentParser) -> list[str]:
    return [_value(action) for action in parser._actions if not action.option_strings]


def _is_shown(action: argparse.Action) -> bool:
    return bool(action.option_strings) and "--help" not in action.option_strings and (
        action.help is not argparse.SUPPRESS
    )  # fmt: skip


def _flag(action: argparse.Action) -> str:
    names = ", ".join(f"`{name}`" for name in action.option_strings)
    value = f" {_value(action)}" if action.nargs != 0 else ""
    help_text = (action.help or "").replace("%(default)s", str(action.default))
    return f"- {names}{value} {help_text}".rstrip()


def _value(action: argparse.Action) -> str:
    if action.metavar is None and action.choices:
        return "|".join(map(str, action.choices))
    return str(action.metavar or action.dest.upper())


if __name__ == "__main__":
    print(text(), end="")
