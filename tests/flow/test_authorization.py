"""Who may do what, through the whole server. [A2]"""

import pytest

from sampan.api import features
from sampan.api.features import Release
from sampan.api.resources import by_kind
from sampan.apiserver.server import ApiServer
from sampan.apiserver.settings import ApiServerSettings
from sampan.core.metrics import Metrics
from sampan.store.memory import MemoryStore
from tests.support import virtual_time
from tests.support.generators.api_requests import MERGE, api_server, pod
from tests.support.worlds.control_plane import published_schema, story

RBAC = "/apis/rbac.authorization.k8s.io/v1"
AUTHZ = "/apis/authorization.k8s.io/v1"
GET_PODS = {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"]}
ALL = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
GROUP = "rbac.authorization.k8s.io"
NETWORKING = "/apis/networking.k8s.io/v1"


def run(test, **settings):
    async def main():
        async with api_server(published_schema(), settings=ApiServerSettings(**settings)) as api:
            await test(api)

    virtual_time.run(main())


def role(name, *rules, **more):
    return {"metadata": {"name": name}, "rules": list(rules), **more}


def binding(name, role_name, *subjects, kind="ClusterRole"):
    return {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": GROUP, "kind": kind, "name": role_name},
        "subjects": [{"apiGroup": GROUP, "kind": of, "name": one} for of, one in subjects],
    }


def as_user(api, user, group=""):
    async def send(method, path, body=None, **headers):
        return await api.send(method, path, body, user=user, group=group, headers=headers)

    return send


async def grant(api, user, *rules, namespace=""):
    at = f"{RBAC}/namespaces/{namespace}" if namespace else RBAC
    plural = "role" if namespace else "clusterrole"
    await api.made(f"{at}/{plural}s", role(user, *rules))
    kind = "Role" if namespace else "ClusterRole"
    await api.made(f"{at}/{plural}bindings", binding(user, user, ("User", user), kind=kind))


def test_rights_come_with_a_binding_and_go_with_it():
    async def test(api):
        alice = as_user(api, "alice")
        path = "/api/v1/namespaces/default/pods"
        assert (await alice("GET", path)).status == 403
        await grant(api, "alice", GET_PODS, namespace="default")
        assert (await alice("GET", path)).status == 200
        assert (await alice("GET", "/api/v1/namespaces/kube-system/pods")).status == 403
        assert (await alice("GET", "/api/v1/pods")).status == 403
        assert (await alice("POST", path, pod("x"))).status == 403
        await api.delete(f"{RBAC}/namespaces/default/roles/alice")
        refused = await alice("GET", path)
        assert refused.message.endswith(
            'in the namespace "default": RBAC: role.rbac.authorization.k8s.io "alice" not found'
        )
        await api.delete(f"{RBAC}/namespaces/default/rolebindings/alice")
        assert (await alice("GET", path)).status == 403

    run(test)


def test_another_namespace_is_not_read_by_selector_or_watch():
    """An attack: a field selector for another namespace, a watch of all."""

    async def test(api):
        await grant(api, "alice", {**GET_PODS, "verbs": ["get", "list", "watch"]},
                    namespace="default")  # fmt: skip
        alice = as_user(api, "alice")
        for query in (
            "fieldSelector=metadata.namespace%3Ddefault",
            "fieldSelector=metadata.namespace%3Dkube-system",
            "watch=true",
            "watch=true&fieldSelector=metadata.namespace%3Ddefault",
            "labelSelector=a%3Db",
        ):
            assert (await alice("GET", f"/api/v1/pods?{query}")).status == 403, query
        await api.made("/api/v1/namespaces/kube-system/pods", pod("hidden"))
        found = await alice(
            "GET", "/api/v1/namespaces/default/pods?fieldSelector=metadata.namespace%3Dkube-system"
        )
        assert found.items == []

    run(test)


def test_a_name_in_the_selector_counts_as_the_name():
    """As upstream: watching one object needs the right for that object only."""

    async def test(api):
        one = {**GET_PODS, "verbs": ["list", "watch"], "resourceNames": ["mine"]}
        await grant(api, "alice", one, namespace="default")
        alice = as_user(api, "alice")
        path = "/api/v1/namespaces/default/pods"
        assert (await alice("GET", path)).status == 403
        mine = await alice("GET", f"{path}?fieldSelector=metadata.name%3Dmine")
        assert mine.status == 200
        assert (await alice("GET", f"{path}?fieldSelector=metadata.name%3Dyours")).status == 403
        assert (await alice("GET", f"{path}?fieldSelector=metadata.name!%3Dmine")).status == 403

    run(test)


ROLE_WRITER = {"verbs": ["create", "update", "patch", "get"], "apiGroups": [GROUP],
               "resources": ["clusterroles", "clusterrolebindings", "roles",
                             "rolebindings"]}  # fmt: skip


def test_nobody_escalates_through_a_role():
    """An attack: a writer of roles writes one with more than they hold."""

    async def test(api):
        await grant(api, "alice", ROLE_WRITER, GET_PODS)
        alice = as_user(api, "alice")
        ok = await alice("POST", f"{RBAC}/clusterroles", role("mine", GET_PODS))
        assert ok.status == 201
        refused = await alice("POST", f"{RBAC}/clusterroles", role("more", ALL))
        assert refused.status == 403
        assert refused.message == (
            'clusterroles.rbac.authorization.k8s.io "more" is forbidden: user "alice" '
            '(groups=["system:authenticated"]) is attempting to grant RBAC permissions not '
            'currently held:\n{APIGroups:["*"], Resources:["*"], Verbs:["*"]}'
        )
        patch = {"rules": [ALL]}
        for name in ("mine", "alice"):
            edited = await alice(
                "PATCH", f"{RBAC}/clusterroles/{name}", patch, **{"content-type": MERGE}
            )
            assert edited.status == 403, name
        inside = f"{RBAC}/namespaces/default/roles"
        assert (await alice("POST", inside, role("more", ALL))).status == 403
        finalized = {"metadata": {"finalizers": ["example.com/a"]}}
        unchanged = await alice(
            "PATCH", f"{RBAC}/clusterroles/cluster-admin", finalized, **{"content-type": MERGE}
        )
        assert unchanged.status == 200  # garbage collection must go on

    run(test)


def test_nobody_escalates_through_a_binding():
    async def test(api):
        await grant(api, "alice", ROLE_WRITER, GET_PODS)
        alice = as_user(api, "alice")
        bindings = f"{RBAC}/clusterrolebindings"
        me = ("User", "alice")
        assert (await alice("POST", bindings, binding("up", "cluster-admin", me))).status == 403
        local = f"{RBAC}/namespaces/default/rolebindings"
        assert (await alice("POST", local, binding("up", "admin", me))).status == 403
        gone = await alice("POST", bindings, binding("up", "nothing", me))
        assert gone.status == 404
        await alice("POST", f"{RBAC}/clusterroles", role("mine", GET_PODS))
        assert (await alice("POST", bindings, binding("mine", "mine", me))).status == 201

    run(test)


def test_the_verbs_escalate_and_bind_lift_the_limit():
    async def test(api):
        lift = {"apiGroups": [GROUP], "resources": ["clusterroles"], "resourceNames": ["free"]}
        await grant(api, "alice", ROLE_WRITER, {**lift, "verbs": ["escalate", "bind"]})
        alice = as_user(api, "alice")
        for name, status in (("free", 200), ("other", 403)):
            # What is being created has no name yet that a rule could speak of.
            assert (await alice("POST", f"{RBAC}/clusterroles", role(name, ALL))).status == 403
            assert (await alice("POST", f"{RBAC}/clusterroles", role(name))).status == 201
            widened = await alice("PUT", f"{RBAC}/clusterroles/{name}", role(name, ALL))
            assert widened.status == status
        made = binding("free", "free", ("User", "alice"))
        assert (await alice("POST", f"{RBAC}/clusterrolebindings", made)).status == 201
        assert (await alice("GET", "/api/v1/secrets")).status == 200

    run(test)


def test_nobody_escalates_through_aggregation():
    """An attack: a role that gathers others, or one that others gather."""

    async def test(api):
        await grant(api, "alice", ROLE_WRITER)
        alice = as_user(api, "alice")
        gather = {"clusterRoleSelectors": [{"matchLabels": {"kubernetes.io/bootstrapping": "x"}}]}
        refused = await alice("POST", f"{RBAC}/clusterroles", role("net", aggregationRule=gather))
        assert refused.status == 403
        assert "must have cluster-admin privileges to use an aggregationRule" in refused.message
        bait = role("bait", ALL)
        bait["metadata"]["labels"] = {"rbac.authorization.k8s.io/aggregate-to-view": "true"}
        assert (await alice("POST", f"{RBAC}/clusterroles", bait)).status == 403

    run(test)


@pytest.mark.parametrize("verb", ["merge", "put", "apply"])
def test_nobody_escalates_by_labelling_a_role_that_is_there(verb):
    """An attack: the rules stay what they are, but now a role that the writer has gathers them."""

    async def test(api):
        await grant(api, "alice", ROLE_WRITER)
        alice = as_user(api, "alice")
        strong = await api.made(f"{RBAC}/clusterroles", role("strong", ALL))
        labels = {"rbac.authorization.k8s.io/aggregate-to-view": "true"}
        path, media = f"{RBAC}/clusterroles/strong", "application/apply-patch+yaml"
        patch = {"metadata": {"labels": labels}}
        if verb == "merge":
            got = await alice("PATCH", path, patch, **{"content-type": MERGE})
        elif verb == "put":
            strong["metadata"]["labels"] = labels
            got = await alice("PUT", path, strong)
        else:
            patch |= {"apiVersion": f"{GROUP}/v1", "kind": "ClusterRole"}
            patch["metadata"]["name"] = "strong"
            got = await alice("PATCH", f"{path}?fieldManager=a", patch, **{"content-type": media})
        assert got.status == 403
        assert "attempting to grant RBAC permissions not currently held" in got.message
        # A binding counts whole as well: another subject and another label alike.
        await api.made(f"{RBAC}/clusterrolebindings", binding("b", "strong", ("User", "eve")))
        noted = {"metadata": {"annotations": {"a": "b"}}}
        path = f"{RBAC}/clusterrolebindings/b"
        assert (await alice("PATCH", path, noted, **{"content-type": MERGE})).status == 403

    run(test)


@story(["clusterrole-aggregation-controller"])
async def test_what_is_aggregated_to_view_is_in_view_edit_and_admin(plane):
    resource = by_kind("rbac.authorization.k8s.io/v1", "ClusterRole")
    rule = {"verbs": ["get"], "apiGroups": ["example.com"], "resources": ["boats"]}
    labels = {"rbac.authorization.k8s.io/aggregate-to-view": "true"}
    made = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "boats", "labels": labels},
        "rules": [rule],
    }
    await plane.client.create(resource, made)
    await plane.settled()
    for name in ("view", "edit", "admin"):
        assert rule in (await plane.client.get(resource, "", name))["rules"], name
    await plane.client.delete(resource, "", "boats")
    await plane.settled()
    assert rule not in (await plane.client.get(resource, "", "admin"))["rules"]


