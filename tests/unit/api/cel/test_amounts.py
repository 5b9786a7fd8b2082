"""Scripted amounts: quantities, and expressions of time and replicas."""

import pytest

from sampan.api.cel.amounts import (
    BadAmount,
    Moment,
    amount,
    moment_of,
    problem_of,
    problem_of_series,
    series,
)

NIGHT = Moment(now=1767225600.0, age_seconds=700.0, replicas=3)  # 2026-01-01T00:00:00Z


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("240m", "240m"),
        (" 1Gi ", "1Gi"),
        ("= 6.0 / replicas", "2"),
        ("=2.0 / replicas", "667m"),
        ('= age < 600.0 ? "100m" : "900m"', "900m"),
        ("= now.getHours() >= 9 ? 4.0 : 0.5", "500m"),
        ('= quantity("2Gi")', "2Gi"),
        ("= 7", "7"),
    ],
)
def test_an_amount_is_a_quantity_or_made_of_the_moment(text, found):
    assert str(amount(text, NIGHT)) == found
    assert problem_of(text) == ""


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("lots", "'lots' is no quantity"),
        ("", "'' is no quantity"),
        ("= 2 / replicas", "found no matching overload for '_/_' applied to '(int, double)'"),
        ("= pod.metadata", "undeclared reference to 'pod'"),
        ("= 1 / 0", "division by zero"),
        ("= age / 0.0", "neither a number nor a quantity"),
        ("= true", "neither a number nor a quantity"),
        ('= "lots"', "'lots' is no quantity"),
    ],
)
def test_what_is_no_amount_is_refused_with_the_reason(text, why):
    with pytest.raises(BadAmount) as raised:
        amount(text, NIGHT)
    assert why in str(raised.value)


def test_mistakes_that_need_no_moment_are_found_before():
    assert problem_of("lots") == "'lots' is no quantity"
    assert "undeclared reference" in problem_of("= pod.metadata")
    assert "'many' is no quantity" in problem_of_series("3; {queue=mail} many")
    assert problem_of_series("3;") == "'' is no amount"
    assert problem_of_series("3; {queue=mail} = age") == ""


def test_a_metric_has_series_with_labels():
    assert list(series('30; {queue=mail, zone="a"} = 3.0 * replicas')) == [
        ({}, "30"),
        ({"queue": "mail", "zone": "a"}, "= 3.0 * replicas"),
    ]


def test_a_pod_is_as_old_as_its_start_and_all_else_as_its_making():
    metadata = {"creationTimestamp": "2025-12-31T23:00:00Z"}
    started = {"metadata": metadata, "status": {"startTime": "2025-12-31T23:59:00Z"}}
    assert moment_of(started, 2, NIGHT.now) == Moment(NIGHT.now, 60.0, 2)
    assert moment_of({"metadata": metadata}, 1, NIGHT.now).age_seconds == 3600.0
    assert moment_of({"metadata": {}}, 1, NIGHT.now).age_seconds == 0.0
