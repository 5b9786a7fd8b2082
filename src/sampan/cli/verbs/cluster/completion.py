"""`completion`: scripts by which shells complete words.

Job: a small script per shell that asks `__complete`; and the answers to it.
"""

from sampan.cli.command import Command
from sampan.cli.errors import UsageError
from sampan.cli.flags import Values
from sampan.cli.session import Session

BASH = """\
__start_{name}() {{
    local IFS=$'\\n'
    COMPREPLY=($(compgen -W "$({program} __complete "${{COMP_WORDS[@]:1:COMP_CWORD}}" 2>/dev/null)" -- "${{COMP_WORDS[COMP_CWORD]}}"))
}}
complete -o default -F __start_{name} {program}
"""
ZSH = """\
#compdef {program}
_{name}_complete() {{
    local -a found
    found=("${{(@f)$({program} __complete "${{(@)words[2,CURRENT]}}" 2>/dev/null)}}")
    compadd -a found
}}
compdef _{name}_complete {program}
"""
FISH = """\
complete -c {program} -f -a '({program} __complete (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)'
"""
SCRIPTS = {"bash": BASH, "zsh": ZSH, "fish": FISH}


def run(session: Session, values: Values) -> None:
    if not values.arguments:
        raise UsageError("Shell not specified.")
    if len(values.arguments) > 1:
        raise UsageError("Too many arguments. Expected only the shell type.")
    shell = values.arguments[0]
    if shell not in SCRIPTS:
        raise UsageError(f'Unsupported shell type "{shell}".')
    name = session.program.replace("-", "_")
    session.write(SCRIPTS[shell].format(program=session.program, name=name))


COMPLETION = Command(
    "completion", "completion SHELL [options]",
    "Output shell completion code for the specified shell (bash, zsh, or fish).", run,
)  # fmt: skip
