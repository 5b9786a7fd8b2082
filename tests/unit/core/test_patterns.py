"""core/patterns.py: as `re.compile` would have made them, later."""

import re

import pytest

from sampan.core.patterns import lazy_pattern


def test_it_is_compiled_when_it_is_first_used():
    broken = lazy_pattern("(")
    with pytest.raises(re.error):
        broken.match("")


@pytest.mark.parametrize(("text", "flags"), [("a+(b)", 0), (rb"A+(b)", re.I)])
def test_its_methods_are_those_of_the_pattern(text, flags):
    lazy, known = lazy_pattern(text, flags), re.compile(text, flags)
    subject = "xaab" if isinstance(text, str) else b"xaab"
    for _ in range(2):
        assert lazy.search(subject)[0] == known.search(subject)[0]
        assert lazy.fullmatch(subject) is known.fullmatch(subject) is None
        assert lazy.findall(subject) == known.findall(subject)
    assert (lazy.pattern, lazy.groups) == (known.pattern, known.groups)
