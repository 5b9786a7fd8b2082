"""Policies written in CEL, through the whole server. [A3]"""

import asyncio

import orjson
import pytest

from sampan.apiserver.audit.sinks import AuditFile
from sampan.apiserver.settings import ApiServerSettings
from tests.support import virtual_time
from tests.support.generators.api_requests import MERGE, api_server, pod
from tests.support.worlds.control_plane import published_schema

pytestmark = pytest.mark.kubernetes("1.37")
PODS = "/api/v1/namespaces/default/pods"
MAPS = "/api/v1/namespaces/default/configmaps"
V1 = "/apis/admissionregistration.k8s.io/v1"
POLICIES, BINDINGS = f"{V1}/validatingadmissionpolicies", f"{V1}/validatingadmissionpolicybindings"
CHANGES = f"{V1}/mutatingadmissionpolicies"
CHANGE_BINDINGS = f"{V1}/mutatingadmissionpolicybindings"


def run(test, **settings):
    async def main():
        chosen = ApiServerSettings(**settings)
        async with api_server(published_schema(), settings=chosen) as api:
            await test(api)

    virtual_time.run(main())


def rules(**more):
    rule = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "resources": ["pods"],
        "operations": ["CREATE", "UPDATE"],
    }
    return {"resourceRules": [{**rule, **more}]}


def policy(*validations, name="p", match=None, **more):
    made = [one if isinstance(one, dict) else {"expression": one} for one in validations]
    spec = {"matchConstraints": match or rules(), "validations": made, **more}
    return {"metadata": {"name": name}, "spec": spec}


def binding(*actions, name="b", of="p", **more):
    spec = {"policyName": of, "validationActions": list(actions) or ["Deny"], **more}
    return {"metadata": {"name": name}, "spec": spec}


async def in_force(api, wanted, *bindings):
    await api.made(POLICIES, wanted)
    for one in bindings or (binding(),):
        await api.made(BINDINGS, one)


def labelled(name, **labels):
    made = pod(name)
    made["metadata"]["labels"] = labels
    return made


def test_a_policy_refuses_with_upstreams_words():
    async def test(api):
        await api.made(POLICIES, policy("object.metadata.name.startsWith('a')"))
        assert (await api.post(PODS, pod("x"))).status == 201  # nothing binds it yet
        await api.made(BINDINGS, binding())
        assert (await api.post(PODS, pod("a"))).status == 201
        refused = await api.post(PODS, pod("b"))
        text = (
            "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: "
            "failed expression: object.metadata.name.startsWith('a')"
        )
        assert refused.status == 422
        assert refused.message == f'pods "b" is forbidden: {text}'
        assert refused.obj["reason"] == "Invalid"
        assert refused.obj["details"]["causes"] == [{"message": text}]
        assert (await api.get(f"{PODS}/b")).status == 404
        await api.delete(f"{BINDINGS}/b")
        assert (await api.post(PODS, pod("b"))).status == 201

    run(test)


@pytest.mark.parametrize(
    ("reason", "code"),
    [("Forbidden", 403), ("RequestEntityTooLarge", 413), ("Invalid", 422)],
)
def test_the_reason_makes_the_code(reason, code):
    async def test(api):
        await in_force(api, policy({"expression": "false", "reason": reason, "message": "no"}))
        refused = await api.post(PODS, pod("a"))
        assert (refused.status, refused.obj["reason"]) == (code, reason)
        assert refused.message.endswith("denied request: no")

    run(test)


