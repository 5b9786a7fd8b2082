from sampan.core.health_checks import HealthChecks, is_health_path, nothing_wrong
from sampan.core.http.messages import Request


def asked(checks, path, query=""):
    reply = HealthChecks(lambda _kind: checks).reply(Request("GET", path, query, {}))
    return reply.status, reply.body.decode()


def test_what_is_wrong_is_withheld_unless_its_check_is_asked_for():
    checks = {"ping": nothing_wrong, "lease": lambda: "it ran out"}
    status, text = asked(checks, "/healthz")
    assert (status, text) == (
        500, "[+]ping ok\n[-]lease failed: reason withheld\nhealthz check failed\n",
    )  # fmt: skip
    assert asked(checks, "/healthz/lease") == (500, "internal server error: it ran out\n")
    assert asked(checks, "/healthz", "exclude=lease") == (200, "ok")


def test_each_path_has_its_checks():
    health = HealthChecks(lambda kind: {"only-" + kind: nothing_wrong})
    assert health.reply(Request("GET", "/livez/only-livez", "", {})).status == 200
    assert health.reply(Request("GET", "/livez/only-readyz", "", {})).status == 404
    assert 'kubernetes_healthcheck{name="only-livez",type="livez"} 1' in health.slis()


def test_other_paths_are_not_of_health():
    assert is_health_path("/livez/ping")
    assert not is_health_path("/livezz")
    assert not is_health_path("/metrics")
