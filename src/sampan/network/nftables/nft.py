"""The `nft` program: rules go through it as text.

Job: run a script in one transaction; say why not where it cannot be.
Invariant: it never waits for longer than ten seconds.
"""

import shutil
import subprocess

_SECONDS = 10.0


class NftError(Exception):
    """nft is not there, or refused the script; the message says why."""


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
        raise NftError(f"nft refuses the rules: {lines[0]}")


def load(family: str, table: str, script: str) -> None:
    """A script that adds to what is there; where what is there is in its way (of another version),
    it goes first."""
    try:
        run(script)
    except NftError:
        run(f"add table {family} {table}\ndelete table {family} {table}\n{script}")
