"""`KEY=VALUE` and `KEY-` among a verb's words, and where the resources before them end.

Job: kubectl's two readers of such words, with their complaints.
"""

from sampan.cli.errors import CliError


def split(words: list[str], kind: str) -> tuple[list[str], list[str]]:
    """Resources, and the words after them that are pairs; `kind` is what the pairs are of."""
    resources: list[str] = []
    pairs: list[str] = []
    for word in words:
        is_pair = _is_pair(word) or (word.endswith("-") and word != "-")
        if is_pair:
            pairs.append(word)
        elif pairs:
            raise CliError(f"all resources must be specified before {kind} changes: {word}")
        else:
            resources.append(word)
    return resources, pairs


def parse(pairs: list[str], kind: str, *, removable: bool) -> tuple[dict[str, str], list[str]]:
    """What is to be set, and what is to go."""
    wanted: dict[str, str] = {}
    gone: list[str] = []
    invalid: list[str] = []
    for word in pairs:
        if _is_pair(word):
            key, _, value = word.partition("=")
            wanted[key] = value
        elif removable and word.endswith("-") and word != "-":
            gone.append(word[:-1])
        else:
            invalid.append(word)
    if invalid:
        raise CliError(f"invalid {kind} format: {', '.join(invalid)}")
    return wanted, gone


def _is_pair(word: str) -> bool:
    return "=" in word and not word.startswith("=")
