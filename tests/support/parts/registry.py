"""A real docker-registry on loopback, and a way to push an archive to it.

Job: serve images to containerd in tests, over plain HTTP on 127.0.0.1.
"""

import base64
import hashlib
import json
import shutil
import socket
import tarfile
import urllib.error
import urllib.request
from pathlib import Path

from sampan.core.fast_dataclass import dataclass
from tests.support.parts.processes import Program


@dataclass(frozen=True, slots=True)
class Login:
    """Who may use a registry. docker-registry takes passwords as bcrypt only."""

    user: str
    password: str
    hashed: str

    def header(self) -> str:
        return "Basic " + base64.b64encode(f"{self.user}:{self.password}".encode()).decode()


ROBOT = Login(
    "robot", "open sesame", "$2b$04$abcdefghijklmnopqrstuu/LVz6MZlItEy42I2juLihZ66HnQx/cy"
)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Registry:
    """Started by the constructor; `address` is what goes in front of image names."""

    def __init__(self, root: Path, login: Login | None = None) -> None:
        binary = shutil.which("docker-registry")
        assert binary, "docker-registry is not installed: make test installs it"
        self.address = f"127.0.0.1:{free_port()}"
        self.login = login
        config = root / "registry.yml"
        config.write_text(
            "version: 0.1\n"
            "log: {level: error}\n"
            f"storage: {{filesystem: {{rootdirectory: {root / 'registry'}}}}}\n"
            f"http: {{addr: '{self.address}'}}\n" + self._access(root)
        )
        self._program = Program([binary, "serve", str(config)], root / "registry.log")
        self._program.wait_until(self._answers)

    def push(self, archive: Path, name: str, tag: str) -> str:
        """Push the one image of an OCI archive; returns its reference."""
        with tarfile.open(archive) as tar:
            index = json.loads(_member(tar, "index.json"))
            manifest = _blob(tar, index["manifests"][0])
            described = json.loads(manifest)
            blobs = [_blob(tar, item) for item in (described["config"], *described["layers"])]
        for blob in blobs:
            self._push_blob(name, blob)
        media_type = index["manifests"][0]["mediaType"]
        self._send("PUT", f"/v2/{name}/manifests/{tag}", manifest, media_type)
        return f"{self.address}/{name}:{tag}"

    def _access(self, root: Path) -> str:
        if self.login is None:
            return ""
        users = root / "htpasswd"
        users.write_text(f"{self.login.user}:{self.login.hashed}\n")
        return f"auth: {{htpasswd: {{realm: test, path: {users}}}}}\n"

    def stop(self) -> None:
        self._program.stop()

    def _push_blob(self, name: str, blob: bytes) -> None:
        location = self._send("POST", f"/v2/{name}/blobs/uploads/", b"", "")["Location"]
        joint = "&" if "?" in location else "?"
        self._send("PUT", f"{location}{joint}digest={_digest(blob)}", blob, "")

    def _send(self, method: str, target: str, body: bytes, media_type: str) -> dict[str, str]:
        url = target if target.startswith("http") else f"http://{self.address}{target}"
        headers = {"Content-Type": media_type or "application/octet-stream"}
        if self.login is not None:
            headers["Authorization"] = self.login.header()
        request = urllib.request.Request(url, data=body, method=method, headers=headers)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return dict(answer.headers.items())

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://{self.address}/v2/", timeout=1):
                return True
        except urllib.error.HTTPError as refusal:
            refusal.close()
            return refusal.code == 401  # it wants to know who we are
        except (urllib.error.URLError, OSError):
            return False


def _digest(blob: bytes) -> str:
    return f"sha256:{hashlib.sha256(blob).hexdigest()}"


def _blob(tar: tarfile.TarFile, descriptor: dict[str, str]) -> bytes:
    return _member(tar, "blobs/" + descriptor["digest"].replace(":", "/"))


def _member(tar: tarfile.TarFile, name: str) -> bytes:
    file = tar.extractfile(name)
    assert file is not None, name
    return file.read()
