import base64
import os
import stat

import pytest
import yaml

from sampan.client.kubeconfig import Connection, KubeconfigError, load
from sampan.client.kubeconfig_file import write_kubeconfig

ADMIN = Connection("https://h:1", ca=b"CA", certificate=b"C", key=b"K")


def config(name, server="https://a:6443", user=None, cluster=None, current=True):
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": {"server": server, **(cluster or {})}}],
        "users": [{"name": name, "user": user or {}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        **({"current-context": name} if current else {}),
    }


def written(path, document):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(document))
    return str(path)


def test_an_explicit_path_beats_the_environment_and_home(tmp_path):
    """[C4]"""
    one = written(tmp_path / "one", config("one", "https://one:1"))
    two = written(tmp_path / "two", config("two", "https://two:2"))
    written(tmp_path / ".kube" / "config", config("home", "https://home:3"))
    home = str(tmp_path)
    assert load(one, {"KUBECONFIG": two}, home).connection().server == "https://one:1"
    assert load("", {"KUBECONFIG": two}, home).connection().server == "https://two:2"
    assert load("", {}, home).connection().server == "https://home:3"


def test_files_in_the_environment_are_merged_and_the_first_wins(tmp_path):
    """[C4]"""
    one = written(tmp_path / "one", config("same", "https://one:1", current=False))
    two = written(tmp_path / "two", config("same", "https://two:2"))
    three = written(tmp_path / "three", config("other", "https://three:3"))
    merged = load("", {"KUBECONFIG": f"{one}:{tmp_path}/missing:{two}:{three}"}, "/nowhere")
    assert merged.current_context == "same"
    assert merged.connection().server == "https://one:1"
    assert merged.connection(context="other").server == "https://three:3"
    assert merged.files == (one, two, three)


def test_certificates_come_from_data_or_from_files_beside_the_config(tmp_path):
    """[C4]"""
    (tmp_path / "ca.pem").write_bytes(b"CA")
    (tmp_path / "me.key").write_bytes(b"KEY")
    user = {
        "client-certificate-data": base64.b64encode(b"CERT").decode(),
        "client-key": "me.key",
    }
    path = written(
        tmp_path / "c", config("x", user=user, cluster={"certificate-authority": "ca.pem"})
    )
    connection = load(path, {}, "").connection()
    assert (connection.ca, connection.certificate, connection.key) == (b"CA", b"CERT", b"KEY")


def test_a_token_beats_a_token_file(tmp_path):
    path = written(tmp_path / "c", config("x", user={"token": "t", "tokenFile": "f"}))
    connection = load(path, {}, "").connection()
    assert (connection.token, connection.token_file) == ("t", "")
    path = written(tmp_path / "d", config("x", user={"tokenFile": "f"}))
    assert load(path, {}, "").connection().token_file == str(tmp_path / "f")


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (config("x", user={"exec": {"command": "aws"}}), "invalid apiVersion"),
        (config("x", user={"auth-provider": {"name": "gcp"}}), "auth-provider"),
        (config("x", user={"client-key-data": "aGk="}), "together"),
        (config("x", user={"client-certificate": "nope", "client-key": "nope"}), "unable to read"),
        (
            config("x", cluster={"certificate-authority-data": "%%%"}),
            "illegal base64 data at input byte 0",
        ),
        (config("x", server=""), "no server"),
        ({**config("x"), "current-context": "z"}, 'context "z" does not exist'),
        ({"kind": "Config"}, "no current-context"),
        ({"kind": "Pod"}, 'no kind "Pod" is registered'),
        ({"clusters": [{"name": 5}]}, "number into Go struct field NamedCluster.clusters.name"),
        ({"clusters": [{"name": "a"}, {"name": "a"}]}, 'duplicate name "a" in list'),
        ([], "cannot unmarshal array into Go value"),
        (
            config("x", cluster={"insecure-skip-tls-verify": True, "certificate-authority": "a"}),
            "unable to read",
        ),
    ],
)
def test_what_cannot_be_used_is_said_clearly(tmp_path, document, message):
    """[C4]"""
    path = written(tmp_path / "c", document)
    with pytest.raises(KubeconfigError, match=message):
        load(path, {}, "").connection()


def test_a_missing_file_is_an_error_only_when_it_was_named(tmp_path):
    with pytest.raises(KubeconfigError, match="no such file"):
        load(str(tmp_path / "no"), {}, "")
    with pytest.raises(KubeconfigError, match="no kubeconfig was found"):
        load("", {}, str(tmp_path)).connection()


def test_what_is_written_can_be_read_and_is_private(tmp_path):
    path = tmp_path / "deep" / "config"
    for _ in range(2):
        write_kubeconfig(path, ADMIN)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    connection = load(str(path), {}, "").connection()
    assert (connection.server, connection.ca) == ("https://h:1", b"CA")
    assert (connection.certificate, connection.key) == (b"C", b"K")
    assert [one.name for one in path.parent.iterdir()] == ["config"]


def test_writing_keeps_the_contexts_of_others(tmp_path):
    path = tmp_path / "config"
    written(path, config("mine", "https://mine:1"))
    write_kubeconfig(path, ADMIN)
    merged = load(str(path), {}, "")
    assert merged.connection().server == "https://h:1"
    assert merged.connection(context="mine").server == "https://mine:1"


PLUGIN = "client.authentication.k8s.io/v1"


def plugin(tmp_path, text):
    program = tmp_path / "plugin"
    program.write_text(f"#!/bin/sh\n{text}\n")
    program.chmod(0o755)
    return {"exec": {"apiVersion": PLUGIN, "command": str(program), "env": [
        {"name": "WHO", "value": "me"}]}}  # fmt: skip


def test_a_credential_plugin_says_who_we_are(tmp_path):
    """[C4]"""
    answer = (
        f'{{"apiVersion":"{PLUGIN}","kind":"ExecCredential","status":{{"token":"of-\'$WHO\'"}}}}'
    )
    user = plugin(tmp_path, f"echo '{answer}'")
    path = written(tmp_path / "c", config("x", user=user))
    assert load(str(path), {"PATH": "/bin"}, "/").connection().token == "of-me"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("exit 3", "failed with exit code 3"),
        ("echo hi", "decoding stdout"),
        (f'echo \'{{"apiVersion":"{PLUGIN}","status":{{}}}}\'', "didn't return a token"),
    ],
)
def test_a_credential_plugin_that_fails_is_named(tmp_path, text, message):
    """[C4]"""
    path = written(tmp_path / "c", config("x", user=plugin(tmp_path, text)))
    with pytest.raises(KubeconfigError, match=message):
        load(str(path), {"PATH": "/bin"}, "/").connection()


def test_a_proxy_is_kept_with_the_connection(tmp_path):
    """[C4]"""
    path = written(tmp_path / "c", config("x", cluster={"proxy-url": "http://p:1"}))
    assert load(str(path), {}, "/").connection().proxy_url == "http://p:1"


def test_a_trap_beside_the_file_is_not_written_into(tmp_path):
    """An attack, where the directory is somebody else's: a link under the temporary name."""
    target = tmp_path / "victim"
    target.write_text("precious")
    (tmp_path / f".config.{os.getpid()}").symlink_to(target)
    write_kubeconfig(tmp_path / "config", ADMIN)
    assert target.read_text() == "precious"
    assert (tmp_path / "config").stat().st_mode & 0o777 == 0o600
