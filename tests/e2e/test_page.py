"""The page at /ui/ in a real browser, over a cluster with real containers [X1]."""

import contextlib
import json
import os
import subprocess
from pathlib import Path

import axe_core_python
import pytest
import yaml

from sampan.client import kubeconfig
from tests.support.parts.browser import BrowserError, quiet
from tests.support.parts.processes import eventually
from tests.support.parts.sampan_process import environment, sampan_command
from tests.unit.apiserver.printers.test_pods import ROWS

pytestmark = [pytest.mark.containerd, pytest.mark.slow]

# Screenshots are kept here; the pictures of the documentation are made of the same views.
PICTURES = Path(os.environ.get("SAMPAN_PICTURES", "/tmp/sampan-pictures"))
IMAGE = "localhost/test/busybox:1"
EVIL = "<img src=x onerror=window.hacked=1><script>window.hacked=1</script>"
ESCAPES = r"\033]0;owned\007\033[31mred\033[2J" + EVIL
AXE = """axe.run({resultTypes: ["violations"]}).then((result) => result.violations.map(
    (item) => item.id + ": " + item.nodes.map((node) => node.html).join(" ")))"""
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "seen", "namespace": "glass", "annotations": {"note": EVIL}},
    "spec": {
        "terminationGracePeriodSeconds": 0,
        "containers": [
            {
                "name": "main", "image": IMAGE,
                "command": ["sh", "-c", f"echo hello from seen; printf '{ESCAPES}\\n'; sleep 3600"],
            }
        ],
    },
}  # fmt: skip
READER = """
apiVersion: v1
kind: Namespace
metadata: {name: glass}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: reader, namespace: glass}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}
subjects: [{kind: ServiceAccount, name: default, namespace: glass}]
"""


@pytest.fixture(scope="module")
def login_link(cluster):
    def ask():
        command = [*sampan_command("ui"), "--no-open", "--kubeconfig", str(cluster.kubeconfig)]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=60, env=environment()
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    return ask


@pytest.fixture(scope="module")
def glass(cluster):
    """A namespace of our own: others use the cluster, too."""
    cluster.kubectl("apply", "-f", "-", stdin=READER)
    eventually(lambda: cluster.kubectl.exists("serviceaccount", "default", "-n", "glass"))
    yield "glass"
    cluster.kubectl("delete", "namespace", "glass")


@pytest.fixture
def page(browser, login_link, glass):
    page = log_in(browser, login_link)
    look_at(page, glass)
    yield page
    troubles = list(page.troubles)
    page.close()
    assert quiet(troubles) == []


def opened(browser, link):
    """Loaded again where the network changed before the page's first file had arrived: from there
    on the page sees to it itself."""
    page = browser.page(link)
    for _ in range(10):
        page.wait_for("document.readyState === 'complete' && !globalThis.leaving")
        if page.evaluate("Boolean(globalThis.sampanStarted)"):
            return page
        page.evaluate("globalThis.leaving = true; location.reload()")
    raise AssertionError(page.troubles)


def log_in(browser, login_link):
    """Again where the network changed between the code and its session: a code works once."""
    for _ in range(3):
        page = opened(browser, login_link())
        page.wait_for("['Overview', 'Log in'].includes(document.querySelector('h1')?.textContent)")
        if page.text("h1") == "Overview":
            return page
        page.close()
    raise AssertionError(page.troubles)


def look_at(page, namespace):
    page.evaluate(
        f"const field = document.querySelector('#namespace'); field.value = '{namespace}';"
        " field.dispatchEvent(new Event('change'))"
    )


@pytest.fixture
def pod(kubectl, glass):
    kubectl("apply", "-f", "-", stdin=json.dumps(POD))
    yield "seen"
    kubectl("delete", "pod", "seen", "-n", glass, "--now", "--ignore-not-found")


