"""The page in a real browser, over objects whose every text is an attack on it.

Whatever a tenant can write is shown somewhere: names that may be anything, labels' and annotations'
values, images, messages, conditions, columns of kinds of their own. It is text there: nothing of it
runs, is fetched or turns around what stands beside it, and the page's own policy has nothing to
report.
"""

import contextlib
import http.client
import json
from urllib.parse import quote, urlsplit

import pytest

from sampan.client import kubeconfig
from sampan.core import tls
from tests.support.parts.browser import Browser, find_browser, quiet
from tests.support.parts.sampan_process import SampanProcess

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

TOKEN = "a-token-of-this-test"
MARK = "window.hacked=1"
EVIL = (
    f"<img src=x onerror={MARK}><script>{MARK}</script><svg/onload={MARK}>"
    f"<iframe srcdoc='<script>parent.{MARK}</script>'></iframe>"
    f"<a href=javascript:{MARK}>a</a>\"' onmouseover={MARK} x='"
    "<style>*{background:url(//evil.example/x)}</style><base href=//evil.example/>"
    "<meta http-equiv=refresh content='0;url=//evil.example/'>"
    "${7*7}{{constructor.constructor('window.hacked=1')()}}"
    "\u001b]8;;http://evil.example\u0007link\u001b]8;;\u0007\u001b[2J\u202egnp.exe\u0000\u2028"
)
# Names of some kinds are any segment of a path: no slash, no percent sign.
NAME = f"<img src=x onerror={MARK}>"
CORE, APPS = "/api/v1", "/apis/apps/v1"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
META = {"name": "evil", "annotations": {"note": EVIL, "kubernetes.io/description": EVIL}}
IMAGE = f"<img/src=x/onerror={MARK}>"
POD_SPEC = {
    "schedulingGates": [{"name": "example.com/wait"}],
    "containers": [{
        "name": "c", "image": IMAGE, "command": [EVIL], "args": [EVIL],
        "env": [{"name": "E", "value": EVIL}],
    }],
}  # fmt: skip
CONDITION = {
    "type": "Evil", "status": "False", "reason": EVIL, "message": EVIL,
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}  # fmt: skip
COLUMN = {"name": EVIL, "type": "string", "jsonPath": ".spec.text", "description": EVIL}
DEFINITION = {
    "metadata": {"name": "evils.evil.example.com"},
    "spec": {
        "group": "evil.example.com", "scope": "Namespaced",
        "names": {"plural": "evils", "singular": "evil", "kind": "Evil"},
        "versions": [{
            "name": "v1", "served": True, "storage": True, "additionalPrinterColumns": [COLUMN],
            "schema": {"openAPIV3Schema": {
                "type": "object", "description": EVIL,
                "x-kubernetes-preserve-unknown-fields": True}},
        }],
    },
}  # fmt: skip
OBJECTS = [
    (f"{CORE}/namespaces/default/pods", {"metadata": META, "spec": POD_SPEC}),
    (f"{CORE}/namespaces/default/configmaps", {"metadata": META, "data": {"k": EVIL}}),
    (f"{CORE}/namespaces/default/services", {
        "metadata": META, "spec": {"ports": [{"port": 80}], "selector": {"a": "b"}}}),
    (f"{APPS}/namespaces/default/deployments", {"metadata": META, "spec": {
        "replicas": 1, "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}, "annotations": {"note": EVIL}},
                     "spec": POD_SPEC}}}),
    (f"{CORE}/namespaces/default/events", {
        "metadata": META, "reason": EVIL, "message": EVIL, "type": "Warning", "action": EVIL,
        "source": {"component": EVIL, "host": EVIL}, "count": 3,
        "involvedObject": {"kind": "Pod", "namespace": "default", "name": "evil",
                           "fieldPath": EVIL}}),
    (f"{CORE}/nodes", {"metadata": META, "spec": {"taints": [
        {"key": "a.b/c", "value": "v", "effect": "NoSchedule"}]}}),
    (f"{RBAC}/clusterroles", {"metadata": {"name": NAME}, "rules": [
        {"apiGroups": [EVIL], "resources": [EVIL], "verbs": [EVIL]}]}),
    (f"{RBAC}/namespaces/default/roles", {"metadata": {"name": "javascript:window.hacked=1"}}),
    (f"{RBAC}/clusterrolebindings", {
        "metadata": {"name": NAME}, "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": NAME},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": EVIL}]}),
    ("/apis/coordination.k8s.io/v1/namespaces/default/leases", {
        "metadata": META, "spec": {"holderIdentity": EVIL}}),
]  # fmt: skip
STATUSES = [
    (f"{CORE}/namespaces/default/pods/evil", {
        "phase": "Pending", "reason": EVIL, "message": EVIL, "conditions": [CONDITION],
        "qosClass": "BestEffort",
        "containerStatuses": [{
            "name": "c", "image": EVIL, "imageID": EVIL, "ready": False, "restartCount": 1,
            "containerID": EVIL, "state": {"waiting": {"reason": EVIL, "message": EVIL}},
            "lastState": {"terminated": {"exitCode": 1, "reason": EVIL, "message": EVIL}}}]}),
    (f"{APPS}/namespaces/default/deployments/evil", {"conditions": [CONDITION]}),
    (f"{CORE}/nodes/evil", {
        "conditions": [{**CONDITION, "type": "Ready"}],
        "nodeInfo": dict.fromkeys(
            ("kubeletVersion", "osImage", "kernelVersion", "containerRuntimeVersion",
             "architecture", "operatingSystem", "machineID", "systemUUID", "bootID",
             "kubeProxyVersion"), EVIL),
        "images": [{"names": [EVIL], "sizeBytes": 1}]}),
]  # fmt: skip
TABLES = (
    "-/v1/pods", "-/v1/configmaps", "-/v1/services", "apps/v1/deployments", "-/v1/events",
    "-/v1/nodes", "rbac.authorization.k8s.io/v1/clusterroles",
    "rbac.authorization.k8s.io/v1/roles", "rbac.authorization.k8s.io/v1/clusterrolebindings",
    "coordination.k8s.io/v1/leases", "evil.example.com/v1/evils",
)  # fmt: skip
SEEN = (
    *(f"#/table/{kind}" for kind in TABLES),
    "#/", "#/events", "#/kinds", "#/pod/default/evil", "#/object/-/v1/pods/default/evil",
    "#/object/-/v1/configmaps/default/evil", "#/object/-/v1/services/default/evil",
    "#/object/apps/v1/deployments/default/evil", "#/object/-/v1/events/default/evil",
    "#/object/-/v1/nodes/-/evil", "#/object/coordination.k8s.io/v1/leases/default/evil",
    f"#/object/rbac.authorization.k8s.io/v1/clusterroles/-/{quote(NAME, safe='')}",
    f"#/object/rbac.authorization.k8s.io/v1/clusterrolebindings/-/{quote(NAME, safe='')}",
    "#/object/rbac.authorization.k8s.io/v1/roles/default/javascript:window.hacked=1",
    "#/object/evil.example.com/v1/evils/default/evil",
    "#/object/apiextensions.k8s.io/v1/customresourcedefinitions/-/evils.evil.example.com",
)  # fmt: skip
# What somebody's link could say: of these the page knows nothing, or says so.
LINKS = (
    "#/constructor/x", "#/__proto__/__proto__", "#/toString", f"#/{EVIL}", f"#/pod/{EVIL}/{EVIL}",
    f"#/object/{EVIL}", f"#/table/{EVIL}", "#/table/..%2f..%2fapi/v1/pods", "#/object/-/v1/..%2f",
    "#/pod/default/..%2f..%2f..%2fui", "#/object/%00/%0d%0ax: y/pods/a/b", "#/table/-/v1/pods/%",
    "#//evil.example/x", "#javascript:window.hacked=1", "#/lesson/-1", f"#/lesson/{EVIL}",
)  # fmt: skip
WATCHED = """
window.reports = [];
document.addEventListener('securitypolicyviolation',
    (event) => window.reports.push(event.violatedDirective + ' ' + event.blockedURI));
"""
STRANGE = """JSON.stringify([...document.querySelectorAll(
    'main img, main script, main iframe, main base, main meta, main style, main object, main embed')
    ].map((item) => item.outerHTML).concat([...document.querySelectorAll('*')].flatMap((item) =>
    [...item.attributes].filter((one) => one.name.startsWith('on')
    || /^\\s*(javascript|data|http):/i.test(one.value) && one.name !== 'xmlns'
    && !one.name.startsWith('xmlns:')).map((one) => one.name + '=' + one.value))))"""


