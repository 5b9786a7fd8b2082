"""What we run on is what was chosen."""

import re
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).parents[2]


def name_of(requirement: str) -> str:
    found = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert found is not None, requirement
    return re.sub(r"[-_.]+", "-", found[0]).lower()


def pins() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pairs = [line.split("==") for line in lines if "==" in line]
    return {name_of(name): version.split(";")[0].strip() for name, version in pairs}


def needed() -> set[str]:
    """Everything that the package needs to run, and what that needs."""
    text = (ROOT / "pyproject.toml").read_text()
    block = re.search(r"^dependencies = \[(.*?)^\]", text, re.S | re.M)
    assert block is not None
    waiting = [name_of(one) for one in re.findall(r'"([^"]+)"', block[1])]
    found: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found.add(name)
        for requirement in metadata.distribution(name).requires or ():
            if "extra ==" not in requirement and not re.search(
                r"(python_version|platform)", requirement
            ):
                waiting.append(name_of(requirement))
    return found


def test_everything_that_runs_is_pinned_and_installed_as_pinned():
    wanted = pins()
    for name in sorted(needed()):
        assert name in wanted, f"{name} is not in constraints.txt"
        assert metadata.version(name) == wanted[name], name


def test_a_pin_is_one_version():
    for line in (ROOT / "constraints.txt").read_text().splitlines():
        assert not line.strip() or line.startswith("#") or re.fullmatch(r"[\w.-]+==[\w.]+", line), (
            line
        )