def test_a_pod_comes_says_something_is_talked_to_and_goes(page, kubectl):
    assert "code" not in page.evaluate("location.href")
    assert page.evaluate("document.cookie") == ""
    kubectl("apply", "-f", "-", stdin=json.dumps(POD))
    page.wait_for_text("Running 1")
    page.screenshot(PICTURES / "overview.png")
    page.go("#/table/-/v1/pods")
    page.wait_for("document.querySelector('tbody a')?.textContent === 'seen'")
    page.click("tbody a")
    page.wait_for_text("Create to Running in ")
    page.wait_for("document.querySelectorAll('.stations .reached').length === 6")
    page.wait_for_text("It waited longest for:")
    page.evaluate("document.querySelector('.waterfall details').open = true")
    for words in ("sandbox and network", "filter and score", "store commit", "Scores of the best"):
        page.wait_for_text(words)
    page.wait_for_text("What it waited for: the critical path")
    page.wait_for("document.querySelectorAll('.waterfall .critical').length >= 3")
    page.wait_for_text("hello from seen")
    # Escapes and markup in a log are characters.
    page.wait_for_text("␛]0;owned␇␛[31mred␛[2J" + EVIL)
    page.screenshot(PICTURES / "pod.png")
    page.wait_for("document.querySelector('#shell-command')")
    talk(page, "echo typed $((6 * 7)); ls /nowhere", "typed 42")
    page.wait_for_text("No such file or directory")
    use_the_terminal(page)
    page.wait_for_text("Memory in use")
    kubectl("delete", "pod", "seen", "-n", "glass", "--now")
    page.wait_for("document.querySelector('.state').textContent === 'Gone'")
    page.go("#/")
    page.wait_for_text("Running 0")
    # Logged out, the session is nobody's, and the link of this page was good once.
    token = page.evaluate("sessionStorage.getItem('sampan.token')")
    page.click("#who button")
    page.wait_for_text("Or paste a token")
    used = page.evaluate(
        "fetch('/api', {headers: {authorization: 'Bearer " + token + "'}}).then((it) => it.status)"
    )
    assert used == 401
    page.troubles[:] = quiet(page.troubles, "401")


def talk(page, line, expected):
    """A shell breaks off when the machine's network changes while it is opened: then again."""
    for _ in range(3):
        page.click("#terminal-title ~ p button")
        page.wait_for("document.activeElement.id === 'shell-line'")
        page.type(line)
        page.press("Enter")
        with contextlib.suppress(BrowserError):
            page.wait_for_text(expected, 30)
            return
    raise AssertionError(page.text())


def use_the_terminal(page):
    """Size, colours, keys, the other screen: as a program in the container sees them."""
    shown = "document.querySelector('.terminal').innerText"
    size = "document.querySelector('.terminal').dataset.size"
    columns, rows = page.evaluate(size).split("x")
    assert 100 < int(columns) < 200, "as many as there is room for"
    assert rows == "24"
    await_size(page, "24 " + columns, "wide")
    page.resize(700, 900)
    page.wait_for(f"{size} !== '{columns}x24'")
    await_size(page, "24 " + page.evaluate(size).split("x")[0], "narrow")
    page.resize(1280, 900)
    page.wait_for(f"{size} === '{columns}x24'")
    await_size(page, "24 " + columns, "wider")
    enter(page, r"clear; printf 'in \033[1;31mre''d\033[0m, \033[38;2;1;200;3mgreen\033[0m.\n'")
    page.wait_for_text("in red, green.")
    looks = page.evaluate(
        "[...document.querySelectorAll('.terminal span')].map((item) =>"
        " [item.textContent, item.className, item.style.color])"
    )
    assert ["red", "bold colour9", ""] in looks
    assert ["green", "", "rgb(1, 200, 3)"] in looks
    page.screenshot(PICTURES / "terminal.png")
    page.press("ArrowUp")
    page.press("ArrowUp")
    page.press("Enter")
    page.wait_for(f"{shown}.includes('it is wider.')")
    # A program on the other screen, and a key that it waits for; then the shell's lines are back.
    enter(
        page, r"printf '\033[?1049h\033[2J\033[5;9Hover%s' there; read -r _; printf '\033[?1049l'"
    )
    page.wait_for_text("overthere")
    assert "it is wider." not in page.evaluate(shown)
    page.press("Enter")
    page.wait_for(f"{shown}.includes('it is wider.') && !{shown}.includes('overthere')")
    # What went by is kept.
    enter(page, "clear; for i in $(seq 100); do echo line $i.; done")
    page.wait_for(f"{shown}.includes('line 100.') && {shown}.includes('line 1.')")
    enter(page, "exit 3")
    page.wait_for_text("exit code 3")
    page.wait_for("document.querySelector('#shell-line').disabled")


