"""Tasks › Inject Data Into Applications, and Managing Secrets, walked on real containers."""

import base64
import json

import pytest

from tests.e2e.tasks.objects import pod

pytestmark = [pytest.mark.containerd, pytest.mark.kubectl, pytest.mark.slow]
page = pytest.mark.page
INJECT = "tasks/inject-data-application"
SECRETS = "tasks/configmap-secret"


# printenv, which this busybox has not.
PRINT = 'for name in "$@"; do env | sed -n "s/^$name=//p"; done'


def output(reader, name, *command, **fields):
    """What a pod prints that runs once."""
    reader.run_pod(name, *command, until="Succeeded", restartPolicy="Never", **fields)
    return reader.logs(name)


@page(f"{INJECT}/define-command-argument-container")
def test_a_command_and_its_arguments(reader):
    given = {"command": ["sh", "-c", PRINT, "sh"], "args": ["HOSTNAME", "KUBERNETES_PORT"]}
    shown = output(reader, "command-demo", container_fields=given)
    assert shown.splitlines()[0] == "command-demo"
    assert shown.splitlines()[1].startswith("tcp://")
    message = {
        "env": [{"name": "MESSAGE", "value": "hello world"}], "command": ["echo"],
        "args": ["$(MESSAGE)"],
    }  # fmt: skip
    assert output(reader, "expanded", container_fields=message) == "hello world\n"


@page(f"{INJECT}/define-environment-variable-container")
@page(f"{INJECT}/define-interdependent-environment-variables")
def test_variables_and_variables_in_variables(reader):
    variables = [
        {"name": "SERVICE_PORT", "value": "80"}, {"name": "SERVICE_IP", "value": "172.17.0.1"},
        {"name": "UNCHANGED_REFERENCE", "value": "$(PROTOCOL)://$(SERVICE_IP):$(SERVICE_PORT)"},
        {"name": "PROTOCOL", "value": "https"},
        {"name": "SERVICE_ADDRESS", "value": "$(PROTOCOL)://$(SERVICE_IP):$(SERVICE_PORT)"},
        {"name": "ESCAPED_REFERENCE", "value": "$$(PROTOCOL)://$(SERVICE_IP):$(SERVICE_PORT)"},
    ]  # fmt: skip
    names = ("UNCHANGED_REFERENCE", "SERVICE_ADDRESS", "ESCAPED_REFERENCE")
    shown = output(
        reader,
        "dependent-envars",
        "sh",
        "-c",
        PRINT,
        "sh",
        *names,
        container_fields={"env": variables},
    )
    assert shown.splitlines() == [
        "$(PROTOCOL)://172.17.0.1:80", "https://172.17.0.1:80", "$(PROTOCOL)://172.17.0.1:80",
    ]  # fmt: skip


@page(f"{INJECT}/environment-variable-expose-pod-information")
def test_the_pods_fields_as_variables(reader):
    def field(name, path):
        return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}

    limits = {"resourceFieldRef": {"containerName": "main", "resource": "limits.memory"}}
    variables = [
        field("MY_POD_NAME", "metadata.name"), field("MY_POD_NAMESPACE", "metadata.namespace"),
        field("MY_NODE_NAME", "spec.nodeName"), field("MY_POD_IP", "status.podIP"),
        {"name": "MY_MEM_LIMIT", "valueFrom": limits},
    ]  # fmt: skip
    fields = {"env": variables, "resources": {"limits": {"memory": "64Mi"}}}
    reader.run_pod("dapi-envars-fieldref", container_fields=fields)
    shown = dict(
        line.split("=", 1) for line in reader.exec("dapi-envars-fieldref", "env").splitlines()
    )
    found = reader.get("pod", "dapi-envars-fieldref")
    assert shown["MY_POD_NAME"] == "dapi-envars-fieldref"
    assert shown["MY_POD_NAMESPACE"] == reader.namespace
    assert shown["MY_NODE_NAME"] == found["spec"]["nodeName"]
    assert shown["MY_POD_IP"] == found["status"]["podIP"]
    assert shown["MY_MEM_LIMIT"] == str(64 * 1024 * 1024)


@page(f"{INJECT}/downward-api-volume-expose-pod-information")
def test_labels_as_a_file_that_follows(reader):
    items = [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]
    request = {"containerName": "main", "resource": "requests.cpu", "divisor": "1m"}
    items.append({"path": "cpu_request", "resourceFieldRef": request})
    volumes = [{"name": "podinfo", "downwardAPI": {"items": items}}]
    mount = {
        "volumeMounts": [{"name": "podinfo", "mountPath": "/etc/podinfo"}],
        "resources": {"requests": {"cpu": "125m"}},
    }
    name = "kubernetes-downwardapi-volume-example"
    reader.run_pod(name, labels={"zone": "us-est-coast"}, volumes=volumes, container_fields=mount)
    assert reader.exec(name, "cat", "/etc/podinfo/labels") == 'zone="us-est-coast"'
    assert reader.exec(name, "cat", "/etc/podinfo/cpu_request") == "125"
    reader("label", "pod", name, "rack=rack-22")
    reader.sees(lambda: 'rack="rack-22"' in reader.exec(name, "cat", "/etc/podinfo/labels"), 100)


