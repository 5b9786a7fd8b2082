"""apiserver/subresources/late_handlers.py: what is not generic, before its handlers are loaded."""

import subprocess
import sys

from sampan.apiserver.subresources.handlers import handlers
from sampan.apiserver.subresources.late_handlers import OWN, LateHandlers

LOADED = """
import sys
import sampan.apiserver.server
print(*sys.modules)
"""


def test_every_handler_is_found():
    found = LateHandlers(None, {}).handler_of
    for key in handlers(None):
        assert found(*key) is not None, key


def test_only_these_have_handlers_for_their_objects_or_status():
    assert {name for name, part, _ in handlers(None) if part in ("", "status")} == OWN


def test_what_is_generic_has_none():
    async def measured(scope, user, call):
        raise AssertionError

    found = LateHandlers(None, {("nodes.metrics.k8s.io", "", "list"): measured}).handler_of
    assert found("pods", "", "create") is None
    assert found("pods", "status", "patch") is None
    assert found("pods", "eviction", "get") is None
    assert found("nodes.metrics.k8s.io", "", "list") is measured


def test_an_api_server_is_made_without_pod_validation_and_openapi():
    done = subprocess.run(
        [sys.executable, "-c", LOADED], capture_output=True, text=True, check=True
    )
    loaded = set(done.stdout.split())
    assert "sampan.apiserver.subresources.late_handlers" in loaded
    late = ("subresources.handlers", "openapi.endpoints", "openapi.documents")
    assert not loaded & {
        "sampan.api.validation.pod",
        *(f"sampan.apiserver.{name}" for name in late),
    }
