"""RBAC: the compiled answer is the answer of walking every rule of every binding. [A2]"""

from hypothesis import given, settings
from hypothesis import strategies as st

from sampan.api.objects import key_of
from sampan.apiserver.authn.user import User
from sampan.apiserver.authz.bootstrap.objects import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    ROLE_BINDINGS,
    ROLES,
)
from sampan.apiserver.authz.chain import Attributes, Decision
from sampan.apiserver.authz.grants import Grants
from sampan.apiserver.authz.rbac import Rbac

NAMES, SPACES = ("a", "b", "c"), ("one", "two")
VERBS, GROUPS = ("get", "list", "create", "*"), ("", "apps", "*")
RESOURCES = ("pods", "pods/log", "pods/exec", "deployments", "*", "*/log", "*/exec")
URLS = ("/api", "/api/*", "/apis/*", "*", "/healthz")


def some(of):
    return st.lists(st.sampled_from(of), min_size=1, max_size=2, unique=True)


RULES = st.one_of(
    st.fixed_dictionaries(
        {"verbs": some(VERBS), "apiGroups": some(GROUPS), "resources": some(RESOURCES)},
        optional={"resourceNames": some(NAMES)},
    ),
    st.fixed_dictionaries({"verbs": some(VERBS), "nonResourceURLs": some(URLS)}),
)
SUBJECTS = st.one_of(
    st.sampled_from(("alice", "bob")).map(lambda n: {"kind": "User", "name": n}),
    st.sampled_from(("dev", "ops")).map(lambda n: {"kind": "Group", "name": n}),
    st.sampled_from(SPACES).map(
        lambda ns: {"kind": "ServiceAccount", "name": "bot", "namespace": ns}
    ),
)
USERS = st.sampled_from(
    (
        User("alice", ("dev",)),
        User("bob", ("ops", "dev")),
        User("carol"),
        User("system:serviceaccount:one:bot", ("system:serviceaccounts",)),
    )
)


@st.composite
def worlds(draw):
    world = {CLUSTER_ROLES: [], ROLES: [], CLUSTER_ROLE_BINDINGS: [], ROLE_BINDINGS: []}
    for name in NAMES[:2]:  # "c" is bound to and does not exist
        rules = draw(st.lists(RULES, max_size=2))
        world[CLUSTER_ROLES].append({"metadata": {"name": name}, "rules": rules})
        for space in SPACES:
            rules = draw(st.lists(RULES, max_size=2))
            world[ROLES].append({"metadata": {"name": name, "namespace": space}, "rules": rules})
    for number in range(draw(st.integers(0, 5))):
        space = draw(st.sampled_from(("", *SPACES)))
        kind = "ClusterRole" if not space else draw(st.sampled_from(("ClusterRole", "Role")))
        meta = {"name": str(number), **({"namespace": space} if space else {})}
        binding = {
            "kind": "RoleBinding" if space else "ClusterRoleBinding",
            "metadata": meta,
            "roleRef": {"kind": kind, "name": draw(st.sampled_from(NAMES))},
            "subjects": draw(st.lists(SUBJECTS, max_size=2)),
        }
        world[ROLE_BINDINGS if space else CLUSTER_ROLE_BINDINGS].append(binding)
    return world


QUESTIONS = st.one_of(
    st.tuples(
        st.sampled_from(("get", "list", "create", "delete")),
        st.sampled_from(("", "apps", "batch")),
        st.sampled_from(("pods", "deployments", "secrets")),
        st.sampled_from(("", "log", "exec")),
        st.sampled_from(("", *SPACES)),
        st.sampled_from(("", *NAMES)),
    ),
    st.tuples(
        st.sampled_from(("get", "create")),
        st.sampled_from(("/api", "/api/v1", "/apis/apps", "/healthz")),
    ),
)


def asked(user, question):
    if len(question) == 2:
        return Attributes(user, question[0], path=question[1])
    return Attributes(user, *question)


def of(world):
    def find(resource, namespace, name):
        for one in world[resource]:
            meta = one["metadata"]
            if meta["name"] == name and meta.get("namespace", "") == namespace:
                return one
        return None

    return Rbac(find, lambda resource: world[resource])


def naive_rule(rule, ask):
    """As the documentation of the API says it, one rule at a time."""
    if not {ask.verb, "*"} & set(rule["verbs"]):
        return False
    if ask.path:
        return any(
            url in ("*", ask.path) or (url.endswith("*") and ask.path.startswith(url[:-1]))
            for url in rule.get("nonResourceURLs", ())
        )
    full = f"{ask.resource}/{ask.subresource}" if ask.subresource else ask.resource
    wanted = {full, "*"} | ({f"*/{ask.subresource}"} if ask.subresource else set())
    return (
        bool({ask.group, "*"} & set(rule.get("apiGroups", ())))
        and bool(wanted & set(rule.get("resources", ())))
        and (not rule.get("resourceNames") or ask.name in rule["resourceNames"])
    )


def naive_subject(subject, user):
    if subject["kind"] == "User":
        return subject["name"] == user.name
    if subject["kind"] == "Group":
        return subject["name"] in user.groups
    return user.name == f"system:serviceaccount:{subject['namespace']}:{subject['name']}"


