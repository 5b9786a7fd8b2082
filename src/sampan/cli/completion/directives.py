"""What a shell may do with candidates: cobra's directives, bit by bit.

Job: the numbers of the last line of `__complete`, and their names on standard error.
"""

DEFAULT = 0
ERROR = 1
NO_SPACE = 2
NO_FILES = 4
FILE_EXTENSIONS = 8

_NAMES = {
    ERROR: "ShellCompDirectiveError",
    NO_SPACE: "ShellCompDirectiveNoSpace",
    NO_FILES: "ShellCompDirectiveNoFileComp",
    FILE_EXTENSIONS: "ShellCompDirectiveFilterFileExt",
}


def names(directive: int) -> str:
    found = [name for bit, name in _NAMES.items() if directive & bit]
    return ", ".join(found) or "ShellCompDirectiveDefault"