@pytest.mark.parametrize("sub", ["exec", "attach", "portforward"])
def test_a_session_over_a_websocket_needs_create_too(sub):
    """It begins with a GET: whoever may only read must not get a shell by it. [v1.35]"""

    async def test(api):
        await api.made("/api/v1/namespaces/default/pods", pod("web"))
        path = f"/api/v1/namespaces/default/pods/web/{sub}"
        asked = {"connection": "Upgrade", "upgrade": "websocket"}
        both = {"verbs": ["get"], "apiGroups": [""], "resources": [f"pods/{sub}"]}
        await grant(api, "reader", both)
        refused = await as_user(api, "reader")("GET", path, **asked)
        assert refused.status == 403
        assert f'cannot create resource "pods/{sub}"' in refused.message
        await grant(api, "writer", {**both, "verbs": ["create"]})
        refused = await as_user(api, "writer")("GET", path, **asked)
        assert f'cannot get resource "pods/{sub}"' in refused.message
        await grant(api, "user", {**both, "verbs": ["get", "create"]})
        # This server has no way to nodes: authorization is behind it.
        assert (await as_user(api, "user")("GET", path, **asked)).status == 503

    run(test)


@pytest.mark.parametrize("path", [
    "exec/default/web/c", "attach/default/web/c", "portForward/default/web", "run/default/web/c",
    "EXEC/default/web/c", "%65xec/default/web/c", "%2565xec/default/web/c", "/exec/default/web/c",
    "./exec/a/b/c", "exec", "cri/exec/token",
])  # fmt: skip
@pytest.mark.parametrize("node", ["n1", "https:n1:10250"])
def test_a_session_by_way_of_a_node_needs_create_too(node, path):
    """Who may read a node's figures must not get a shell in its containers."""

    async def test(api):
        right = {"verbs": ["get"], "apiGroups": [""], "resources": ["nodes/proxy"]}
        await grant(api, "reader", right)
        place = f"/api/v1/nodes/{node}/proxy/{path}?command=sh"
        refused = await as_user(api, "reader")("GET", place)
        assert refused.status == 403
        assert 'cannot create resource "nodes/proxy"' in refused.message
        figures = await as_user(api, "reader")("GET", f"/api/v1/nodes/{node}/proxy/metrics")
        assert figures.status == 503, "this server has no way to nodes"
        await grant(api, "user", {**right, "verbs": ["get", "create"]})
        assert (await as_user(api, "user")("GET", place)).status == 503

    run(test)