def naive(world, ask):
    for binding in [*world[CLUSTER_ROLE_BINDINGS], *world[ROLE_BINDINGS]]:
        space = binding["metadata"].get("namespace", "")
        if space and space != ask.namespace:
            continue
        if not any(naive_subject(one, ask.user) for one in binding["subjects"]):
            continue
        kind = CLUSTER_ROLES if binding["roleRef"]["kind"] == "ClusterRole" else ROLES
        for role in world[kind]:
            meta = role["metadata"]
            same_place = kind is CLUSTER_ROLES or meta["namespace"] == space
            if (
                same_place
                and meta["name"] == binding["roleRef"]["name"]
                and any(naive_rule(rule, ask) for rule in role["rules"])
            ):
                return True
    return False


@settings(max_examples=200)
@given(worlds(), USERS, st.lists(QUESTIONS, min_size=1, max_size=8))
def test_the_compiled_answer_is_the_naive_one(world, user, questions):
    rbac = of(world)
    for question in questions:
        ask = asked(user, question)
        allowed = rbac.authorize(ask)[0] is Decision.ALLOW
        assert allowed == naive(world, ask), ask


@settings(max_examples=100)
@given(worlds(), worlds(), USERS, QUESTIONS)
def test_a_change_is_seen_by_the_next_question(before, after, user, question):
    """[A2] What was compiled is forgotten when a role or binding changes."""
    world = dict(before)
    rbac = of(world)
    ask = asked(user, question)
    rbac.authorize(ask)
    world.update(after)
    rbac.reloaded()
    assert (rbac.authorize(ask)[0] is Decision.ALLOW) == naive(world, ask)


@settings(max_examples=200)
@given(worlds(), worlds(), st.lists(USERS, min_size=1, max_size=3), QUESTIONS)
def test_a_binding_that_changes_is_seen_by_whom_it_names(before, after, users, question):
    """What was compiled for others stays, and is right."""
    world = {**before, **{kind: after[kind] for kind in (ROLES, CLUSTER_ROLES)}}
    rbac = of(world)
    for kind in (CLUSTER_ROLE_BINDINGS, ROLE_BINDINGS):
        old = {key_of(item): item for item in world[kind]}
        new = {key_of(item): item for item in after[kind]}
        world[kind] = list(old.values())
        for key in sorted(old.keys() | new.keys()):
            for user in users:
                rbac.authorize(asked(user, question))
            kept = [item for item in world[kind] if key_of(item) != key]
            world[kind] = [*kept, new[key]] if key in new else kept
            rbac.binding_changed(old.get(key), new.get(key))
            for user in users:
                ask = asked(user, question)
                assert (rbac.authorize(ask)[0] is Decision.ALLOW) == naive(world, ask)


@given(st.lists(RULES, max_size=3), RULES, QUESTIONS)
def test_who_holds_a_rule_may_do_all_that_it_allows(held, handed_on, question):
    """Covering is never wider than allowing: no escalation through a covered rule."""
    grants = Grants()
    grants.add(held, "")
    ask = asked(User("x"), question)
    if grants.covers(handed_on) and naive_rule(handed_on, ask):
        if ask.path:
            assert grants.path(ask.verb, ask.path) is not None
        else:
            answer = grants.resource(ask.verb, ask.group, ask.resource, ask.subresource, ask.name)
            assert answer is not None


def test_everything_covers_everything_and_nothing_covers_a_wildcard():
    rule = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
    every, some_of = Grants(), Grants()
    every.add([rule], "")
    some_of.add([{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}], "")
    assert every.covers(rule)
    assert every.covers({"verbs": ["get"], "apiGroups": ["x"], "resources": ["*/log"]})
    assert not some_of.covers(rule)
    assert not some_of.covers({"verbs": ["get"], "apiGroups": [""], "resources": ["*"]})
    named = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["a"]}
    assert some_of.covers(named)
    few = Grants()
    few.add([named], "")
    assert not few.covers({**named, "resourceNames": []})


def test_a_binding_to_a_role_that_is_not_there_is_told():
    binding = {
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "b"},
        "roleRef": {"kind": "ClusterRole", "name": "gone"},
        "subjects": [{"kind": "User", "name": "alice"}],
    }
    world = {CLUSTER_ROLES: [], ROLES: [], ROLE_BINDINGS: [], CLUSTER_ROLE_BINDINGS: [binding]}
    decision, why = of(world).authorize(Attributes(User("alice"), "get", resource="pods"))
    assert decision is Decision.NO_OPINION
    assert why == 'RBAC: clusterrole.rbac.authorization.k8s.io "gone" not found'


def test_an_answer_says_through_which_binding_it_came():
    binding = {
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "b"},
        "roleRef": {"kind": "ClusterRole", "name": "r"},
        "subjects": [{"kind": "Group", "name": "dev"}],
    }
    rules = [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]
    role = {"metadata": {"name": "r"}, "rules": rules}
    world = {CLUSTER_ROLES: [role], ROLES: [], ROLE_BINDINGS: [], CLUSTER_ROLE_BINDINGS: [binding]}
    ask = Attributes(User("alice", ("dev",)), "get", resource="pods")
    assert of(world).authorize(ask) == (
        Decision.ALLOW,
        'RBAC: allowed by ClusterRoleBinding "b" of ClusterRole "r" to Group "dev"',
    )
