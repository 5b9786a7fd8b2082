"""cmd/entry.py: whose verb is it, and what does that cost."""

import os
import subprocess
import sys

import pytest

from sampan.cli.flags import parse
from sampan.cli.session import GLOBAL_FLAGS, Io, Session
from sampan.client.kubeconfig import Connection
from sampan.cmd import entry, main
from sampan.cmd.flags.parser import parser_of_verbs
from sampan.testing.kit.kubeconfigs import kubeconfig_text

HEAVY = (
    "asyncio",
    "argparse",
    "numpy",
    "grpc",
    "sampan.apiserver",
    "sampan.kubelet",
    "sampan.store",
    "http.server",
)


def test_a_verb_of_the_cluster_goes_to_the_cluster(capsys):
    assert entry.main(["version"]) == 0
    assert capsys.readouterr().out.startswith("sampan ")


def test_any_other_verb_goes_to_the_client(capsys):
    assert entry.main(["run", "--image=x"]) == 1
    assert "sampan run -h" in capsys.readouterr().err


def test_every_verb_of_the_cluster_is_known_to_the_entry():
    [action] = [one for one in parser_of_verbs()._actions if getattr(one, "choices", None)]
    # `config` is the client's, but for `config explain`.
    assert set(action.choices) - {"config"} == set(entry.CLUSTER_VERBS)


@pytest.mark.parametrize(("word", "meant"), [("sttaus", "status"), ("creat", "create")])
def test_a_mistyped_verb_is_guessed(capsys, word, meant):
    assert entry.main([word]) == 1
    assert f"\t{meant}" in capsys.readouterr().err


def test_completion_knows_the_verbs_of_both(capsys):
    assert entry.main(["__complete", "d"]) == 0
    assert {"delete", "describe", "down", "doctor"} <= set(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["get", "--name", ""], ["one", "other"]),
        (["get", "pods", "--name=ot"], ["other"]),
        (["--name", "on"], ["one"]),
        (["expose", "pod", "web", "--name", ""], []),  # its own flag: of the Service
        (["get", "--namespace", ""], []),
        (["get", "--name", "one", "--output", "js"], ["json", "jsonpath"]),
    ],
)
def test_completion_knows_clusters_wherever_one_can_be_named(
    capsys, monkeypatch, tmp_path, words, found
):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.chdir(tmp_path)
    for name in ("one", "other"):
        (tmp_path / "sampan" / name).mkdir(parents=True)
        for file in ("format", "kubeconfig"):
            (tmp_path / "sampan" / name / file).write_text("{}")
    assert entry.main(["__complete", *words]) == 0
    shown = capsys.readouterr().out.split()[:-1]
    assert shown[: len(found)] == found
    assert bool(shown) == bool(found)


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["get", "run", "apply", "logs", "debug", "proxy"])
def test_a_client_verb_imports_nothing_of_the_cluster(verb):
    code = (
        f"import sys; from sampan.cmd.entry import main; main([{verb!r}, '--help']); "
        "print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    imported = done.stderr.split()
    assert not [name for name in imported if name.startswith(HEAVY)]


@pytest.mark.slow
def test_a_request_needs_none_of_the_slow_libraries(tmp_path):
    """C3, C4: each of them would take longer than the request."""
    kubeconfig = tmp_path / "config"
    kubeconfig.write_text("clusters:\n- name: a\n  cluster:\n    server: https://127.0.0.1:1\n")
    code = (
        "import sys; from sampan.cmd.entry import main; "
        "main(['get', 'pods', '--cluster=a']); "
        "print(*sys.modules, file=sys.stderr)"
    )
    command = [sys.executable, "-S", "-c", f"import sys; sys.path[:0] = {sys.path!r}; {code}"]
    env = {"KUBECONFIG": str(kubeconfig)}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=env)
    assert "The connection to the server 127.0.0.1:1 was refused" in done.stderr
    slow = {
        "orjson", "yaml", "dataclasses", "inspect", "pathlib", "tempfile", "urllib.parse", "uuid",
        "encodings.idna", "textwrap", "argparse", "asyncio",
    }  # fmt: skip
    imported = slow & set(done.stderr.split())
    assert not imported


def test_a_usage_error_is_one_sentence(capsys):
    with pytest.raises(SystemExit) as ended:
        main.main(["up", "--detatch"])
    told = capsys.readouterr().err
    assert ended.value.code == 2
    assert "did you mean --detach?" in told
    assert len(told.splitlines()) == 2


