"""create configmap and create secret generic, tls, docker-registry.

Job: keys and bytes from the command line as objects.
"""

import base64
import json
import ssl

from sampan.api.objects import Obj
from sampan.cli.command import Command
from sampan.cli.common_flags import switch
from sampan.cli.create.generator import Kind, generator
from sampan.cli.create.keys import SOURCES, Keys
from sampan.cli.create.parts import metadata, single_name
from sampan.cli.errors import CliError
from sampan.cli.flags import Flag, Values
from sampan.cli.session import Session
from sampan.core import tls

_DOCKER_CONFIG = ".dockerconfigjson"
APPEND_HASH = switch("append-hash", "Append a hash of the content to its name.")


def _keys(session: Session, values: Values, what: str, name: str) -> dict[str, bytes]:
    if values["from-env-file"] and (values["from-file"] or values["from-literal"]):
        raise CliError("from-env-file cannot be combined with from-file or from-literal")
    keys = Keys(what, name)
    stdin = session.io.stdin.read() if "/dev/stdin" in " ".join(values["from-file"]) else None
    if what == "ConfigMap":
        keys.add_files(values["from-file"], stdin)
        keys.add_literals(values["from-literal"])
    else:
        keys.add_literals(values["from-literal"])
        keys.add_files(values["from-file"], stdin)
    keys.add_env_files(values["from-env-file"], session.io.environment)
    return keys.data


def _with_name(values: Values, obj: Obj) -> Obj:
    if values["append-hash"]:
        from sampan.cli.create.hashing import suffix

        obj["metadata"]["name"] += "-" + suffix(obj)
    return obj


def config_map(session: Session, values: Values) -> Obj:
    name = single_name(values)
    text: dict[str, str] = {}
    binary: dict[str, str] = {}
    for key, value in _keys(session, values, "ConfigMap", name).items():
        try:
            text[key] = value.decode()
        except UnicodeDecodeError:
            binary[key] = base64.b64encode(value).decode()
    obj: Obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata(name)}
    if text:
        obj["data"] = text
    if binary:
        obj["binaryData"] = binary
    return _with_name(values, obj)


def secret_object(name: str, data: dict[str, bytes], kind: str = "") -> Obj:
    obj: Obj = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata(name)}
    if data:
        obj["data"] = {key: base64.b64encode(value).decode() for key, value in data.items()}
    if kind:
        obj["type"] = kind
    return obj


def generic_secret(session: Session, values: Values) -> Obj:
    name = single_name(values)
    data = _keys(session, values, "Secret", name)
    return _with_name(values, secret_object(name, data, values.text("type")))


def tls_secret(session: Session, values: Values) -> Obj:
    name = single_name(values)
    if not values["cert"] or not values["key"]:
        raise CliError("key and cert must be specified")
    certificate, key = _pem(values.text("cert")), _pem(values.text("key"))
    _check_pair(certificate, key)
    data = {"tls.crt": certificate, "tls.key": key}
    return _with_name(values, secret_object(name, data, "kubernetes.io/tls"))


def _pem(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        text = (error.strerror or str(error)).lower()
        raise CliError(f"Cannot read file {path}, open {path}: {text}") from error


def _check_pair(certificate: bytes, key: bytes) -> None:
    if b"-----BEGIN" not in certificate:
        raise CliError("tls: failed to find any PEM data in certificate input")
    if b"-----BEGIN" not in key:
        raise CliError("tls: failed to find any PEM data in key input")
    try:
        tls.client_context(pair_data=(certificate, key), verify=False)
    except ssl.SSLError as error:
        if "KEY_VALUES_MISMATCH" in str(error):
            raise CliError("tls: private key does not match public key") from error
        raise CliError(f"tls: {error.reason or error}") from error


def registry_secret(session: Session, values: Values) -> Obj:
    name = single_name(values)
    sources = values["from-file"]
    user, password = values.text("docker-username"), values.text("docker-password")
    if not sources and not (user and password and values["docker-server"]):
        raise CliError(
            "either --from-file or the combination of --docker-username, --docker-password and "
            "--docker-server is required"
        )
    if sources:
        keys = Keys("Secret", name)
        keys.add_files([one if "=" in one else f"{_DOCKER_CONFIG}={one}" for one in sources])
        data = keys.data
    else:
        entry = {"username": user, "password": password}
        if values["docker-email"]:
            entry["email"] = values["docker-email"]
        entry["auth"] = base64.b64encode(f"{user}:{password}".encode()).decode()
        text = json.dumps({"auths": {values["docker-server"]: entry}}, separators=(",", ":"))
        data = {_DOCKER_CONFIG: text.encode()}
    return _with_name(values, secret_object(name, data, "kubernetes.io/dockerconfigjson"))


CONFIG_MAP = generator(
    "configmap",
    "configmap NAME [--from-file=[key=]source] [--from-literal=key1=value1] [--dry-run=server|client|none] [options]",
    "Create a config map from a local file, directory or literal value",
    config_map,
    Kind("configmaps", "configmap", aliases=("cm",)),
    (*SOURCES, APPEND_HASH),
)
SECRET = Command(
    "secret",
    "create secret (docker-registry | generic | tls) [options]",
    "Create a secret using a specified subcommand",
    children=(
        generator("docker-registry", "secret docker-registry NAME --docker-username=user --docker-password=password --docker-email=email [--docker-server=string] [--from-file=[key=]source] [--dry-run=server|client|none] [options]",
                  "Create a secret for use with a Docker registry", registry_secret,
                  Kind("secrets", "secret", colon=""),
                  (APPEND_HASH,
                   Flag("docker-email", usage="Email for Docker registry."),
                   Flag("docker-password", usage="Password for Docker registry authentication."),
                   Flag("docker-server", default="https://index.docker.io/v1/", usage="Server location for Docker registry."),
                   Flag("docker-username", usage="Username for Docker registry authentication."),
                   SOURCES[0])),
        generator("generic", "secret generic NAME [--type=string] [--from-file=[key=]source] [--from-literal=key1=value1] [--dry-run=server|client|none] [options]",
                  "Create a secret from a local file, directory, or literal value", generic_secret,
                  Kind("secrets", "secret", colon=""),
                  (*SOURCES, APPEND_HASH, Flag("type", usage="The type of secret to create."))),
        generator("tls", "secret tls NAME --cert=path/to/cert/file --key=path/to/key/file [--dry-run=server|client|none] [options]",
                  "Create a TLS secret", tls_secret,
                  Kind("secrets", "secret", colon=""),
                  (APPEND_HASH, Flag("cert", usage="Path to PEM encoded public key certificate."),
                   Flag("key", usage="Path to private key associated with given certificate."))),
    ),
)  # fmt: skip