@pytest.fixture(scope="module")
def evil_cluster(tmp_path_factory):
    root = tmp_path_factory.mktemp("evil")
    user = EVIL.replace('"', '""').replace("\u0000", "").replace("\u2028", "")
    (root / "tokens").write_text(f'{TOKEN},"{user}",u1,"system:masters"\n', newline="")
    flags = ("--runtime", "simulated", "--nodes", "1", "--token-auth-file", str(root / "tokens"))
    cluster = SampanProcess(root, *flags)
    cluster.up()
    try:
        write_everything(cluster)
        yield cluster
    finally:
        cluster.stop()
        cluster.reset()


def write_everything(cluster):
    connection = kubeconfig.load(str(cluster.kubeconfig), {}, "").connection()
    where = urlsplit(connection.server)
    context = tls.client_context(ca_data=connection.ca, pair_data=connection.pair)
    server = http.client.HTTPSConnection(where.hostname, where.port, context=context, timeout=60)
    with contextlib.closing(server):
        write_all(server)


def write_all(server):

    def ask(method, path, body, kind="application/json"):
        server.request(method, path, body=json.dumps(body), headers={"content-type": kind})
        answer = server.getresponse()
        return answer.status, answer.read()

    assert ask("POST", DEFINITIONS, DEFINITION)[0] == 201
    for path, made in OBJECTS:
        status, said = ask("POST", path, made)
        assert status == 201, (path, said)
    for path, new in STATUSES:
        status, said = ask(
            "PATCH", f"{path}/status", {"status": new}, "application/merge-patch+json"
        )
        assert status == 200, (path, said)
    custom = {"apiVersion": "evil.example.com/v1", "kind": "Evil", "metadata": META}
    path = "/apis/evil.example.com/v1/namespaces/default/evils"
    status = 0
    while status != 201:  # until the definition is established
        status, said = ask("POST", path, {**custom, "spec": {"text": EVIL}, EVIL[:40]: EVIL})
        assert status in (201, 404), said


