"""cmd/flags/control_plane_flags.py: flags of the control plane's processes become settings."""

import pytest

from sampan.cmd.errors import CannotStart
from sampan.cmd.flags import control_plane_flags as flags
from sampan.cmd.flags.parser import parser_of_verbs
from sampan.cmd.settings import ComponentSettings, ElectionChoices, ServingChoices
from sampan.store.etcd_url import parse_etcd_url


def given(*words):
    return parser_of_verbs().parse_args(list(words))


def test_the_flags_of_an_api_server_have_upstreams_names():
    found = flags.apiserver_settings(given(
        "apiserver", "--etcd-servers=https://a:2379,https://b:2379", "--etcd-cafile=ca",
        "--etcd-certfile=c", "--etcd-keyfile=k", "--secure-port=7443", "--bind-address=0.0.0.0",
        "--advertise-address=192.0.2.1", "--service-cluster-ip-range=10.5.0.0/16",
        "--service-node-port-range=31000-31999", "--tls-cert-file=t", "--client-ca-file=cc",
        "--service-account-signing-key-file=sa", "--authorization-mode=RBAC",
    ))  # fmt: skip
    assert found.store == "etcds://a:2379,b:2379/?cacert=ca&cert=c&key=k"
    assert (found.bind_address, found.port) == ("0.0.0.0", 7443)
    assert found.advertise_address == "192.0.2.1"
    assert (found.service_cidrs, found.node_ports) == (("10.5.0.0/16",), (31000, 31999))
    assert (found.files.certificate, found.files.client_ca) == ("t", "cc")
    assert found.files.token_key == "sa"
    assert found.security.authorization_modes == ("RBAC",)


def test_etcd_servers_are_a_store_that_can_be_opened():
    address = parse_etcd_url(flags.etcd_store(("http://a:1", "http://b:2/"), {}))
    assert (address.endpoints, address.prefix, address.tls) == (("a:1", "b:2"), "", None)
    assert parse_etcd_url(flags.etcd_store(("https://a:1",), {})).tls is not None


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ([], "--etcd-servers or --store"),
        (["--store=memory:", "--etcd-servers=http://a:1"], "give one of them"),
        (["--etcd-servers=a:1"], "http://HOST:PORT"),
        (["--etcd-servers=http://a:1,https://b:1"], "all https"),
        (["--etcd-servers=http://a:1", "--etcd-cafile=x"], "write https://"),
    ],
)
def test_a_server_that_does_not_know_its_store_says_so(words, why):
    with pytest.raises(CannotStart, match=why):
        flags.apiserver_settings(given("apiserver", *words))


@pytest.mark.parametrize("word", ["--service-cluster-ip-range=x", "--service-node-port-range=9-1"])
def test_a_wrong_range_is_named(word, capsys):
    with pytest.raises(SystemExit):
        given("apiserver", word)
    assert word.partition("=")[0] in capsys.readouterr().err


def test_what_is_not_chosen_is_left_to_the_configuration():
    found = flags.scheduler_settings(given("scheduler"))
    assert found.component == ComponentSettings(serving=ServingChoices(port=10259))
    found = flags.scheduler_settings(given(
        "scheduler", "--config=f", "--kubeconfig=k", "--leader-elect=false",
        "--leader-elect-lease-duration=30s", "--leader-elect-resource-name=mine",
    ))  # fmt: skip
    assert (found.config, found.component.kubeconfig) == ("f", "k")
    assert found.component.election == ElectionChoices(False, "", "mine", 30.0)


def test_controllers_listen_where_upstreams_do():
    found = flags.controllers_settings(given(
        "controllers", "--use-service-account-credentials=true", "--tls-cert-file=c",
        "--authorization-always-allow-paths=/healthz,/metrics",
    ))  # fmt: skip
    assert found.account_credentials
    serving = found.component.serving
    assert (serving.port, serving.certificate) == (10257, "c")
    assert serving.open_paths == ("/healthz", "/metrics")