def await_size(page, size, word):
    """The program's own word for it; a size and keys go different ways there."""
    wait = f'until [ "$(stty size)" = "{size}" ]; do sleep 0.1; done'
    enter(page, f"{wait}; echo it is {word}''.")
    page.wait_for_text(f"it is {word}.")


def enter(page, line):
    page.type(line)
    page.press("Enter")


def test_what_others_wrote_is_never_markup(page, kubectl, pod):
    event = {
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": "evil", "namespace": "glass"},
        "involvedObject": {"kind": "Pod", "name": "seen", "namespace": "glass"},
        "reason": EVIL, "message": "\x1b[31m" + EVIL, "type": "Warning",
    }  # fmt: skip
    kubectl("apply", "-f", "-", stdin=json.dumps(event))
    kubectl("create", "configmap", "evil", "-n", "glass", f"--from-literal=key={EVIL}")
    try:
        for view in ("#/events", "#/pod/glass/seen", "#/object/-/v1/pods/glass/seen",
                     "#/object/-/v1/configmaps/glass/evil",
                     "#/object/-/v1/events/glass/evil"):  # fmt: skip
            page.go("#/kinds")
            page.wait_for("document.querySelector('h1').textContent === 'Kinds'")
            page.go(view)
            page.wait_for_text("onerror=window.hacked")
        # A path can be anything, too.
        page.go(f"#/pod/glass/{EVIL}")
        page.wait_for_text("There is no such pod")
        assert page.evaluate("typeof window.hacked") == "undefined"
        assert page.evaluate("document.querySelectorAll('main img').length") == 0
    finally:
        kubectl("delete", "event/evil", "configmap/evil", "-n", "glass")


HOSTILE_PAGE = """<title>waiting</title><script>
async function tried(what) {
  try { return String(await what()); } catch (error) { return error.name; }
}
(async () => {
  const found = {
    origin: self.origin,
    storage: await tried(() => sessionStorage.getItem("sampan.token")),
    cookie: await tried(() => document.cookie = "a=b"),
    worker: await tried(() => navigator.serviceWorker.register("worker.js", {scope: "/"})),
    secrets: await tried(() => fetch("/api/v1/namespaces/glass/secrets").then((it) => it.text())),
    page: await tried(() => fetch("/ui/").then((it) => it.text())),
    opened: await tried(() => open("/ui/").document.title),
  };
  document.title = JSON.stringify(found);
})();
</script>"""


def test_what_a_pod_serves_is_of_no_origin_of_ours(browser, kubectl, glass, cluster):
    """Whoever opens it with the browser's own credentials runs its script: it gets at nothing."""
    serve = 'mkdir /www; printf %s "$PAGE" > /www/index.html; cp /www/index.html'
    serve += " /www/worker.js; exec httpd -f -p 8080 -h /www"
    web = {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": glass},
        "spec": {"terminationGracePeriodSeconds": 0, "containers": [{
            "name": "c", "image": IMAGE, "command": ["sh", "-c", serve],
            "env": [{"name": "PAGE", "value": HOSTILE_PAGE}],
            "readinessProbe": {"tcpSocket": {"port": 8080}, "periodSeconds": 1}}]},
    }  # fmt: skip
    kubectl("apply", "-f", "-", stdin=json.dumps(web))
    kubectl("create", "rolebinding", "opener", "-n", glass, "--clusterrole=admin",
            f"--serviceaccount={glass}:default")  # fmt: skip
    kubectl("wait", "--for=condition=Ready", "pod/web", "-n", glass, "--timeout=60s")
    token = kubectl("create", "token", "default", "-n", glass).strip()
    server = kubeconfig.load(str(cluster.kubeconfig), {}, "").connection().server.rstrip("/")
    page = browser.page(f"{server}/ui/")
    page.wait_for("document.readyState === 'complete'")
    # As a client certificate would be: with everything that the browser asks this server.
    page.call("Network.setExtraHTTPHeaders", {"headers": {"Authorization": f"Bearer {token}"}})
    page.open(f"{server}/api/v1/namespaces/{glass}/pods/web:8080/proxy/index.html")
    page.wait_for("document.title.startsWith('{')")
    found = json.loads(page.evaluate("document.title"))
    page.close()
    kubectl("delete", "pod/web", "rolebinding/opener", "-n", glass)
    assert found["origin"] == "null"
    assert found["secrets"] == found["page"] == "TypeError", "no answer of another origin"
    assert found["storage"] == found["cookie"] == "SecurityError"
    assert found["worker"] in ("SecurityError", "TypeError")
    assert found["opened"] in ("SecurityError", "TypeError"), "no window of this origin either"