@pytest.fixture
def page(evil_cluster):
    program = find_browser()
    if program is None:
        pytest.skip("no chromium: `tools/setup test` installs it as root on an apt system")
    browser = Browser(program)
    server = kubeconfig.load(str(evil_cluster.kubeconfig), {}, "").connection().server.rstrip("/")
    page = browser.page(f"{server}/ui/")
    page.wait_for("document.readyState === 'complete'")
    page.call("Page.addScriptToEvaluateOnNewDocument", {"source": WATCHED})
    page.evaluate(f"sessionStorage.setItem('sampan.token', '{TOKEN}')")
    page.evaluate("location.reload()")
    page.wait_for("window.reports && document.querySelector('h1')?.textContent === 'Overview'")
    # Anonymous, before the token: that is no trouble of these objects.
    page.troubles.clear()
    page.requested.clear()
    try:
        yield page, server
    finally:
        browser.stop()


def look_at_all(page, views, words):
    """Each after another one, so that what is awaited is this one's."""
    for view in views:
        page.evaluate(f"location.hash = {json.dumps('#/lesson/1')}")
        page.wait_for("document.querySelector('h1')?.textContent !== 'Overview'")
        page.evaluate("document.querySelector('main').replaceChildren()")
        page.evaluate(f"location.hash = {json.dumps(view)}")
        page.wait_for("document.querySelector('main h1')")
        if words:
            page.wait_for(words)
        assert json.loads(page.evaluate(STRANGE)) == [], view


def assert_untouched(page, server):
    assert page.evaluate("typeof window.hacked") == "undefined"
    assert page.evaluate("window.reports") == []
    assert page.evaluate("location.origin") == server
    assert quiet(page.troubles, "404", "400") == []
    assert [url for url in page.requested if not url.startswith(f"{server}/")] == []
    # Marks that turn the direction of text around, and escapes, are shown as what they are.
    assert page.evaluate(
        "/[\\u0000-\\u0008\\u000b-\\u001f\\u202a-\\u202e]/.test(document.body.innerText)"
    ) is False  # fmt: skip


def test_whatever_objects_say_is_text(page):
    opened, server = page
    look_at_all(opened, SEEN, "document.querySelector('main').innerText.length > 20")
    opened.go("#/pod/default/evil")
    opened.wait_for_text("onerror=window.hacked")
    assert "<img src=x" in opened.text("#who"), "a user's name, too"
    assert_untouched(opened, server)


def test_whatever_a_link_says_is_text(page):
    opened, server = page
    look_at_all(opened, LINKS, "")
    assert_untouched(opened, server)


def test_what_would_run_or_be_fetched_is_noticed(page):
    """These tests can fail: of what is put into the page, nothing passes them."""
    opened, server = page
    opened.evaluate(
        "document.querySelector('main').append(Object.assign(document.createElement('img'),"
        " {src: '//evil.example/x', onerror: () => 0}))"
    )
    opened.wait_for("window.reports.length")
    assert json.loads(opened.evaluate(STRANGE)) != []
    with pytest.raises(AssertionError):
        assert_untouched(opened, server)