def test_a_flag_of_another_verb_is_not_offered_as_what_was_meant(capsys):
    with pytest.raises(SystemExit):
        main.main(["controllers", "--cert-dir", "pki"])
    told = capsys.readouterr().err
    assert "unrecognized arguments: --cert-dir pki" in told
    assert "mean --cert-dir" not in told


def test_a_node_name_that_is_none_is_refused_before_anything_starts(capsys):
    with pytest.raises(SystemExit):
        main.main(["up", "--node-name", "Bad_Name!"])
    assert "is no node's name" in capsys.readouterr().err


def test_without_a_kubeconfig_the_cluster_of_sampan_up_is_meant(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("KUBECONFIG", "")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sampan-data").mkdir()
    ours = tmp_path / "sampan-data" / "kubeconfig"
    ours.write_text(CONFIG.format(server="https://127.0.0.1:1", name="ours"))
    assert entry.main(["cluster-info"]) == 1
    told = capsys.readouterr().err
    assert "127.0.0.1:1" in told
    assert "`sampan up --detach --use` starts one" in told
    # What `sampan config` writes is where kubectl reads it; and a kubeconfig there wins.
    monkeypatch.setenv("KUBECONFIG", "")
    assert entry.main(["config", "current-context"]) == 1
    (tmp_path / ".kube").mkdir()
    theirs = CONFIG.format(server="https://127.0.0.1:2", name="theirs")
    (tmp_path / ".kube" / "config").write_text(theirs)
    capsys.readouterr()
    assert entry.main(["cluster-info"]) == 1
    assert "127.0.0.1:2" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "server", "has_pair"),
    [
        ([], "https://127.0.0.1:1", True),
        (["--token=t"], "https://127.0.0.1:1", False),
        (["--username=u", "--password=p"], "https://127.0.0.1:1", False),
        (["--server=https://127.0.0.1:2"], "https://127.0.0.1:2", False),
        (["-s", "https://127.0.0.1:2", "--token=t"], "https://127.0.0.1:2", False),
        (["--as=jane"], "https://127.0.0.1:1", True),
    ],
)
def test_a_cluster_that_was_found_lends_its_administrator_to_no_other(
    tmp_path, flags, server, has_pair
):
    """Neither to another server nor beside another identity [C4]."""
    found = tmp_path / "kubeconfig"
    theirs = Connection("https://127.0.0.1:1", ca=b"a", certificate=b"c", key=b"k")
    found.write_text(kubeconfig_text(theirs))
    io = Io(environment={"HOME": str(tmp_path)})
    session = Session("sampan", "sampan", io, found_kubeconfig=str(found))
    session.values = parse(GLOBAL_FLAGS, flags)
    assert session.connection.server == server
    assert (session.connection.pair is not None) == has_pair
    assert (session.connection.ca is not None) == (server == theirs.server)
    # What the user wrote down himself is mixed with flags, as kubectl does.
    io = Io(environment={"HOME": str(tmp_path), "KUBECONFIG": str(found)})
    session = Session("sampan", "sampan", io)
    session.values = parse(GLOBAL_FLAGS, flags)
    assert session.connection.server == server
    assert session.connection.pair is not None


CONFIG = """\
apiVersion: v1
kind: Config
clusters: [{{name: {name}, cluster: {{server: "{server}"}}}}]
contexts: [{{name: {name}, context: {{cluster: {name}, user: ""}}}}]
current-context: {name}
"""


def test_a_snapshot_may_be_compared_in_short_but_not_by_kubectl(capsys, monkeypatch, tmp_path):
    assert entry.main(["diff", "before", "--data-dir", str(tmp_path)]) == 1
    assert "there is no sampan cluster" in capsys.readouterr().err
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    assert entry._run(["diff", "before"], "kubectl")[0] != 0
    assert "no sampan cluster" not in capsys.readouterr().err


LEAVING = """
import atexit, sys
from sampan.cmd import entry
entry.LARGE = int(sys.argv[1])
atexit.register(print, "taken apart")
sys.argv = ["sampan", "list"]
sys.exit(entry.main())
"""


@pytest.mark.slow
@pytest.mark.parametrize(("large", "ends"), [("0", False), ("1000000000", True)])
def test_a_process_with_much_in_its_memory_leaves_at_once(tmp_path, large, ends):
    """what a cluster of 150 000 pods has would take longer to take apart than to stop"""
    found = subprocess.run(
        [sys.executable, "-c", LEAVING, large],
        capture_output=True,
        text=True,
        env={**os.environ, "HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path)},
        check=True,
    )
    assert ("taken apart" in found.stdout) == ends