def test_a_message_is_worked_out_and_what_is_none_is_not_used():
    async def test(api):
        await in_force(
            api,
            policy(
                {
                    "expression": "!('bad' in object.metadata.labels)",
                    "messageExpression": "'no ' + variables.label + ' for '"
                    " + request.userInfo.username",
                },
                {
                    "expression": "!('worse' in object.metadata.labels)",
                    "messageExpression": "string(object.metadata.labels.missing)",
                    "message": "fallback",
                },
                {"expression": "!('long' in object.metadata.labels)",
                 "messageExpression": "'two\\nlines'"},
                variables=[{"name": "label", "expression": "object.metadata.labels.bad"}],
            ),
        )  # fmt: skip
        for labels, said in (
            ({"bad": "x"}, "no x for admin"),
            ({"worse": "x"}, "fallback"),
            ({"long": "x"}, "failed expression: !('long' in object.metadata.labels)"),
        ):
            refused = await api.post(PODS, labelled("a", **labels))
            assert refused.message.endswith(f"denied request: {said}")

    run(test)


def test_warnings_warn_and_let_pass():
    async def test(api):
        await in_force(api, policy({"expression": "false", "message": "no"}), binding("Warn"))
        made = await api.post(PODS, pod("a"))
        assert made.status == 201
        said = "Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': no"
        assert said in made.headers["warning"]

    run(test)


def test_rules_selectors_and_exclusions_say_what_a_policy_is_about():
    async def test(api):
        match = {
            **rules(operations=["CREATE"]),
            "excludeResourceRules": rules(resourceNames=["spared"])["resourceRules"],
            "objectSelector": {"matchLabels": {"watched": "yes"}},
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}},
        }
        await in_force(api, policy("false", match=match))
        assert (await api.post(PODS, pod("plain"))).status == 201
        assert (await api.post(PODS, labelled("spared", watched="yes"))).status == 201
        other = "/api/v1/namespaces/kube-system/pods"
        elsewhere = await api.post(other, labelled("a", watched="yes"))
        assert elsewhere.status == 201
        assert (await api.post(PODS, labelled("a", watched="yes"))).status == 422
        change = {"metadata": {"labels": {"watched": "yes"}}}
        assert (await api.patch(f"{PODS}/plain", change, MERGE)).status == 200  # an update

    run(test)


def test_a_binding_narrows_its_policy_down():
    async def test(api):
        only = {"objectSelector": {"matchLabels": {"watched": "yes"}}}
        await in_force(api, policy("false"), binding(matchResources=only))
        assert (await api.post(PODS, pod("plain"))).status == 201
        assert (await api.post(PODS, labelled("a", watched="yes"))).status == 422

    run(test)


def test_equivalent_versions_match_and_exact_ones_do_not():
    async def test(api):
        scaler = {
            "metadata": {"name": "a"},
            "spec": {
                "maxReplicas": 3,
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"},
            },
        }
        path = "/apis/autoscaling/{}/namespaces/default/horizontalpodautoscalers"
        about = {"apiGroups": ["autoscaling"], "resources": ["horizontalpodautoscalers"]}
        for name, match_policy in (("near", "Equivalent"), ("exact", "Exact")):
            match = {**rules(**about, apiVersions=["v1"]), "matchPolicy": match_policy}
            said = {"expression": "false", "message": f"{name} {'{'}"}
            await api.made(POLICIES, policy(said, name=name, match=match))
        await api.made(BINDINGS, binding(of="exact"))
        assert (await api.post(path.format("v2"), scaler)).status == 201
        await api.made(BINDINGS, binding(of="near", name="c"))
        scaler["metadata"]["name"] = "b"
        assert "'near'" in (await api.post(path.format("v2"), scaler)).message

    run(test)


def test_a_policy_compares_the_old_object_with_the_new_one():
    async def test(api):
        wanted = policy(
            "request.operation != 'UPDATE' || "
            "object.metadata.?labels.?team == oldObject.metadata.?labels.?team"
        )
        await in_force(api, wanted)
        await api.made(PODS, labelled("a", team="x"))
        change = {"metadata": {"labels": {"team": "y"}}}
        assert (await api.patch(f"{PODS}/a", change, MERGE)).status == 422
        change = {"metadata": {"labels": {"other": "y"}}}
        assert (await api.patch(f"{PODS}/a", change, MERGE)).status == 200

    run(test)


