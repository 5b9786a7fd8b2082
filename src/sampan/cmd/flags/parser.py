"""Every verb of the cluster with its flags, as one parser; or only the verb that is asked for.

Job: put the verbs together; what was wrong with words, as one sentence.
Invariant: who asks for one verb does not wait for the many flags of another.
"""

import argparse
from typing import NoReturn

from sampan.cmd.flags import common, few_flags
from sampan.version import KUBERNETES_VERSION

MANY_FLAGS = 8  # so many are listed below, and not in the usage line, too


def _add_up(verbs: common.Verbs) -> None:
    from sampan.cmd.flags import up_flags

    up_flags.add_verb(verbs)


def _add_node_processes(verbs: common.Verbs) -> None:
    from sampan.cmd.flags import node_process_flags

    node_process_flags.add_verbs(verbs)


def _add_testserver(verbs: common.Verbs) -> None:
    from sampan.cmd.flags import testserver_flags

    testserver_flags.add_testserver(verbs)


def _add_control_plane(verbs: common.Verbs) -> None:
    from sampan.cmd.flags import control_plane_flags

    control_plane_flags.add_verbs(verbs)


def _add_driver(verbs: common.Verbs) -> None:
    from sampan.cmd.flags import driver_flags

    driver_flags.add_verb(verbs)


def _add_lab(verbs: common.Verbs) -> None:
    from sampan.cmd.flags import lab_flags

    lab_flags.add_verbs(verbs)


def _add_machine(verbs: common.Verbs) -> None:
    from sampan.cmd.flags import machine_flags

    machine_flags.add_verbs(verbs)


# Verbs, and who adds them.
_VERBS = (
    (("up",), _add_up),
    (("kubelet", "join", "token", "service-proxy"), _add_node_processes),
    (("certs", "apiserver", "scheduler", "controllers"), _add_control_plane),
    (("down",), few_flags.add_down),
    (("reset",), few_flags.add_reset),
    (("image",), few_flags.add_image),
    (("snapshot", "fork"), few_flags.add_snapshot),
    (("lab", "clock"), _add_lab),
    (("driver",), _add_driver),
    (("testserver",), _add_testserver),
    (("why", "trace", "ui", "docs", "schedule", "tour"), few_flags.add_questions),
    (("status", "doctor", "log", "kubeconfig", "list"), few_flags.add_looks),
    (("service", "upgrade", "config", "node"), _add_machine),
    (("gates",), few_flags.add_gates),
    (("diff-version",), few_flags.add_diff_version),
    (("version",), few_flags.add_version),
)


def parser_of_verbs(only: str = "") -> argparse.ArgumentParser:
    """`only`: the verb that the words begin with, if it is known; the others are left out."""
    parser: argparse.ArgumentParser = _Parser(
        prog="sampan",
        description=f"A Kubernetes ({KUBERNETES_VERSION}) you can pip install.",
    )
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    wanted = [entry for entry in _VERBS if only in entry[0]] or _VERBS
    for _, add in wanted:
        add(verbs)
    _describe(verbs)
    return parser


def _describe(verbs: common.Verbs) -> None:
    """Help begins with what a verb does, and with examples, as the client's verbs have it."""
    from sampan.cmd.flags.examples import EXAMPLES

    for choice in verbs._choices_actions:
        own = verbs.choices[choice.dest]
        own.formatter_class = argparse.RawDescriptionHelpFormatter
        own.description = choice.help
        if choice.dest in EXAMPLES:
            own.description = f"{choice.help}\n\nexamples:\n{EXAMPLES[choice.dest]}"


class _Parser(argparse.ArgumentParser):
    """Help that begins with its first sentence; wrong words: one sentence, what was perhaps meant,
    and where the help is."""

    def format_help(self) -> str:
        flags = [action for action in self._actions if action.option_strings]
        if self.usage is None and len(flags) > MANY_FLAGS:
            words = [str(action.metavar) for action in self._actions if not action.option_strings]
            self.usage = " ".join(["%(prog)s", *words, "[flags]"])
        return super().format_help()

    def error(self, message: str) -> NoReturn:
        hint = ""
        unknown = message.partition("unrecognized arguments: ")[2].split()
        if unknown and unknown[0].startswith("--"):
            import difflib  # for who made a mistake

            given = unknown[0].partition("=")[0]  # where another verb has it, too: not here
            known = {name for action in self._every_action() for name in action.option_strings}
            close = difflib.get_close_matches(given, sorted(known - {given}), n=2)
            hint = f"; did you mean {' or '.join(close)}?" if close else ""
        self.exit(2, f"{self.prog}: {message}{hint}\nsee {self.prog} --help\n")

    def _every_action(self) -> list[argparse.Action]:
        found = list(self._actions)
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):
                for parser in action.choices.values():
                    found += parser._actions
        return found
