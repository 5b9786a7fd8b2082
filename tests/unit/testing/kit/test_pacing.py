import pytest

from sampan.testing.kit.pacing import seconds_of


@pytest.mark.parametrize(
    ("text", "seconds"),
    [(5, 5), (0.5, 0.5), ("90s", 90), ("1h30m", 5400), ("2d", 172800), ("1w", 604800)],
)
def test_durations(text, seconds):
    assert seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["", "soon", "5", "d"])
def test_what_is_no_duration_is_refused(text):
    with pytest.raises(ValueError, match="duration"):
        seconds_of(text)