def test_deletes_show_the_old_object_and_no_new_one():
    async def test(api):
        await in_force(
            api,
            policy("object == null && !has(oldObject.metadata.labels)",
                   match=rules(operations=["DELETE"])),
        )  # fmt: skip
        await api.made(PODS, labelled("kept", a="b"))
        await api.made(PODS, pod("going"))
        assert (await api.delete(f"{PODS}/kept")).status == 422
        assert (await api.delete(f"{PODS}/going")).status == 200

    run(test)


def test_what_is_run_inside_a_pod_can_be_refused():
    async def test(api):
        match = rules(resources=["pods/exec"], operations=["CONNECT"])
        said = "'not ' + object.command[0] + ' by ' + request.operation"
        await in_force(
            api,
            policy({"expression": "!object.?stdin.orValue(false)", "messageExpression": said},
                   match=match),
        )  # fmt: skip
        await api.made(PODS, pod("a"))
        refused = await api.get(f"{PODS}/a/exec?command=sh&stdin=true")
        assert refused.status == 422
        assert refused.message.endswith("denied request: not sh by CONNECT")
        assert (await api.get(f"{PODS}/a/exec?command=ls")).status != 422

    run(test)


def test_parameters_come_by_name_and_change_at_once():
    async def test(api):
        await api.made(MAPS, {"metadata": {"name": "limits"}, "data": {"most": "1"}})
        await in_force(
            api,
            policy("object.spec.containers.size() <= int(params.data.most)",
                   paramKind={"apiVersion": "v1", "kind": "ConfigMap"}),
            binding(paramRef={"name": "limits", "parameterNotFoundAction": "Deny"}),
        )  # fmt: skip
        two = pod("a")
        two["spec"]["containers"].append({**two["spec"]["containers"][0], "name": "second"})
        assert (await api.post(PODS, two)).status == 422
        await api.patch(f"{MAPS}/limits", {"data": {"most": "2"}}, MERGE)
        assert (await api.post(PODS, two)).status == 201

    run(test)


def test_every_parameter_that_a_selector_finds_must_agree():
    async def test(api):
        for name, most in (("one", "3"), ("two", "1")):
            made = {"metadata": {"name": name, "labels": {"for": "p"}}, "data": {"most": most}}
            await api.made(MAPS, made)
        await in_force(
            api,
            policy(
                {"expression": "object.metadata.labels.size() <= int(params.data.most)",
                 "messageExpression": "params.metadata.name + ' has ' + params.data.most"},
                paramKind={"apiVersion": "v1", "kind": "ConfigMap"},
            ),
            binding(paramRef={"selector": {"matchLabels": {"for": "p"}},
                              "parameterNotFoundAction": "Allow"}),
        )  # fmt: skip
        refused = await api.post(PODS, labelled("a", x="1", y="2"))
        assert refused.message.endswith("denied request: two has 1")
        for name in ("one", "two"):
            await api.delete(f"{MAPS}/{name}")
        assert (await api.post(PODS, labelled("a", x="1", y="2"))).status == 201

    run(test)


@pytest.mark.parametrize(
    ("action", "failure", "status"),
    [("Deny", "Fail", 422), ("Deny", "Ignore", 201), ("Allow", "Fail", 201)],
)
def test_missing_parameters_are_a_matter_of_binding_and_policy(action, failure, status):
    async def test(api):
        await in_force(
            api,
            policy("params.data.x == 'y'", failurePolicy=failure,
                   paramKind={"apiVersion": "v1", "kind": "ConfigMap"}),
            binding(paramRef={"name": "none", "parameterNotFoundAction": action}),
        )  # fmt: skip
        reply = await api.post(PODS, pod("a"))
        assert reply.status == status
        if status == 422:
            assert reply.message.endswith(
                "denied request: failed to configure binding: no params found for policy binding "
                "with `Deny` parameterNotFoundAction"
            )

    run(test)