def test_impersonation_needs_its_verb_for_each_part():
    """[A1] An attack: to speak as somebody else without the right."""

    async def test(api):
        verb = {"verbs": ["impersonate"], "apiGroups": [""]}
        await grant(
            api, "alice",
            {**verb, "resources": ["users"], "resourceNames": ["bob"]},
            {**verb, "resources": ["groups"], "resourceNames": ["dev"]},
            {**verb, "apiGroups": ["authentication.k8s.io"],
             "resources": ["userextras/scopes"], "resourceNames": ["view", "edit"]},
        )  # fmt: skip
        path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"

        async def as_(**headers):
            spoken = {f"impersonate-{key}": value for key, value in headers.items()}
            return await api.send("POST", path, {}, user="alice", group="", headers=spoken)

        bob = await as_(user="bob", group="dev")
        assert bob.obj["status"]["userInfo"] == {
            "username": "bob",
            "groups": ["dev", "system:authenticated"],
        }
        refused = await as_(user="carol")
        assert refused.message == (
            'users "carol" is forbidden: User "alice" cannot impersonate resource "users" in API '
            'group "" at the cluster scope'
        )
        assert (await as_(user="bob", group="system:masters")).status == 403
        assert (await as_(user="bob", uid="7")).status == 403
        scoped = await as_(user="bob", **{"extra-scopes": "view"})
        assert scoped.obj["status"]["userInfo"]["extra"] == {"scopes": ["view"]}
        assert (await as_(user="bob", **{"extra-scopes": ["view", "edit"]})).status == 201
        assert (await as_(user="bob", **{"extra-scopes": ["view", "all"]})).status == 403
        assert (await as_(user="bob", **{"extra-scopes": "view, edit"})).status == 403
        assert (await as_(user="bob", group=["dev", "system:masters"])).status == 403
        assert (await as_(group="dev")).status == 400

    run(test)


