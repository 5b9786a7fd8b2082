from sampan.apiserver.http.health import Health, version
from sampan.core.http.messages import Request


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
    assert "[-]shutdown failed: reason withheld" in text
    told = asked(health, "/readyz/shutdown")
    assert told == (500, "internal server error: process is shutting down\n")
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
    _, text = asked(health, "/livez", "exclude=nothing")
    assert 'warn: some health checks cannot be excluded: no matches for "nothing"\n' in text


def test_checks_have_upstreams_names_in_its_order():
    health = Health({"etcd": lambda: "", "informer-sync": lambda: ""}, started=True)
    _, text = asked(health, "/readyz", "verbose")
    titles = [line[3:].partition(" ")[0] for line in text.splitlines() if line.startswith("[")]
    assert titles[:4] == ["ping", "log", "etcd", "informer-sync"]
    assert "poststarthook/rbac/bootstrap-roles" in titles
    assert "autoregister-completion" in titles
    assert titles[-1] == "shutdown"
    assert "[+]informer-sync ok" not in asked(health, "/livez", "verbose")[1]


def test_results_are_counted():
    health = Health({"store": lambda: "disk full"}, started=True)
    asked(health, "/livez")
    asked(health, "/livez/ping")
    text = health.slis()
    assert 'kubernetes_healthcheck{name="store",type="livez"} 0\n' in text
    assert 'kubernetes_healthchecks_total{name="ping",status="success",type="livez"} 2\n' in text


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
