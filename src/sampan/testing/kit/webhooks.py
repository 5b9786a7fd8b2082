"""Functions of a test as admission webhooks of its cluster.

Job: an HTTPS server in a thread of the test's process; one webhook configuration per function.
Invariant: what a function raises is a refusal that says so; the server ends with the cluster.
"""

import json
import ssl
import threading
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from sampan.api.objects import Obj
from sampan.client.blocking import BlockingClient
from sampan.cmd.cluster.pki import Pki
from sampan.core.fast_dataclass import dataclass
from sampan.testing.kit.spec import CannotStart

# Of the request of an AdmissionReview. None or True: allowed; False or a text: refused, with it;
# a dict: allowed, and this is the object from now on.
Function = Callable[[Obj], object]
CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
FORM = "webhooks= is {'pods': function, 'deployments.apps': …}, or Webhooks of sampan.testing"


@dataclass(frozen=True, slots=True)
class Webhook:
    function: Function
    resources: Sequence[str]  # plurals; with their group where it matters: deployments.apps
    operations: Sequence[str] = ("CREATE", "UPDATE")
    failure_policy: str = "Fail"
    timeout_seconds: int = 10


def webhooks_of(chosen: Mapping[str, Function] | Iterable[Webhook]) -> list[Webhook]:
    """Raises CannotStart."""
    if isinstance(chosen, Mapping):
        found = [Webhook(function, (resource,)) for resource, function in chosen.items()]
    else:
        found = [*chosen] if isinstance(chosen, list | tuple) else []
    if not all(isinstance(each, Webhook) and callable(each.function) for each in found):
        raise CannotStart(FORM)
    if not found and chosen:
        raise CannotStart(FORM)
    return found


class WebhookServer:
    def __init__(self, keys: Pki, webhooks: Sequence[Webhook]) -> None:
        self._keys, self._webhooks = keys, webhooks
        handler = type("Handler", (_Handler,), {"webhooks": webhooks})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(keys.certificate("apiserver"), keys.key("apiserver"))
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.daemon = True
        self._thread.start()

    def register(self, api: BlockingClient) -> None:
        port, bundle = self._server.server_address[1], b64encode(self._keys.ca.read_bytes())
        for number, webhook in enumerate(self._webhooks):
            url = f"https://127.0.0.1:{port}/{number}"
            client = {"url": url, "caBundle": bundle.decode()}
            api.json("POST", CONFIGURATIONS, body=_configuration(number, webhook, client))

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _configuration(number: int, webhook: Webhook, client: Obj) -> Obj:
    groups = [resource.partition(".")[2] or "*" for resource in webhook.resources]
    rules = [
        {"apiGroups": [group], "apiVersions": ["*"], "operations": [*webhook.operations],
         "resources": [resource.partition(".")[0]], "scope": "*"}
        for group, resource in zip(groups, webhook.resources, strict=True)
    ]  # fmt: skip
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": f"sampan-test-{number}"},
        "webhooks": [{
            "name": f"webhook-{number}.sampan.test", "clientConfig": client, "rules": rules,
            "admissionReviewVersions": ["v1"], "sideEffects": "None",
            "failurePolicy": webhook.failure_policy, "timeoutSeconds": webhook.timeout_seconds,
        }],
    }  # fmt: skip


class _Handler(BaseHTTPRequestHandler):
    webhooks: Sequence[Webhook] = ()

    def do_POST(self) -> None:
        length = int(self.headers.get("content-length", 0))
        review: Obj = json.loads(self.rfile.read(length))
        webhook = self.webhooks[int(self.path.strip("/").partition("?")[0])]
        answer = json.dumps(_review(review, webhook.function)).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # its parent's word
        """Nobody reads it."""


def _review(review: Obj, function: Function) -> Obj:
    response: Obj = {"uid": review["request"]["uid"], "allowed": True}
    try:
        found = function(review["request"])
    except (ArithmeticError, AssertionError, LookupError, TypeError, ValueError) as error:
        found = f"{type(error).__name__}: {error}"
    if found is False or isinstance(found, str):
        message = found or "refused by the test's webhook"
        response |= {"allowed": False, "status": {"message": message}}
    elif isinstance(found, dict):
        patch = json.dumps([{"op": "replace", "path": "", "value": found}]).encode()
        response |= {"patchType": "JSONPatch", "patch": b64encode(patch).decode()}
    return {"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response}