def test_yaml_is_yaml_and_says_who_owns_what(page):
    """As PyYAML reads it, whatever is in it."""
    texts = [
        "", " x", "x ", "yes", "null", "1", "1e3", "0x1f", "-", "- a", "a: b", "#", "a #b", "*a",
        "{", "[", "'", '"', "|", "a\nb", "a\nb\n", "\nb", "  a\n b", "a\n\n", "a\n", "long\n",
        "é", "\t", "%", "@", "2026-01-01", "12:30:45", "=", "~", "a:", "?", "a\u0007b", "a b",
        "x/y.z", "a\n\u0007b",
    ]  # fmt: skip
    fields = [
        {"manager": "a", "operation": "Apply", "fieldsV1": {
            "f:spec": {"f:list": {'k:{"name":"one"}': {".": {}, "f:port": {}}}, "f:atomic": {}}}},
        {"manager": "b", "operation": "Update", "fieldsV1": {"f:spec": {"f:set": {'v:"x"': {}}}}},
    ]  # fmt: skip
    spec = {
        "list": [{"name": "one", "port": 1}, {"name": "two", "port": 2}], "atomic": {"deep": [1]},
        "set": ["x", "y"], "texts": texts, "keyed": {text: text for text in texts},
        "nested": [[1, [2]], [], {}, [{"a": {}}]], "numbers": [0, -1, 1.5, True, None],
    }  # fmt: skip
    given = {"kind": "Odd", "metadata": {"name": "odd"}, "spec": spec}
    whole = {**given, "metadata": {"name": "odd", "managedFields": fields}}
    found = page.evaluate(
        f"import('/ui/yaml.js').then((yaml) => yaml.ownedLines({json.dumps(whole)}))"
    )
    text = "".join(f"{line['text']}\n" for line in found["lines"])
    assert yaml.safe_load(text) == given
    owners = {line["text"].strip(): line["owner"] for line in found["lines"]}
    assert (owners["port: 1"], owners["port: 2"], owners["- x"], owners['- "y"']) == (0, -1, 1, -1)
    assert owners["deep:"] == 0


def test_a_pods_status_is_the_word_that_kubectl_prints(page):
    pods = [given for given, _, _ in ROWS]
    words = page.evaluate(
        f"import('/ui/pods.js').then(({{statusOf}}) => {json.dumps(pods)}.map(statusOf))"
    )
    assert words == [word for _, _, word in ROWS]


LOOKS = {
    ("pods", "Running", "1/1"): "running", ("pods", "Running", "1/2"): "notready",
    ("pods", "Pending", "0/1"): "pending", ("pods", "ContainerCreating", "0/1"): "starting",
    ("pods", "Init:1/2", "0/1"): "starting", ("pods", "Init:CrashLoopBackOff", "0/1"): "failing",
    ("pods", "ImagePullBackOff", "0/1"): "failing", ("pods", "OOMKilled", "0/1"): "failed",
    ("pods", "Completed", "0/1"): "succeeded", ("pods", "Terminating", "1/1"): "terminating",
    ("nodes", "Ready,SchedulingDisabled", ""): "running", ("nodes", "NotReady", ""): "failed",
    ("deployments", "", "2/3"): "notready", ("persistentvolumeclaims", "Bound", ""): "running",
    ("configmaps", "", ""): "",
}  # fmt: skip


