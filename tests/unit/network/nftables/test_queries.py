import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

SOURCES = str(Path(__file__).parents[4] / "src")


@pytest.mark.containerd
def test_everybody_s_chains_and_changes_are_heard_of():
    """Needs root and nft; the rules of a network namespace of its own."""
    script = textwrap.dedent(
        """
        import subprocess
        from sampan.network.nftables.queries import BaseChain, WrittenRules, base_chains

        def nft(script):
            subprocess.run(["nft", "-f", "-"], input=script, text=True, check=True)

        assert base_chains() == []
        nft('''
        add table inet theirs
        add chain inet theirs plain
        add chain inet theirs on { type filter hook forward priority 0; policy drop; }
        add table ip6 ours
        add chain ip6 ours in { type filter hook input priority 0; policy accept; }
        ''')
        found = {BaseChain("inet", "theirs", "on", 2, 0), BaseChain("ip6", "ours", "in", 1, 1)}
        assert set(base_chains()) == found, base_chains()
        written = WrittenRules.now()
        base_chains()
        assert written.are_the_last()
        nft("add rule inet theirs plain accept")
        assert not written.are_the_last()
        """
    )
    subprocess.run(
        ["unshare", "--net", sys.executable, "-c", script],
        env={"PYTHONPATH": SOURCES, "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
        check=True,
    )
