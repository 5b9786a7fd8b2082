"""What others wrote, on a terminal: text, and never orders to it. Pure.

Job: replace what a terminal would act on. What is printed for programs stays as it is.
Invariant: what is shown moves no cursor but to the next line or stop, and asks nothing of the
    terminal; colours are those that this client writes itself.
"""

import re

from sampan.core.patterns import lazy_pattern

_OWN_COLOURS = r"\[0(?:;3[0-7])?m"
_ORDERS = lazy_pattern(rf"\x1b(?!{_OWN_COLOURS})|[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f-\x9f]")
_KUBECTL = str.maketrans({"\x1b": "^[", "\r": "\\r"})  # as its own tables and descriptions


def described(text: str) -> str:
    """As kubectl, wherever it goes."""
    return text.translate(_KUBECTL)


def on_terminal(text: str) -> str:
    return _ORDERS.sub(_shown, text)


def _shown(order: re.Match[str]) -> str:
    code = ord(order[0])
    if order[0] == "\r":
        return "\\r"
    return f"^{chr(code ^ 0x40)}" if code < 0x80 else f"\\x{code:02x}"