def test_a_row_has_the_colour_of_what_it_says(page):
    rows = [[kind, {"Status": status, "Ready": ready}] for kind, status, ready in LOOKS]
    asked = f"{json.dumps(rows)}.map((row) => lookOfRow(...row))"
    found = page.evaluate(f"import('/ui/pods.js').then(({{lookOfRow}}) => {asked})")
    assert dict(zip(LOOKS, found, strict=True)) == LOOKS


def test_who_may_little_sees_little(browser, kubectl, pod):
    kubectl("wait", "--for=condition=Ready", "pod/seen", "-n", "glass", "--timeout=60s")
    server = kubectl("config", "view", "-o", "jsonpath={.clusters[0].cluster.server}")
    path = "/api/v1/namespaces/glass/serviceaccounts/default/token"
    asked = json.dumps(
        {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    )
    token = json.loads(kubectl("create", "--raw", path, "-f", "-", stdin=asked))["status"]["token"]
    page = opened(browser, f"{server}/ui/")
    page.wait_for("document.activeElement.id === 'token'")
    page.type("nonsense")
    page.press("Enter")
    page.wait_for_text("This token is nobody's, or too old.")
    page.type(token)
    page.press("Enter")
    page.wait_for_text("system:serviceaccount:glass:default")
    page.wait_for_text("You may not list nodes here")
    page.wait_for_text("You may not list pods here")
    page.wait_for_text("You may not read /metrics.")
    look_at(page, "glass")
    page.wait_for_text("Running 1")
    page.go("#/pod/glass/seen")
    page.wait_for_text("hello from seen")
    page.wait_for_text("You may not run commands in this pod.")
    page.wait_for_text("You may not see it.")
    page.go("#/table/-/v1/secrets")
    page.wait_for_text("You may not list secrets here")
    page.go("#/object/-/v1/secrets/glass/none")
    page.wait_for_text("is forbidden")
    assert quiet(page.troubles, "403", "401") == []
    page.close()


BROKEN = {
    "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "broken", "namespace": "glass"},
    "spec": {"containers": [
        {"name": "main", "image": IMAGE, "command": ["true"],
         "env": [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "none", "key": "a"}}}]}
    ]},
}  # fmt: skip


def test_why_comes_first_and_what_to_do_is_offered(page, kubectl, glass):
    """A pod that cannot start: seen on the overview, explained on its page, deleted there."""
    kubectl("apply", "-f", "-", stdin=json.dumps(BROKEN))
    page.wait_for_text("Needs attention (1)")
    page.wait_for_text("glass/broken CreateContainerConfigError")
    page.wait_for_text('configmap "none" not found')  # the cause, before anybody opens it
    page.evaluate("document.activeElement.blur()")
    page.press("j")
    page.press("Enter")
    page.wait_for("document.querySelector('#why-title')")
    page.wait_for_text('configmap "none" not found')
    page.wait_for_text("What to do")
    assert page.text(".state") == 'CreateContainerConfigError: configmap "none" not found'
    top = page.evaluate("document.querySelector('#why-title').getBoundingClientRect().top")
    assert top < 600, "it is on the first screen"
    page.screenshot(PICTURES / "why.png")
    page.wait_for("document.querySelector('main .choices button:last-child')")
    assert page.text("main .choices").split() == ["Port-forward", "Edit", "Delete"], (
        "what the user may"
    )
    page.click("main .choices button:last-child")
    page.wait_for_text("sampan delete pods broken -n glass")
    page.click("dialog button[type=submit]")
    page.wait_for("document.querySelector('.state').textContent === 'Gone'")
    assert not kubectl.exists("pod", "broken", "-n", glass)