def test_parameters_of_no_kind_refuse_in_the_policys_name():
    async def test(api):
        kind = {"apiVersion": "example.com/v1", "kind": "Nothing"}
        await in_force(
            api, policy("params.a == 1", paramKind=kind),
            binding(paramRef={"name": "x", "parameterNotFoundAction": "Deny"}),
        )  # fmt: skip
        refused = await api.post(PODS, pod("a"))
        assert refused.message == (
            "pods \"a\" is forbidden: ValidatingAdmissionPolicy 'p' denied request: failed to "
            "configure policy: failed to find resource referenced by paramKind: 'example.com/v1, "
            "Kind=Nothing'"
        )

    run(test)


def test_match_conditions_come_first_and_one_false_one_decides():
    async def test(api):
        conditions = [
            {"name": "broken", "expression": "object.metadata.labels.missing == 'x'"},
            {"name": "mine", "expression": "request.userInfo.username == 'admin'"},
        ]
        await in_force(api, policy("false", matchConditions=conditions))
        refused = await api.post(PODS, pod("a"))
        assert refused.message.endswith(
            "denied request: expression 'object.metadata.labels.missing == 'x'' resulted in error: "
            "no such key: labels"
        )
        other = await api.send("POST", PODS, pod("b"), user="other")
        assert other.status == 201

    run(test)


@pytest.mark.parametrize(("failure", "status"), [("Fail", 422), ("Ignore", 201)])
def test_an_error_at_run_time_counts_by_the_failure_policy(failure, status):
    async def test(api):
        await in_force(api, policy("object.metadata.labels.x == 'y'", failurePolicy=failure))
        reply = await api.post(PODS, pod("a"))
        assert reply.status == status
        if status == 422:
            assert reply.message.endswith(
                "'object.metadata.labels.x == 'y'' resulted in error: no such key: labels"
            )

    run(test)


def test_an_expression_that_takes_too_long_is_stopped():
    async def test(api):
        # A question to the authorizer costs so much that two may be asked.
        three = [f"authorizer.path('/{one}').check('get').allowed()" for one in "abc"]
        await in_force(api, policy(" && ".join(three)))
        refused = await api.post(PODS, pod("a"))
        assert "operation cancelled: actual cost limit exceeded" in refused.message

    run(test)


def test_expressions_ask_the_authorizer_for_the_user_and_for_others():
    async def test(api):
        wanted = policy(
            {"expression": "authorizer.requestResource.check('delete').allowed()", "message": "a"},
            {"expression": "!authorizer.serviceAccount('default', 'x').group('')"
                           ".resource('pods').namespace('default').check('create').allowed()",
             "message": "b"},
        )  # fmt: skip
        await in_force(api, wanted)
        assert (await api.post(PODS, pod("a"))).status == 201
        role = {
            "metadata": {"name": "maker"},
            "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["create"]}],
        }
        await api.made("/apis/rbac.authorization.k8s.io/v1/clusterroles", role)
        bound = {
            "metadata": {"name": "maker"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
                        "name": "maker"},
            "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "joe"}],
        }  # fmt: skip
        await api.made("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", bound)
        refused = await api.send("POST", PODS, pod("b"), user="joe", group="people")
        assert refused.message.endswith("denied request: a")
        bound["metadata"]["name"] = "account"
        bound["subjects"] = [{"kind": "ServiceAccount", "name": "x", "namespace": "default"}]
        await api.made("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", bound)
        assert (await api.post(PODS, pod("c"))).message.endswith("denied request: b")

    run(test)


def test_the_namespace_of_the_object_can_be_read():
    async def test(api):
        label = "namespaceObject.metadata.labels['kubernetes.io/metadata.name']"
        await in_force(api, policy(f"{label} != request.namespace"))
        assert (await api.post(PODS, pod("a"))).status == 422
        spaces = rules(resources=["namespaces"])
        await in_force(
            api, policy("namespaceObject == null", name="n", match=spaces),
            binding(of="n", name="n"),
        )  # fmt: skip
        assert (await api.post("/api/v1/namespaces", {"metadata": {"name": "x"}})).status == 201

    run(test)