@page(f"{INJECT}/distribute-credentials-secure")
def test_credentials_as_files_and_as_variables(reader):
    literals = ("--from-literal=username=my-app", "--from-literal=password=39528$vdg7Jb")
    reader("create", "secret", "generic", "test-secret", *literals)
    volume = {"secretName": "test-secret", "defaultMode": 0o400}
    mount = {"volumeMounts": [{"name": "s", "mountPath": "/etc/secret-volume", "readOnly": True}]}
    reader.run_pod(
        "secret-test-pod", volumes=[{"name": "s", "secret": volume}], container_fields=mount
    )
    assert reader.exec("secret-test-pod", "cat", "/etc/secret-volume/password") == "39528$vdg7Jb"
    mode = reader.exec("secret-test-pod", "stat", "-L", "-c", "%a", "/etc/secret-volume/username")
    assert mode == "400\n"
    everything = {"envFrom": [{"secretRef": {"name": "test-secret"}}]}
    assert (
        output(reader, "envfrom", "sh", "-c", PRINT, "sh", "username", container_fields=everything)
        == "my-app\n"
    )


@page(f"{SECRETS}/managing-secret-using-kubectl")
def test_secrets_by_kubectl(reader, folder):
    (folder / "username.txt").write_text("admin")
    (folder / "password.txt").write_text("S!B\\*d$zDsb=")
    files = (f"--from-file={folder / 'username.txt'}", f"--from-file={folder / 'password.txt'}")
    reader("create", "secret", "generic", "db-user-pass", *files)
    assert "password.txt:  12 bytes" in reader("describe", "secret", "db-user-pass")
    data = reader.field("secret db-user-pass", r".data.password\.txt")
    assert base64.b64decode(data) == b"S!B\\*d$zDsb="
    reader("delete", "secret", "db-user-pass")


@page(f"{SECRETS}/managing-secret-using-config-file")
def test_secrets_by_a_manifest(reader):
    written = {
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "mysecret"}, "type": "Opaque",
        "data": {"username": "YWRtaW4="}, "stringData": {"username": "administrator"},
    }  # fmt: skip
    reader.apply(written)
    assert base64.b64decode(reader.field("secret mysecret", ".data.username")) == b"administrator"
    reader.apply({**written, "immutable": True})
    refused = reader.fails("patch", "secret", "mysecret", "-p", '{"stringData":{"username":"x"}}')
    assert "field is immutable when `immutable` is set" in refused


@page(f"{SECRETS}/managing-secret-using-kustomize")
@page("tasks/manage-kubernetes-objects/kustomization")
def test_generators_and_patches_of_kustomize(reader, folder):
    (folder / "kustomization.yaml").write_text(
        json.dumps({
            "secretGenerator": [{"name": "database-creds", "literals": ["username=admin"]}],
            "configMapGenerator": [{"name": "settings", "literals": ["FOO=Bar"]}],
            "namePrefix": "dev-",
        })
    )  # fmt: skip
    said = reader("apply", "-k", str(folder))
    [secret] = [line.split()[0] for line in said.splitlines() if line.startswith("secret/")]
    assert secret.startswith("secret/dev-database-creds-")
    assert base64.b64decode(reader.field(secret, ".data.username")) == b"admin"
    assert "unchanged" in reader("apply", "-k", str(folder))
    reader("delete", "-k", str(folder))


@page("tutorials/configuration/updating-configuration-via-a-configmap")
@page("tutorials/configuration/configure-redis-using-configmap")
def test_a_config_map_is_changed_under_a_running_pod(reader):
    reader("create", "configmap", "sport", "--from-literal=sport=football")
    volume = {"name": "config-volume", "configMap": {"name": "sport"}}
    mount = {"volumeMounts": [{"name": "config-volume", "mountPath": "/etc/config"}]}
    reader.run_pod("configmap-volume", volumes=[volume], container_fields=mount)
    assert reader.exec("configmap-volume", "cat", "/etc/config/sport") == "football"
    reader("patch", "configmap", "sport", "-p", '{"data":{"sport":"cricket"}}')
    reader.sees(
        lambda: reader.exec("configmap-volume", "cat", "/etc/config/sport") == "cricket", 100
    )
    fixed = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "company"}}
    reader.create({**fixed, "data": {"name": "ACME"}, "immutable": True})
    refused = reader.fails("patch", "configmap", "company", "-p", '{"data":{"name":"x"}}')
    assert "field is immutable when `immutable` is set" in refused


@page("tutorials/configuration/pod-sidecar-containers")
def test_a_sidecar_starts_first_and_ends_last(reader):
    shared = [{"name": "logs", "emptyDir": {}}]
    mount = [{"name": "logs", "mountPath": "/opt"}]
    sidecar = {
        "name": "logshipper", "image": "localhost/test/busybox:1", "restartPolicy": "Always",
        "command": ["sh", "-c", "touch /opt/logs.txt; tail -F /opt/logs.txt"],
        "volumeMounts": mount,
    }  # fmt: skip
    found = pod(
        "sidecar", "sh", "-c", "ls /opt/logs.txt && echo logging >> /opt/logs.txt && sleep 1",
        container_fields={"volumeMounts": mount}, initContainers=[sidecar], volumes=shared,
        restartPolicy="Never",
    )  # fmt: skip
    reader.create(found)
    reader.sees_phase("sidecar", "Succeeded")
    assert reader.logs("sidecar", "-c", "logshipper") == "logging\n"
