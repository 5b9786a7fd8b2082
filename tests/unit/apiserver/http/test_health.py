from sampan.apiserver.http.health import Health, version
from sampan.core.http import Request


def asked(health, path, query=""):
    reply = health.reply(Request("GET", path, query, {}))
    return reply.status, reply.body.decode()


def test_ready_only_between_start_and_stop():
    health = Health({"store": lambda: ""})
    assert asked(health, "/readyz")[0] == 500
    health.started = True
    assert asked(health, "/readyz") == (200, "ok")
    health.stopping = True
    status, text = asked(health, "/readyz")
    assert status == 500
    assert "[-]shutdown failed: process is shutting down" in text
    assert asked(health, "/livez") == (200, "ok")


def test_checks_are_named_can_be_asked_for_and_left_out():
    health = Health({"store": lambda: "disk full"}, started=True)
    assert asked(health, "/livez/store")[0] == 500
    assert asked(health, "/livez/ping") == (200, "ok")
    assert asked(health, "/livez/nothing")[0] == 404
    status, text = asked(health, "/healthz", "verbose&exclude=store")
    assert status == 200
    assert text.splitlines()[0] == "[+]ping ok"
    assert "[+]store excluded: ok" in text
    assert text.endswith("healthz check passed\n")


def test_health_paths_are_told_from_others():
    health = Health({})
    assert health.is_path("/readyz/ping")
    assert not health.is_path("/readyzz")


def test_the_version_is_kubernetes_and_honest():
    shown = version()
    assert (shown["major"], shown["minor"]) == ("1", "35")
    assert shown["gitVersion"].startswith("v1.35.")
    assert "sampan" in shown["gitVersion"]
    assert shown["compiler"] == "cpython"
