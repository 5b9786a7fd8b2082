import base64
import json

import pytest

from sampan.kubelet.contracts.runtime import Credentials
from sampan.kubelet.images.reference import parse
from sampan.kubelet.images.registry_credentials import credentials_for, matches


def secret(auths, key=".dockerconfigjson"):
    config = {"auths": auths} if key == ".dockerconfigjson" else auths
    return {"data": {key: base64.b64encode(json.dumps(config).encode()).decode()}}


def basic(user, password):
    return {"auth": base64.b64encode(f"{user}:{password}".encode()).decode()}


@pytest.mark.parametrize(
    ("pattern", "image", "expected"),
    [
        ("registry.example", "registry.example/app", True),
        ("https://registry.example", "registry.example/app", True),
        ("registry.example/v2/", "registry.example/app", True),
        ("registry.example:5000", "registry.example/app", False),
        ("registry.example:5000", "registry.example:5000/app", True),
        ("*.example", "registry.example/app", True),
        ("*.example", "a.b.example/app", False),
        ("reg*.example", "registry.example/app", True),
        ("registry.example/team", "registry.example/team/app", True),
        ("registry.example/team", "registry.example/other/app", False),
        ("https://index.docker.io/v1/", "busybox", True),
        ("docker.io", "someone/app", True),
        ("docker.io/someone", "someone/app", True),
        ("docker.io/someone", "busybox", False),
        ("other.example", "registry.example/app", False),
    ],
)
def test_an_entry_speaks_for_its_registry_and_path(pattern, image, expected):
    """[N10]"""
    assert matches(pattern, parse(image)) is expected


def test_the_most_specific_entry_is_tried_first():
    found = credentials_for(
        parse("registry.example/team/app"),
        [
            secret({"registry.example": basic("all", "1")}),
            secret({"registry.example/team": basic("team", "2")}),
        ],
    )
    assert [one.username for one in found] == ["team", "all"]


def test_both_kinds_of_secret_and_all_forms_of_an_entry_are_read():
    image = parse("registry.example/app")
    assert credentials_for(
        image, [secret({"registry.example": basic("u", "p:w")}, ".dockercfg")]
    ) == [Credentials("u", "p:w")]
    assert credentials_for(
        image, [secret({"registry.example": {"username": "u", "password": "p"}})]
    ) == [Credentials("u", "p")]
    assert credentials_for(image, [secret({"registry.example": {"identitytoken": "t"}})]) == [
        Credentials(identity_token="t")
    ]


@pytest.mark.parametrize(
    "broken",
    [
        {"data": {".dockerconfigjson": "%%%"}},
        {"data": {".dockerconfigjson": base64.b64encode(b"[1]").decode()}},
        {"data": {"other": "x"}},
        {},
    ],
)
def test_a_secret_that_cannot_be_read_is_as_good_as_none(broken):
    assert credentials_for(parse("registry.example/app"), [broken]) == []


def test_a_password_is_not_shown():
    assert "p4ss" not in repr(Credentials("user", "p4ss"))
