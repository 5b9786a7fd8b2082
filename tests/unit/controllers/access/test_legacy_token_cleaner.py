"""controllers/access/legacy_token_cleaner.py: a year unused, a year invalid, gone."""

import pytest

from sampan.api.objects import seconds_of
from sampan.api.resources import SECRETS
from sampan.controllers.access.legacy_token_cleaner import (
    INVALID_SINCE,
    LAST_USED,
    made_itself,
    plan,
)
from sampan.controllers.actions import deletion

NOW = seconds_of("2026-06-15T12:00:00Z")


def secret(created="2024-01-01T00:00:00Z", **labels):
    keys = {"used": LAST_USED, "invalid": INVALID_SINCE}
    meta = {
        "name": "bot-token",
        "namespace": "team",
        "uid": "s",
        "resourceVersion": "7",
        "creationTimestamp": created,
        "labels": {keys[key]: day for key, day in labels.items()},
    }
    return {"metadata": meta, "type": "kubernetes.io/service-account-token"}


def planned(obj, is_mounted=False, since="2024-01-01"):
    return plan(obj, is_mounted, since, NOW)


@pytest.mark.parametrize(
    ("obj", "more"),
    [
        (secret(), {"since": "2025-06-15"}),  # followed for a year, less the first day
        (secret(), {"since": "nonsense"}),
        (secret(created="2025-06-15T12:00:01Z"), {}),
        (secret(used="2025-06-15"), {}),
        (secret(used="nonsense"), {}),
        (secret(), {"is_mounted": True}),
        (secret(used="2025-06-14", invalid="2025-06-15"), {}),
    ],
)
def test_what_may_be_used_is_left_alone_and_looked_at_again(obj, more):
    found = planned(obj, **more)
    assert list(found.actions) == []
    assert found.again_seconds == 86400


@pytest.mark.parametrize("obj", [secret(), secret(used="2025-06-14"), secret(invalid="nonsense")])
def test_what_nobody_used_for_a_year_is_marked(obj):
    [patch] = planned(obj).actions
    assert patch.patch["metadata"]["labels"] == {INVALID_SINCE: "2026-06-15"}


def test_what_was_invalid_for_a_year_goes():
    obj = secret(invalid="2025-06-14")
    assert list(planned(obj).actions) == [deletion(SECRETS, obj)]


def test_a_token_that_somebody_asked_for_is_no_business_of_ours():
    account = {"metadata": {"name": "bot", "uid": "a"}, "secrets": [{"name": "bot-token"}]}
    assert made_itself(secret(), account)
    assert not made_itself(secret(), {**account, "secrets": [{"name": "other"}]})
    assert not made_itself(secret(), None)
    other = secret()
    other["metadata"]["annotations"] = {"kubernetes.io/service-account.uid": "b"}
    assert not made_itself(other, account)
