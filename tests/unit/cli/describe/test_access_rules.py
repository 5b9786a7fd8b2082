"""Rules of roles as rows: resources joined, paths each by itself."""

from sampan.cli.describe.access_rules import breakdown


def test_verbs_of_one_resource_are_joined_and_paths_are_not():
    rules = [
        {"verbs": ["get"], "apiGroups": ["apps"], "resources": ["deployments/scale"]},
        {"verbs": ["list"], "apiGroups": ["apps"], "resources": ["deployments/scale"]},
        {"verbs": ["get"], "nonResourceURLs": ["/api", "/api/*"]},
        {"verbs": ["get"], "nonResourceURLs": ["/api"]},
    ]
    assert breakdown(rules) == [
        ("deployments.apps/scale", "[]", "[]", "[get list]"),
        ("", "[/api/*]", "[]", "[get]"),
        ("", "[/api]", "[]", "[get]"),
        ("", "[/api]", "[]", "[get]"),
    ]


def test_rules_are_in_the_order_of_their_text():
    """A subresource comes before its resource: the slash is before the bracket."""
    rules = [
        {"verbs": ["get"], "apiGroups": [""], "resources": ["pods", "pods/log"]},
        {"verbs": ["*"], "nonResourceURLs": ["*"]},
        {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
    ]
    assert [row[0] for row in breakdown(rules)] == ["*.*", "", "pods/log", "pods"]
