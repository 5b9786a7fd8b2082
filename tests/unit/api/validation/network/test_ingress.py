"""Ingresses: hosts, paths, backends, secrets. [A4]"""

import pytest

from sampan.api.validation.network.ingress import validate_ingress, validate_ingress_update

BACKEND = {"service": {"name": "web", "port": {"number": 80}}}


def ingress(secret=None, **path):
    tls = [] if secret is None else [{"hosts": ["a.example"], "secretName": secret}]
    rules = [{"http": {"paths": [{"path": "/", "backend": BACKEND, **path}]}}]
    return {"spec": {"rules": rules, "tls": tls}}


def causes(check, *objects):
    errors = []
    check(*objects, errors)
    return [str(error) for error in errors]


def test_a_path_without_a_type_is_told_that_and_nothing_else():
    made = ingress(backend={}, pathType=None)
    where = "spec.rules[0].http.paths[0].pathType"
    assert causes(validate_ingress, made) == [
        f"{where}: Required value: pathType must be specified"
    ]


@pytest.mark.parametrize("secret", ["A", "*", "a_b", "-a"])
def test_a_secret_must_have_a_name_of_one(secret):
    made = ingress(secret, pathType="Exact")
    [why] = causes(validate_ingress, made)
    assert why.startswith(f'spec.tls[0].secretName: Invalid value: "{secret}": a lowercase RFC')
    assert causes(validate_ingress_update, made, made) == []
    assert causes(validate_ingress_update, made, ingress("good", pathType="Exact")) == [why]


def test_no_secret_is_none():
    assert causes(validate_ingress, ingress("", pathType="Exact")) == []
