"""pods/proxy, services/proxy and nodes/proxy, to a real server in a real container [A7, A11]."""

import hashlib
import re
import urllib.error
import urllib.request

import pytest

from tests.support.parts.processes import eventually

pytestmark = [pytest.mark.containerd, pytest.mark.kubectl, pytest.mark.slow]

PODS = "/api/v1/namespaces/default/pods"
SERVICES = "/api/v1/namespaces/default/services"
WEB = r"""
apiVersion: v1
kind: Pod
metadata: {name: proxied, labels: {app: proxied}}
spec:
  terminationGracePeriodSeconds: 0
  containers:
  - name: main
    image: localhost/test/busybox:1
    ports: [{containerPort: 8080}]
    command:
    - sh
    - -c
    - |
      mkdir -p /www/cgi-bin /www/below
      echo hello >/www/hello.txt
      echo '<a href="/hello.txt">there</a>' >/www/index.html
      echo below >/www/below/index.html
      yes | head -c 2000000 >/www/big
      echo '#!/bin/sh' >/www/cgi-bin/echo
      echo 'printf "Content-type: text/plain\r\n\r\n"' >>/www/cgi-bin/echo
      echo 'echo "$REQUEST_METHOD $QUERY_STRING"; cat' >>/www/cgi-bin/echo
      chmod +x /www/cgi-bin/echo
      exec httpd -f -p 8080 -h /www
---
apiVersion: v1
kind: Service
metadata: {name: proxied}
spec:
  selector: {app: proxied}
  ports: [{name: http, port: 80, targetPort: 8080}]
"""


@pytest.fixture(scope="module", autouse=True)
def web(cluster):
    kubectl = cluster.kubectl
    kubectl.apply(WEB)
    kubectl("wait", "--for=condition=Ready", "pod/proxied", "--timeout=60s")
    ready = "jsonpath={.items[*].endpoints[*].conditions.ready}"
    chosen = ("-l", "kubernetes.io/service-name=proxied")
    eventually(lambda: kubectl("get", "endpointslices", *chosen, "-o", ready) == "true")
    eventually(lambda: kubectl("get", "--raw", f"{PODS}/proxied:8080/proxy/hello.txt"))
    yield
    kubectl("delete", "pod/proxied", "service/proxied", "--now")


@pytest.mark.parametrize(
    "path",
    [
        f"{PODS}/proxied:8080/proxy/hello.txt",
        f"{PODS}/proxied/proxy/hello.txt",  # the first port that is declared
        f"{PODS}/http:proxied:8080/proxy/hello.txt",
        f"{SERVICES}/proxied:http/proxy/hello.txt",
        f"{SERVICES}/proxied:80/proxy/hello.txt",
        f"{SERVICES}/http:proxied:80/proxy/hello.txt",
    ],
)
def test_a_pod_and_a_service_are_reached_by_every_name(kubectl, path):
    assert kubectl("get", "--raw", path) == "hello\n"


def test_a_node_is_reached(kubectl):
    node = kubectl("get", "nodes", "-o", "name").strip().removeprefix("node/")
    assert kubectl("get", "--raw", f"/api/v1/nodes/{node}/proxy/healthz") == "ok"
    assert "proxied" in kubectl("get", "--raw", f"/api/v1/nodes/{node}/proxy/pods")


def test_what_cannot_be_reached_is_said_so(kubectl):
    closed = kubectl.fails("get", "--raw", f"{PODS}/proxied:81/proxy/")
    assert "error trying to reach service" in closed
    assert 'pods "nosuch" not found' in kubectl.fails("get", "--raw", f"{PODS}/nosuch/proxy/")
    nobody = kubectl.fails("get", "--raw", f"{SERVICES}/proxied:nosuch/proxy/")
    assert 'no endpoints available for service "proxied"' in nobody


class NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_arguments, **_more):
        return None


@pytest.fixture(scope="module")
def door(cluster, tmp_path_factory):
    """`kubectl proxy`, as a browser uses it."""
    output = tmp_path_factory.mktemp("proxy") / "out"
    process = cluster.kubectl.background("proxy", "--port=0", output=output)
    try:
        started = re.compile(r"Starting to serve on (127\.0\.0\.1:\d+)")
        eventually(lambda: started.search(output.read_text()))
        yield "http://" + started.search(output.read_text())[1]
    finally:
        process.terminate()
        process.wait(60)


def asked(url, body=None, **headers):
    opener = urllib.request.build_opener(NoRedirect)
    request = urllib.request.Request(url, data=body, headers=headers)
    try:
        with opener.open(request, timeout=30) as answer:
            return answer.status, dict(answer.headers), answer.read()
    except urllib.error.HTTPError as error:
        return error.code, dict(error.headers), error.read()


@pytest.mark.parametrize("base", [f"{PODS}/proxied:8080/proxy", f"{SERVICES}/proxied:80/proxy"])
def test_a_browser_stays_behind_the_proxy(door, base):
    """links and redirects lead back through it"""
    status, _, page = asked(f"{door}{base}/")
    assert (status, page) == (200, f'<a href="{base}/hello.txt">there</a>\n'.encode())
    status, headers, _ = asked(f"{door}{base}?a=b")
    assert (status, headers["Location"]) == (301, f"{base}/?a=b")
    status, headers, _ = asked(f"{door}{base}/below")
    assert (status, headers["Location"]) == (302, f"{base}/below/")
    assert asked(f"{door}{base}/below/")[2] == b"below\n"


def test_bodies_and_refusals_pass_unchanged(door):
    base = f"{door}{SERVICES}/proxied:http/proxy"
    status, _, said = asked(f"{base}/cgi-bin/echo?a=b%20c", b"x" * 100_000)
    assert (status, said) == (200, b"POST a=b%20c\n" + b"x" * 100_000)
    status, _, page = asked(f"{base}/nosuch")
    assert status == 404
    assert b"Not Found" in page
    assert b'"Status"' not in page
    big = asked(f"{base}/big")[2]
    assert hashlib.md5(big).digest() == hashlib.md5(b"y\n" * 1_000_000).digest()
