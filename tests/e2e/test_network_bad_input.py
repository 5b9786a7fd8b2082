"""What a machine may have in the way of the pods' network: each is said in one line [W1, W5]."""

import shutil
import subprocess

import pytest

from tests.support.parts.machines import machines
from tests.support.parts.sampan_process import RUNTIME, SampanProcess, environment, sampan_command

pytestmark = [pytest.mark.containerd, pytest.mark.kubectl, pytest.mark.slow]
FIREWALL = """
table inet theirs {
  chain pass { type filter hook forward priority 0; policy drop; }
}
"""


def test_a_network_in_the_service_range_a_taken_bridge_and_another_firewall(tmp_path):
    with machines(1) as [machine]:
        machine.run("ip", "addr", "add", "10.96.5.1/24", "dev", "eth0")
        machine.run("ip", "link", "add", "sampan0", "type", "bridge")
        machine.run("nft", FIREWALL)
        cluster = SampanProcess(tmp_path, "--runtime", RUNTIME, where=machine.where).up()
        try:
            said = cluster.output.read_text()
            assert "this machine's network 10.96.5.0/24 overlaps the Services' 10.96.0.0/12" in said
            assert "another firewall (nftables chain inet theirs pass)" in said
            assert "what comes from and goes to sampan1" in said
        finally:
            cluster.stop()
            cluster.reset()
        links = machine.run("ip", "-br", "link")
        assert "sampan0" in links  # somebody else's
        assert "sampan1" not in links


OLD = "unexpected map; a real node needs nft 1.0 and Linux 5.13, or newer"
# As on a machine that has iptables only: what cannot be run is not there.
WITHOUT_NFT = ("unshare", "--mount", "sh", "-c", 'mount --bind /dev/null "$0" && exec "$@"')


def test_what_a_machine_lacks_ends_the_start_with_one_line(tmp_path):
    old = tmp_path / "bin" / "nft"
    old.parent.mkdir()
    old.write_text("#!/bin/sh\necho 'Error: syntax error, unexpected map' >&2\nexit 1\n")
    old.chmod(0o755)
    given = environment()
    found_first = {**given, "PATH": f"{old.parent}:{given['PATH']}"}
    with machines(1) as [machine]:

        def start(*flags, first=(), env=given):
            command = sampan_command("up", "--runtime", RUNTIME, "--port", "0", *flags)
            done = subprocess.run(
                [*machine.where, *first, *command, "--data-dir", str(tmp_path / "d")],
                env=env, capture_output=True, text=True, timeout=120, check=False,
            )  # fmt: skip
            said = done.stdout + done.stderr
            assert done.returncode == 1, said
            assert "Traceback" not in said
            reset = [*machine.where, *sampan_command("reset", "--yes")]
            subprocess.run([*reset, "--data-dir", str(tmp_path / "d")], env=given, check=True,
                           capture_output=True)  # fmt: skip
            assert "sampan" not in machine.run("ip", "-br", "link")
            return said

        assert OLD in start(env=found_first)
        assert OLD in start("--network", "none", env=found_first)
        masked = (*WITHOUT_NFT, shutil.which("nft"))
        assert "a real node needs nft (apt package nftables)" in start(first=masked)
        assert "no free pod subnet in" in start("--cluster-cidr", "198.51.100.0/24")
        machine.run("sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1")
        said = start("--ip-families", "ipv4,ipv6")
        assert "IPv6 is switched off on this machine" in said
        assert "--ip-families ipv4 does without" in said