def test_a_policy_that_does_not_compile_is_refused():
    async def test(api):
        refused = await api.post(POLICIES, policy("object.x +"))
        assert refused.status == 422
        assert "spec.validations[0].expression: Invalid value" in refused.message
        assert "compilation failed: ERROR: <input>:1:11: Syntax error" in refused.message

    run(test)


def test_nobody_is_locked_out_by_a_policy():
    async def test(api):
        everything = rules(
            apiGroups=["*"], apiVersions=["*"], resources=["*"], operations=["*"], scope="*"
        )
        await in_force(api, policy("false", match=everything))
        assert (await api.post(PODS, pod("a"))).status == 422
        asked = {"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}}
        path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
        assert (await api.post(path, asked)).status == 201
        assert (await api.delete(f"{BINDINGS}/b")).status == 200
        assert (await api.post(PODS, pod("a"))).status == 201

    run(test)


def test_decisions_are_counted():
    async def test(api):
        await in_force(api, policy("object.metadata.name == 'a'"))
        await api.post(PODS, pod("b"))
        text = (await api.get("/metrics")).body.decode()
        assert (
            'apiserver_validating_admission_policy_check_total{enforcement_action="deny",'
            'error_type="no_error",policy="p",policy_binding="b"} 1'
        ) in text
        assert "apiserver_validating_admission_policy_check_duration_seconds_bucket" in text

    run(test)


@pytest.mark.parametrize(
    ("resource", "path", "body"),
    [
        ("pods/binding", f"{PODS}/a/binding",
         {"metadata": {"name": "a"}, "target": {"name": "n1"}}),
        ("bindings", PODS.replace("pods", "bindings"),
         {"metadata": {"name": "a"}, "target": {"name": "n1"}}),
        ("pods/eviction", f"{PODS}/a/eviction", {"metadata": {"name": "a"}}),
    ],
)  # fmt: skip
def test_policies_see_evictions_and_bindings(resource, path, body):
    """An attack: what a policy forbids to everybody, done through another door."""

    async def test(api):
        await api.made(PODS, pod("a"))
        match = rules(resources=[resource], operations=["CREATE"])
        await in_force(api, policy("request.kind.kind == 'Pod'", match=match))
        refused = await api.post(path, body)
        assert refused.status == 422
        assert "ValidatingAdmissionPolicy 'p'" in refused.message
        left = await api.get(f"{PODS}/a")
        assert "nodeName" not in left.obj["spec"]
        assert "deletionTimestamp" not in left.obj["metadata"]
        await api.delete(f"{BINDINGS}/b")
        assert (await api.post(path, body)).status == 201

    run(test)


@pytest.mark.parametrize("dry", ["refused", "query", "body"])
def test_an_eviction_that_does_not_happen_charges_no_budget(dry):
    async def test(api):
        await api.made(PODS, labelled("a", app="x"))
        await api.patch(
            f"{PODS}/a/status",
            {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}},
            MERGE,
        )
        budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
        spec = {"minAvailable": 0, "selector": {"matchLabels": {"app": "x"}}}
        made = await api.made(budgets, {"metadata": {"name": "b"}, "spec": spec})
        status = {
            "disruptionsAllowed": 1,
            "currentHealthy": 1,
            "desiredHealthy": 0,
            "expectedPods": 1,
            "observedGeneration": made["metadata"]["generation"],
        }
        assert (await api.patch(f"{budgets}/b/status", {"status": status}, MERGE)).status == 200
        eviction = {"metadata": {"name": "a"}}
        path = f"{PODS}/a/eviction"
        if dry == "refused":
            match = rules(resources=["pods/eviction"], operations=["CREATE"])
            await in_force(api, policy("false", match=match))
            assert (await api.post(path, eviction)).status == 422
        elif dry == "query":
            assert (await api.post(f"{path}?dryRun=All", eviction)).status == 201
        else:
            eviction["deleteOptions"] = {"dryRun": ["All"]}
            assert (await api.post(path, eviction)).status == 201
        left = (await api.get(f"{budgets}/b")).obj["status"]
        assert left["disruptionsAllowed"] == 1
        assert not left.get("disruptedPods")

    run(test)