def test_constrained_impersonation_is_for_what_is_asked():
    """[A1] As an original v1.35.8 with the gate answered the same requests."""
    where = {"apiGroups": ["authentication.k8s.io"], "resourceNames": ["jane"]}

    async def test(api):
        await grant(
            api, "alice",
            {**where, "verbs": ["impersonate:user-info"], "resources": ["users"]},
            {"verbs": ["impersonate-on:user-info:list"], "apiGroups": [""], "resources": ["pods"]},
        )  # fmt: skip
        await grant(api, "jane", GET_PODS)

        async def as_(path, user="jane", **headers):
            spoken = {f"impersonate-{key}": item for key, item in {"user": user, **headers}.items()}
            return await api.send("GET", path, user="alice", group="", headers=spoken)

        assert (await as_("/api/v1/pods")).status == 200
        assert (await as_("/api/v1/namespaces/default/pods/x")).message == (
            'pods "x" is forbidden: User "alice" cannot impersonate-on:user-info:get resource '
            '"pods" in API group "" in the namespace "default"'
        )
        assert (await as_("/api/v1/pods", "carol")).message == (
            'users.authentication.k8s.io "carol" is forbidden: User "alice" cannot '
            'impersonate:user-info resource "users" in API group "authentication.k8s.io" at the '
            "cluster scope"
        )
        assert (await as_("/version")).message == (
            'forbidden: User "alice" cannot impersonate-on:user-info:get path "/version"'
        )
        assert (await as_("/api/v1/pods", group="system:masters")).message == (
            'groups.authentication.k8s.io "system:masters" is forbidden: User "alice" cannot '
            'impersonate:user-info resource "groups" in API group "authentication.k8s.io" at the '
            "cluster scope: impersonating the system:masters group is not allowed"
        )
        assert (await as_("/api/v1/pods", "", group="dev")).message == (
            'requested &user.DefaultInfo{Name:"", UID:"", Groups:[]string{"dev"}, '
            "Extra:map[string][]string(nil)} without impersonating a user name"
        )

    with features.used(Release(gates={"ConstrainedImpersonation": True})):
        run(test)