def test_tables_are_sorted_and_workloads_are_scaled(page, kubectl, fleet):
    kubectl("rollout", "status", "deployment/fleet", "-n", "glass", "--timeout=60s")
    page.go("#/object/apps/v1/deployments/glass/fleet")
    page.wait_for("document.querySelector('main .choices button')")
    assert page.text("main .choices").split() == ["Scale", "Restart", "Edit", "Delete"]
    page.click("main .choices button:first-child")
    page.wait_for("document.activeElement.id === 'replicas'")
    page.evaluate("document.querySelector('#replicas').value = '3'")
    page.click("dialog button[type=submit]")
    page.wait_for("!document.querySelector('dialog')")
    kubectl("rollout", "status", "deployment/fleet", "-n", "glass", "--timeout=60s")
    assert (
        kubectl("get", "deployment/fleet", "-n", "glass", "-o", "jsonpath={.spec.replicas}") == "3"
    )
    page.evaluate("document.activeElement.blur()")
    page.press("p")
    page.wait_for("document.querySelectorAll('tbody a').length === 3")
    page.wait_for(
        "[...document.querySelectorAll('tbody tr')].every((row) => row.className === 'running')"
    )
    assert "Node" in page.text("thead").split()
    names = "[...document.querySelectorAll('tbody a')].map((link) => link.textContent)"
    found = page.evaluate(names)
    page.click("thead th:first-child button")
    page.click("thead th:first-child button")
    page.wait_for("document.querySelector('thead th').getAttribute('aria-sort') === 'descending'")
    page.wait_for(f"({names})[0] === {json.dumps(max(found))}")
    page.press("/")
    assert page.evaluate("document.activeElement.id") == "search"
    page.evaluate("document.activeElement.blur()")
    page.press("?")
    page.wait_for_text("the next line of the table")
    page.press("Escape")
    page.wait_for("!document.querySelector('dialog')")


def visit(page, view, name):
    """It is there when it has its name: what was shown before is gone then."""
    page.go(view)
    page.wait_for(f"document.querySelector('h1').textContent === '{name}'")


def choose(page, title):
    page.wait_for(
        "[...document.querySelectorAll('main .choices button')]"
        f".some((button) => button.textContent === '{title}')"
    )
    page.evaluate(
        "[...document.querySelectorAll('main .choices button')]"
        f".find((button) => button.textContent === '{title}').click()"
    )
    page.wait_for("document.querySelector('dialog[open]')")


def agree(page):
    page.click("dialog button[type=submit]")
    page.wait_for("!document.querySelector('dialog')")


def test_workloads_are_restarted_and_objects_edited(page, kubectl, fleet):
    kubectl("rollout", "status", "deployment/fleet", "-n", "glass", "--timeout=60s")
    visit(page, "#/object/apps/v1/deployments/glass/fleet", "fleet")
    choose(page, "Restart")
    assert "sampan rollout restart deployments.apps/fleet -n glass" in page.text("dialog")
    agree(page)
    page.wait_for_text("Restart: done")
    template = "jsonpath={.spec.template.metadata.annotations}"
    assert "kubectl.kubernetes.io/restartedAt" in kubectl(
        "get", "deployment/fleet", "-n", "glass", "-o", template
    )
    kubectl("create", "configmap", "edited", "-n", "glass", "--from-literal=key=before")
    try:
        visit(page, "#/object/-/v1/configmaps/glass/edited", "edited")
        choose(page, "Edit")
        assert page.evaluate("document.activeElement.id") == "edited"
        assert "sampan replace -f -" in page.text("dialog")
        write_into_edited(page, "before", "after")
        agree(page)
        page.wait_for_text("key: after")
        data = ("get", "configmap/edited", "-n", "glass", "-o", "jsonpath={.data.key}")
        assert kubectl(*data) == "after"
        # What somebody else wrote meanwhile is not overwritten.
        choose(page, "Edit")
        kubectl("label", "configmap/edited", "-n", "glass", "by=somebody")
        write_into_edited(page, "after", "later")
        page.click("dialog button[type=submit]")
        page.wait_for_text("the object has been modified")
        page.press("Escape")
        page.wait_for("!document.querySelector('dialog')")
        assert kubectl(*data) == "after"
    finally:
        kubectl("delete", "configmap/edited", "-n", "glass")
    # What was replaced, and ways that nobody has noted yet: a restart's pods are new.
    page.troubles[:] = quiet(page.troubles, "409")


def write_into_edited(page, before, after):
    page.evaluate(
        "((field) => field.value = field.value.replace("
        f"'key: {before}', 'key: {after}'))(document.querySelector('#edited'))"
    )


