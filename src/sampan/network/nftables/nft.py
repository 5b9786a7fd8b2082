"""The `nft` program: rules go through it as text.

Job: run a script in one transaction; say why not where it cannot be.
Invariant: what we write to a table of ours is signed.
Invariant: it never waits for longer than ten seconds.
"""

import shutil
import subprocess
from collections.abc import Mapping

_SECONDS = 10.0
# Made and removed in every script of ours: whoever watches the table knows it by that.
SIGNATURE = "sampan-signature"


class NftError(Exception):
    """nft is not there, or refused the script; the message says why."""


class NftRefused(NftError):
    """The script is to blame."""


def run(script: str) -> None:
    """All of it or nothing."""
    if shutil.which("nft") is None:
        raise NftError("the program nft is not there (package nftables)")
    try:
        done = subprocess.run(
            ["nft", "-f", "-"], input=script, text=True, capture_output=True,
            timeout=_SECONDS, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NftError(f"nft could not be run: {error}") from error
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise NftRefused(f"nft refuses the rules: {lines[0]}")


def write(family: str, table: str, script: str) -> None:
    """A script about a table of ours, which is there then."""
    run(_signed(family, table, script))


def _signed(family: str, table: str, script: str) -> str:
    chain = f"chain {family} {table} {SIGNATURE}"
    return f"{script}\nadd {chain}\ndelete {chain}\n"


def write_together(table: str, scripts: Mapping[str, str]) -> None:
    """Those of the tables of this name, by family: one transaction, as each takes some 10 ms."""
    run("".join(_signed(family, table, script) for family, script in scripts.items()))


def load(family: str, table: str, script: str) -> None:
    """A script that adds to what is there; where what is there is in its way (of another version),
    it goes first."""
    try:
        write(family, table, script)
    except NftError:
        replace(family, table, script)


def replace(family: str, table: str, script: str) -> None:
    """A script that makes the table, instead of all that is in it."""
    write(family, table, f"add table {family} {table}\ndelete table {family} {table}\n{script}")
