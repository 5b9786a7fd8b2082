"""ABAC: a policy per line. [A2]"""

import pytest

from sampan.apiserver.authn.user import User
from sampan.apiserver.authz.abac import Abac, BadPolicy, policies
from sampan.apiserver.authz.chain import Attributes, Decision

HEAD = '{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":'
TEXT = "\n".join(
    HEAD + spec + "}"
    for spec in (
        '{"user":"alice","namespace":"*","resource":"*","apiGroup":"*"}',
        '{"user":"bob","namespace":"a","resource":"pods","readonly":true}',
        '{"group":"dev","namespace":"b","resource":"secrets"}',
        '{"user":"*","nonResourcePath":"/version"}',
        '{"group":"ops","nonResourcePath":"/metrics*","readonly":true}',
    )
)
ABAC = Abac(policies(f"# who may do what\n\n{TEXT}\n"))


def allowed(user, *asked, **rest):
    groups = ("system:authenticated", *rest.pop("groups", ()))
    return ABAC.authorize(Attributes(User(user, groups), *asked, **rest))[0] is Decision.ALLOW


def test_policies_match_all_their_fields():
    assert allowed("alice", "delete", "apps", "deployments", "", "x")
    assert allowed("bob", "list", "", "pods", "", "a")
    assert not allowed("bob", "delete", "", "pods", "", "a")
    assert not allowed("bob", "list", "", "pods", "", "b")
    assert not allowed("bob", "list", "apps", "pods", "", "a")
    assert allowed("carol", "create", "", "secrets", "", "b", groups=("dev",))
    assert not allowed("carol", "create", "", "secrets", "", "b")


def test_a_star_stands_for_everybody_authenticated_and_paths_may_end_in_one():
    assert allowed("anyone", "get", path="/version")
    assert ABAC.authorize(Attributes(User("x"), "get", path="/version"))[0] is not Decision.ALLOW
    assert allowed("x", "get", path="/metrics/slis", groups=("ops",))
    assert not allowed("x", "post", path="/metrics", groups=("ops",))
    assert not allowed("alice", "get", path="/metrics")


@pytest.mark.parametrize("line", ["nonsense", "{}", HEAD + "7}", '{"kind":"Policy","spec":{}}'])
def test_a_line_that_means_nothing_is_refused(line):
    with pytest.raises(BadPolicy, match="line 1"):
        policies(line)


def test_rules_tell_what_the_file_says():
    rules = ABAC.rules(User("bob", ("system:authenticated",)), "a").rules
    assert {"verbs": ["get", "list", "watch"], "apiGroups": [""], "resources": ["pods"]} in rules
    assert {"verbs": ["*"], "nonResourceURLs": ["/version"]} in rules