def test_nodes_are_cordoned_and_ports_forwarded(page, kubectl, pod):
    kubectl("wait", "--for=condition=Ready", "pod/seen", "-n", "glass", "--timeout=60s")
    name = kubectl("get", "nodes", "-o", "jsonpath={.items[0].metadata.name}")
    closed = ("get", "node", name, "-o", "jsonpath={.spec.unschedulable}")
    visit(page, f"#/object/-/v1/nodes/-/{name}", name)
    try:
        choose(page, "Cordon")
        assert f"sampan cordon {name}" in page.text("dialog")
        agree(page)
        assert kubectl(*closed) == "true"
        choose(page, "Uncordon")
        assert f"sampan uncordon {name}" in page.text("dialog")
        agree(page)
        assert kubectl(*closed) == ""
    finally:
        kubectl("uncordon", name)
    page.wait_for_text("Memory in use")
    page.wait_for("document.querySelectorAll('main .spark').length === 2")
    visit(page, "#/table/-/v1/nodes", "nodes")
    titles = "[...document.querySelectorAll('thead th')].map((title) => title.textContent)"
    page.wait_for(f"({titles}).slice(-2).join() === 'CPU,Memory'")
    page.wait_for("/^[0-9]+Mi$/.test(document.querySelector('tbody tr').lastChild.textContent)")
    # How many there are is beside the name.
    page.wait_for_text("Nodes 1")
    visit(page, "#/object/-/v1/pods/glass/seen", "seen")
    choose(page, "Port-forward")
    assert "sampan port-forward pods/seen -n glass 8080:80" in page.text("dialog")
    assert page.evaluate("document.querySelector('dialog button[type=submit]')") is None
    page.press("Escape")


FLEET = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: fleet, namespace: glass}
spec:
  replicas: 2
  selector: {matchLabels: {app: fleet}}
  template:
    metadata: {labels: {app: fleet}}
    spec:
      terminationGracePeriodSeconds: 0
      containers: [{name: main, image: "%s", command: [sleep, "3600"]}]
"""


@pytest.fixture
def fleet(kubectl, glass):
    """Two pods of one Deployment."""
    kubectl("apply", "-f", "-", stdin=FLEET % IMAGE)
    yield "fleet"
    kubectl("delete", "deployment", "fleet", "-n", glass, "--cascade=foreground")


def test_it_can_be_used_without_a_mouse_on_a_phone_and_in_the_dark(page, pod, fleet, kubectl):
    kubectl("wait", "--for=condition=Ready", "pod/seen", "-n", "glass", "--timeout=60s")
    kubectl("rollout", "status", "deployment/fleet", "-n", "glass", "--timeout=60s")
    axe = (Path(axe_core_python.__file__).parent / "axe.min.js").read_text()
    views = {
        "#/": "Running 3", "#/events": "Started", "#/kinds": "configmaps",
        "#/table/-/v1/pods": "seen", "#/object/-/v1/pods/glass/seen": "kubelet",
        "#/pod/glass/seen": "hello from seen", "#/lesson/11": "The decision",
        "#/object/apps/v1/deployments/glass/fleet": "2 pods in ",
    }  # fmt: skip
    page.evaluate(axe)
    for scheme, width in (("light", 1280), ("dark", 390)):
        page.prefer(prefers_color_scheme=scheme, prefers_reduced_motion="reduce")
        page.resize(width, 800)
        for view, words in views.items():
            page.go(view)
            page.wait_for_text(words)
            found = page.evaluate(AXE)
            assert found == [], (view, scheme)
            across = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
            assert across[0] <= across[1], (view, across)
            page.screenshot(PICTURES / f"{scheme}{view.replace('/', '-').replace('#', '')}.png")
    page.go("#/")
    page.wait_for_text("Running 3")
    page.evaluate("document.activeElement.blur()")
    focused = set()
    for _ in range(40):
        page.press("Tab")
        focused.add(
            page.evaluate("document.activeElement.textContent || document.activeElement.id")
        )
    assert {"Overview", "Events", "Kinds", "namespace", "Log out"} <= focused
