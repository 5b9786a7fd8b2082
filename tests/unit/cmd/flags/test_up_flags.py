"""cmd/flags/up_flags.py: flags of `sampan up` become settings."""

import pytest

from sampan.cmd import main
from sampan.cmd.errors import CannotStart
from sampan.cmd.flags.parser import parser_of_verbs
from sampan.cmd.flags.up_flags import up_settings
from sampan.cmd.settings import IngressChoices, UpSettings


def settings_of(*flags):
    return up_settings(parser_of_verbs().parse_args(["up", *flags]))


def test_without_flags_up_has_the_defaults_of_its_settings():
    assert settings_of() == UpSettings()


def test_flags_become_settings():
    found = settings_of("--runtime", "simulated", "--nodes", "5", "--port", "0", "--keep-pods")
    assert found == UpSettings(runtime="simulated", nodes=5, port=0, keep_pods=True)


@pytest.mark.parametrize(
    ("flags", "wanted"),
    [
        ([], ("*",)),
        (["--controllers=*,-job"], ("*", "-job")),
        (["--controllers", "-job,*"], ("-job", "*")),
        (["--controllers", "-*"], ("-*",)),
        (["--controllers", "*", "--controllers=-job"], ("*", "-job")),
    ],
)
def test_controllers_are_named_in_every_spelling(flags, wanted):
    given = parser_of_verbs().parse_args(main._join(["up", *flags]))
    assert up_settings(given).controllers == wanted


def test_the_scheduler_may_be_left_out():
    assert settings_of().scheduler
    assert not settings_of("--scheduler=false").scheduler


def test_a_cluster_with_a_name_takes_a_free_port_unless_told():
    assert settings_of("--name", "dev").port == 0
    assert settings_of("--name", "dev", "--port", "7000").port == 7000
    assert settings_of().port == 6443


def test_use_writes_where_kubectl_looks(monkeypatch, tmp_path):
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path}/one:{tmp_path}/two")
    assert settings_of("--use").kubeconfig == f"{tmp_path}/one"
    with pytest.raises(CannotStart, match="give one"):
        settings_of("--use", "--kubeconfig", "x")


def test_a_virtual_clock_is_for_what_has_no_time_of_its_own():
    found = settings_of("--clock", "virtual")
    assert (found.clock, found.store, found.runtime) == ("virtual", "memory:", "simulated")
    assert settings_of("--clock", "virtual", "--runtime", "none").runtime == "none"
    for flags in (["--runtime", "cri"], ["--cri-socket", "/x"], ["--store", "sqlite:////x"]):
        with pytest.raises(CannotStart, match="--clock virtual"):
            settings_of("--clock", "virtual", *flags)


@pytest.mark.parametrize("words", [["--ingress"], ["--with", "ingress"]])
def test_ingresses_are_served_where_they_are_asked_for(words, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    found = settings_of(*words, "--ingress-ports", "0,8443")
    assert found.ingress == IngressChoices(0, 8443)
    assert found.manifests_to_apply == ()
    assert settings_of().ingress is None
    assert settings_of(*words).ingress in (
        IngressChoices(80, 443),
        IngressChoices(8080, 8443),
    )


def test_a_directory_called_ingress_is_a_directory(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ingress").mkdir()
    found = settings_of("--with", "ingress")
    assert found.ingress is None
    assert found.manifests_to_apply == ("ingress",)


def test_ports_without_an_ingress_mean_nothing():
    with pytest.raises(CannotStart, match="--ingress-ports is for --ingress"):
        settings_of("--ingress-ports", "80,443")
