import asyncio

import orjson
import pytest

from sampan.client.informer import Informers
from sampan.cmd.cluster.node.proxy_healthz import ProxyHealthz
from sampan.core.clock import SystemClock
from sampan.core.http.messages import Request
from sampan.core.metrics import Metrics
from sampan.network.services.proxy import ProxySettings, ServiceProxy
from sampan.network.services.ruleset import ProxyPlace
from tests.support.worlds.small_api import SmallApi

CLOCK, METRICS = SystemClock(), Metrics()


def proxy_of():
    informers = Informers(SmallApi(CLOCK), clock=CLOCK)
    return ServiceProxy(ProxySettings(ProxyPlace("t")), informers, CLOCK, METRICS)


def said(say, path):
    return asyncio.run(say(Request("GET", path, "", ())))


@pytest.mark.parametrize("path", ["/healthz", "/livez"])
def test_a_proxy_is_healthy_once_its_rules_are_there_and_until_they_are_refused(path):
    proxy = proxy_of()
    doors = ProxyHealthz(proxy, METRICS, CLOCK)
    assert said(doors.say_health, path).status == 503
    proxy.healthy, proxy.last_applied = True, 1_767_225_600.0
    answer = said(doors.say_health, path)
    assert answer.status == 200
    assert orjson.loads(answer.body)["lastUpdated"] == "2026-01-01T00:00:00Z"


def test_it_says_what_it_measures_and_how_it_works_and_nothing_else():
    doors = ProxyHealthz(proxy_of(), METRICS, CLOCK)
    assert b"kubeproxy_sync_proxy_rules" in said(doors.say_metrics, "/metrics").body
    assert said(doors.say_metrics, "/proxyMode").body == b"nftables"
    assert said(doors.say_metrics, "/healthz").status == 404
    assert said(doors.say_health, "/metrics").status == 404
