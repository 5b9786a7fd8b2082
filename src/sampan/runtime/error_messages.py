"""Error messages of a failed container start, as runc words them. Pure.

Job: what crun says → what runc says of the same mistake, as it stands in pods' events everywhere.
Invariant: what is not known is passed on as it is.
"""

from sampan.core.patterns import lazy_pattern

_NOT_FOUND = lazy_pattern(r"executable file `(?P<name>.*?)` not found in \$PATH(: [^:]*)?")
_NOT_OPENED = lazy_pattern(r"open executable: (?P<why>.+)")
_NO_DIRECTORY = lazy_pattern(r"chdir(?: to)? `?(?P<place>/[^`:]*)`?: (?P<why>.+)")


def process_message(message: str, program: str) -> str:
    """`program`: what was to be run."""
    if found := _NOT_FOUND.search(message):
        name = found["name"]
        why = "executable file not found in $PATH"
        if "/" in name:
            why = f"stat {name}: no such file or directory"
        return f'exec: "{name}": {why}'
    if found := _NOT_OPENED.search(message):
        return f'exec: "{program}": {found["why"].lower()}'
    if found := _NO_DIRECTORY.search(message):
        place, why = found["place"], found["why"].lower()
        return f'chdir to cwd ("{place}") set in config.json failed: {why}'
    return ""


def creation_failure(runtime: str, message: str, program: str) -> str:
    """`runtime`: crun or runc."""
    reworded = process_message(message, program)
    why = f"unable to start container process: {reworded}" if reworded else message
    return f"OCI runtime create failed: {runtime} create failed: {why}"