def test_reviews_tell_why_and_list_what():
    async def test(api):
        await grant(api, "alice", GET_PODS, namespace="default")
        alice = as_user(api, "alice")
        what = {"namespace": "default", "verb": "list", "resource": "pods"}
        path = f"{AUTHZ}/selfsubjectaccessreviews"
        mine = await alice("POST", path, {"spec": {"resourceAttributes": what}})
        assert mine.obj["status"] == {
            "allowed": True,
            "reason": 'RBAC: allowed by RoleBinding "default/alice" of Role "alice" to User '
            '"alice"',
        }
        local = f"{AUTHZ}/namespaces/default/localsubjectaccessreviews"
        about = {"spec": {"user": "alice", "resourceAttributes": what}}
        assert (await api.post(local, about)).obj["status"]["allowed"] is True
        elsewhere = {"spec": {"user": "alice", "resourceAttributes": {**what, "namespace": "x"}}}
        assert (await api.post(local, elsewhere)).status == 422
        rules = await alice(
            "POST", f"{AUTHZ}/selfsubjectrulesreviews", {"spec": {"namespace": "default"}}
        )
        assert GET_PODS in rules.obj["status"]["resourceRules"]
        assert rules.obj["status"]["incomplete"] is False
        node = as_user(api, "system:node:n1", "system:nodes")
        of_node = await node(
            "POST", f"{AUTHZ}/selfsubjectrulesreviews", {"spec": {"namespace": "default"}}
        )
        assert of_node.obj["status"]["incomplete"] is True

    run(test)


def test_a_node_does_not_read_another_nodes_secrets():
    """An attack: a kubelet asks for what its pods do not use."""

    async def test(api):
        secrets = "/api/v1/namespaces/default/secrets"
        for name in ("mine", "yours"):
            await api.made(secrets, {"metadata": {"name": name}})
        volume = {"name": "s", "secret": {"secretName": "mine"}}
        await api.made(
            "/api/v1/namespaces/default/pods", pod("web", nodeName="n1", volumes=[volume])
        )
        n1, n2 = (as_user(api, f"system:node:{n}", "system:nodes") for n in ("n1", "n2"))
        assert (await n1("GET", f"{secrets}/mine")).status == 200
        assert (await n1("GET", f"{secrets}/yours")).status == 403
        assert (await n2("GET", f"{secrets}/mine")).status == 403
        assert (await n1("GET", secrets)).status == 403
        assert (await n1("GET", "/api/v1/secrets")).status == 403
        assert (await n1("GET", "/api/v1/pods?fieldSelector=spec.nodeName%3Dn1")).status == 200
        for everything in ("pods", "namespaces", "nodes", "namespaces/default/pods"):
            assert (await n1("GET", f"/api/v1/{everything}")).status == 403
            assert (await n1("GET", f"/api/v1/{everything}?watch=true")).status == 403
        assert (await n1("GET", f"{NETWORKING}/networkpolicies")).status == 403
        path = "/api/v1/namespaces/default/pods/web"
        assert (await n2("DELETE", path)).status == 403
        patch = {"content-type": MERGE}
        assert (await n2("PATCH", f"{path}/status", {"status": {}}, **patch)).status == 403

    run(test)


@pytest.mark.parametrize(
    ("modes", "status"),
    [(("AlwaysAllow",), 200), (("AlwaysDeny",), 403), (("AlwaysDeny", "AlwaysAllow"), 200)],
)
def test_the_modes_are_asked_in_their_order(modes, status):
    async def test(api):
        reply = await as_user(api, "alice")("GET", "/api/v1/pods")
        assert reply.status == status
        if status == 403:
            assert reply.message.endswith("at the cluster scope: Everything is forbidden.")

    run(test, authorization_modes=modes)


def test_an_unknown_mode_stops_the_start():
    async def test(api):
        """Never reached."""

    with pytest.raises(ValueError, match='"RABC" is not a valid mode'):
        run(test, authorization_modes=("RABC",))


def test_a_started_server_writes_the_roles_once():
    """Reconciliation: a second start changes nothing; what was deleted comes back."""

    async def test():
        clock = virtual_time.LoopClock()
        store = MemoryStore(clock)
        revisions = []
        for _ in range(2):
            server = ApiServer(store, published_schema(), ApiServerSettings(), clock, Metrics())
            await server.start()
            revisions.append(store.revision)
            await server.stop()
        assert revisions[0] == revisions[1]
        key = "/registry/clusterroles.rbac.authorization.k8s.io/view"
        entry = await store.get(key)
        await store.delete(key, entry.revision)
        server = ApiServer(store, published_schema(), ApiServerSettings(), clock, Metrics())
        await server.start()
        assert await store.get(key) is not None
        await server.stop()
        await store.close()

    virtual_time.run(test())
