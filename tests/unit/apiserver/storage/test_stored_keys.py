import pytest

from sampan.apiserver.storage.stored_keys import kind_at, split_key


def test_a_key_is_split_behind_its_kind():
    assert split_key("/registry/pods/default/web") == ("/registry/pods/", "default/web")


@pytest.mark.parametrize(
    ("key", "place", "inside"),
    [
        ("/registry/nobody", "/registry/", "nobody"),
        ("/registry/", "/registry/", ""),
        ("/registry/pods/", "/registry/pods/", ""),
        ("/registry//x", "/registry//", "x"),
        ("/registry/pods/a/b/c", "/registry/pods/", "a/b/c"),
    ],
)
def test_a_key_that_is_no_kinds_is_split_too(key, place, inside):
    assert split_key(key) == (place, inside)


def test_where_a_built_in_kind_is_stored_is_known():
    assert kind_at("/registry/pods/") == "Pod"
    assert kind_at("/registry/deployments.apps/") == "Deployment"
    assert kind_at("/registry/things.example.com/") == kind_at("/registry/") == ""