# Mutating policies


def change(*expressions, name="m", match=None, **more):
    made = [
        {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": one}}
        if one.startswith("Object")
        else {"patchType": "JSONPatch", "jsonPatch": {"expression": one}}
        for one in expressions
    ]
    spec = {"matchConstraints": match or rules(), "mutations": made, "reinvocationPolicy": "Never"}
    spec |= more
    return {"metadata": {"name": name}, "spec": spec}


async def changing(api, wanted, **more):
    name = wanted["metadata"]["name"]
    await api.made(CHANGES, wanted)
    bound = {"metadata": {"name": name}, "spec": {"policyName": name, **more}}
    await api.made(CHANGE_BINDINGS, bound)


def test_a_configuration_is_applied_to_the_object():
    async def test(api):
        await changing(
            api,
            change(
                "Object{metadata: Object.metadata{labels: {'by': 'policy'}},"
                " spec: Object.spec{containers: object.spec.containers.map(c,"
                " Object.spec.containers{name: c.name, env: [Object.spec.containers.env{"
                "name: 'TEAM', value: request.namespace}]})}}"
            ),
        )
        made = await api.made(PODS, labelled("a", own="yes"))
        assert made["metadata"]["labels"] == {"own": "yes", "by": "policy"}
        (container,) = made["spec"]["containers"]
        assert container["env"] == [{"name": "TEAM", "value": "default"}]
        assert container["image"]

    run(test)


def test_a_json_patch_is_done_and_a_failed_test_leaves_the_object():
    async def test(api):
        await changing(
            api,
            change(
                "!has(object.metadata.labels) ? [JSONPatch{op: 'add', path: '/metadata/labels',"
                " value: Object.metadata.labels{}}, JSONPatch{op: 'add', path: '/metadata/labels/'"
                " + jsonpatch.escapeKey('example.com/by'), value: 'policy'}] : []",
                "[JSONPatch{op: 'test', path: '/metadata/name', value: 'b'},"
                " JSONPatch{op: 'add', path: '/metadata/annotations', value: {'only': 'b'}}]",
            ),
        )
        made = await api.made(PODS, pod("a"))
        assert made["metadata"]["labels"] == {"example.com/by": "policy"}
        assert "annotations" not in made["metadata"]
        assert (
            'apiserver_mutating_admission_policy_check_total{error_type="no_error",policy="m",'
            'policy_binding="m"} 2'
        ) in (await api.get("/metrics")).body.decode()
        assert (await api.made(PODS, pod("b")))["metadata"]["annotations"] == {"only": "b"}

    run(test)


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH"])
def test_a_mutation_moves_nothing_to_another_namespace(method):
    """An attack: a policy for the pods of one namespace makes some in another."""

    async def test(api):
        await api.made("/api/v1/namespaces", {"metadata": {"name": "other"}})
        await api.made(PODS, pod("old"))
        move = "[JSONPatch{op: 'replace', path: '/metadata/namespace', value: 'other'}]"
        await changing(api, change(move))
        path = PODS if method == "POST" else f"{PODS}/old"
        body = pod("a") if method == "POST" else pod("old") if method == "PUT" else {}
        headers = {"content-type": MERGE} if method == "PATCH" else {}
        got = await api.send(method, path, body, headers=headers)
        assert got.status in (400, 422), got.body
        assert (await api.get("/api/v1/namespaces/other/pods")).items == []

    run(test)


@pytest.mark.parametrize(
    ("expression", "complaint"),
    [
        ("Object{spec: Object.metadata{}}", 'unexpected type name "Object.metadata"'),
        ("Object{spec: Object.spec{tolerations: [Object.spec.tolerations{key: 'a'}]}}",
         "may not mutate atomic arrays, maps or structs: .spec.tolerations"),
        ("Object{metadata: Object.metadata{labels: object.metadata.labels}}",
         "no such key: labels"),
        ("[JSONPatch{op: 'remove', path: '/nothing'}]", "JSONPath:"),
        ("[JSONPatch{op: 'add', path: '/spec/hostNetwork', value: 'yes'}]",
         "cannot unmarshal string into Go struct field PodSpec.spec.hostNetwork of type bool"),
    ],
)  # fmt: skip
def test_a_mutation_that_cannot_be_made_counts_by_the_failure_policy(expression, complaint):
    async def test(api):
        await changing(api, change(expression))
        refused = await api.post(PODS, pod("a"))
        assert (refused.status, refused.obj["reason"]) == (403, "Invalid")
        assert refused.message.startswith("policy 'm' with binding 'm' denied request: ")
        assert complaint in refused.message
        await api.patch(f"{CHANGES}/m", {"spec": {"failurePolicy": "Ignore"}}, MERGE)
        assert (await api.post(PODS, pod("a"))).status == 201

    run(test)


def test_what_a_policy_made_of_an_object_is_read_as_a_body_is():
    """[A3] What the kind does not have is dropped, and what is missing is filled in."""

    async def test(api):
        wanted = change(
            "[JSONPatch{op: 'add', path: '/spec/nonsense', value: 1},"
            " JSONPatch{op: 'add', path: '/spec/hostNetwork', value: false},"
            " JSONPatch{op: 'add', path: '/spec/containers/-', value: {'name': 'x', 'image': 'i'}}]"
        )
        await changing(api, wanted)
        spec = (await api.made(PODS, pod("a")))["spec"]
        assert spec.keys() & {"nonsense", "hostNetwork"} == set()
        assert spec["containers"][1]["imagePullPolicy"] == "Always"

    run(test)


def test_policies_see_what_earlier_ones_changed_and_those_that_ask_are_run_again():
    async def test(api):
        count = (
            "Object{metadata: Object.metadata{labels: {'seen': "
            "string(object.metadata.labels.size())}}}"
        )
        await changing(api, change(count, name="a", reinvocationPolicy="IfNeeded"))
        await changing(api, change("Object{metadata: Object.metadata{labels: {'late': 'yes'}}}",
                                   name="b"))  # fmt: skip
        made = await api.made(PODS, labelled("a", own="yes"))
        assert made["metadata"]["labels"] == {"own": "yes", "seen": "3", "late": "yes"}

    run(test)


def test_mutations_have_conditions_parameters_and_variables():
    async def test(api):
        await api.made(MAPS, {"metadata": {"name": "m"}, "data": {"team": "blue"}})
        wanted = change(
            "Object{metadata: Object.metadata{labels: {'team': variables.team}}}",
            paramKind={"apiVersion": "v1", "kind": "ConfigMap"},
            variables=[{"name": "team", "expression": "params.data.team"}],
            matchConditions=[{"name": "a", "expression": "object.metadata.name != 'spared'"}],
        )
        await changing(api, wanted, paramRef={"name": "m", "parameterNotFoundAction": "Deny"})
        assert (await api.made(PODS, pod("a")))["metadata"]["labels"] == {"team": "blue"}
        assert "labels" not in (await api.made(PODS, pod("spared")))["metadata"]

    run(test)


def test_what_a_policy_changed_is_judged_by_the_validating_ones():
    async def test(api):
        await changing(api, change("Object{metadata: Object.metadata{labels: {'bad': 'yes'}}}"))
        await in_force(api, policy("!('bad' in object.metadata.labels)"))
        assert (await api.post(PODS, pod("a"))).status == 422

    run(test)


def test_webhooks_are_not_asked_where_their_conditions_are_not_met():
    """The URL leads nowhere: whoever is asked fails."""

    async def test(api):
        hook = {
            "name": "hook.example.com",
            "clientConfig": {"url": "https://127.0.0.1:1/"},
            "rules": rules()["resourceRules"],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "matchConditions": [
                {"name": "others", "expression": "request.userInfo.username != 'admin'"},
                {"name": "known", "expression": "object.metadata.labels.team == 'x' ||"
                                                " authorizer.path('/').check('get').allowed()"},
            ],
        }  # fmt: skip
        path = f"{V1}/validatingwebhookconfigurations"
        await api.made(path, {"metadata": {"name": "w"}, "webhooks": [hook]})
        assert (await api.post(PODS, pod("a"))).status == 201
        text = (await api.get("/metrics")).body.decode()
        assert "apiserver_admission_match_condition_exclusions_total" in text
        hook["matchConditions"] = [{"name": "a", "expression": "object.metadata.labels.a == 'b'"}]
        await api.patch(f"{path}/w", {"webhooks": [hook]}, MERGE)
        refused = await api.post(PODS, pod("b"))
        assert refused.status == 403
        assert refused.message.endswith(
            "expression 'object.metadata.labels.a == 'b'' resulted in error: no such key: labels"
        )
        await api.patch(f"{path}/w", {"webhooks": [{**hook, "failurePolicy": "Ignore"}]}, MERGE)
        assert (await api.post(PODS, pod("b"))).status == 201

    run(test)


def test_failures_and_annotations_are_noted_for_the_audit(tmp_path):
    """[A10] What a policy has to say, in the request's own event."""
    path = tmp_path / "audit.log"

    async def test(api):
        wanted = policy(
            {"expression": "false", "message": "no"},
            auditAnnotations=[
                {"key": "size", "valueExpression": "string(object.spec.containers.size())"},
                {"key": "none", "valueExpression": "null"},
            ],
        )
        await in_force(api, wanted, binding("Audit", "Warn"), binding("Audit", name="c"))
        assert (await api.post(PODS, pod("a"))).status == 201

    rule = {"level": "Metadata", "resources": [{"group": "", "resources": ["pods"]}]}
    chosen = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [rule]}
    run(test, audit_policy=chosen, audit_file=AuditFile(str(path)))
    (*_, event) = [orjson.loads(line) for line in path.read_bytes().splitlines()]
    notes = event["annotations"]
    assert notes["p/size"] == "1"
    assert "p/none" not in notes
    (failure,) = orjson.loads(notes["validation.policy.admission.k8s.io/validation_failure"])
    assert failure == {
        "message": "no", "policy": "p", "binding": "b", "expressionIndex": 0,
        "validationActions": ["Audit", "Warn"],
    }  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 100_000])
def test_an_expression_that_takes_long_is_evaluated_beside_the_loop(size):
    """It has the time that its cost says (0.2 s and more); others are answered meanwhile."""
    ten = "[1,2,3,4,5,6,7,8,9,10]"
    loops = f"{ten}.all(a, {ten}.all(b, {ten}.all(c, {ten}.all(d, {ten}.all(e, a + b > 0)))))"

    async def main():
        async with api_server(published_schema()) as api:
            await in_force(api, policy(loops))
            posted = asyncio.ensure_future(  # noqa: TID251
                api.post(
                    PODS,
                    labelled("a") | {"metadata": {"name": "a", "annotations": {"a": "x" * size}}},
                )
            )
            answers = 0
            while not posted.done():
                assert (await api.get(MAPS)).status == 200
                answers += 1
                await asyncio.sleep(0.001)
            assert (await posted).status == 201
            assert answers > 5

    asyncio.run(main())
