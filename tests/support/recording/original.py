"""An API server that is asked, whoever made it: by its kubeconfig, one request after the other."""

import base64
import http.client
import re
import ssl
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import orjson
import yaml

_WARNING = re.compile(r'299 - "((?:[^"\\]|\\.)*)"')


class Original:
    def __init__(self, kubeconfig: str) -> None:
        document = yaml.safe_load(Path(kubeconfig).read_text())
        cluster, user = document["clusters"][0]["cluster"], document["users"][0]["user"]
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.load_cert_chain(
            *(_file(user, key, Path(kubeconfig)) for key in ("client-certificate", "client-key"))
        )
        self._host = str(urlsplit(cluster["server"]).netloc)
        self._context = context
        self._connection = http.client.HTTPSConnection(self._host, context=context)
        self._kinds: dict[tuple[str, str], tuple[str, str, bool]] = {}

    def ask(
        self, method: str, path: str, body: Any = None, **headers: str
    ) -> tuple[int, bytes, http.client.HTTPMessage]:
        given = {"accept": "application/json", "user-agent": "golden/1.0"}
        if body is not None:
            given["content-type"] = "application/json"
            body = body if isinstance(body, bytes | str) else orjson.dumps(body)
        given |= {key.lower().replace("_", "-"): value for key, value in headers.items()}
        try:
            self._connection.request(method, path, body=body, headers=given)
            reply = self._connection.getresponse()
            return reply.status, reply.read(), reply.headers
        except http.client.RemoteDisconnected as error:  # it panicked
            self._connection = http.client.HTTPSConnection(self._host, context=self._context)
            return 0, orjson.dumps(f"<{error}>"), http.client.HTTPMessage()

    def get(self, path: str, **headers: str) -> Any:
        return orjson.loads(self.ask("GET", path, **headers)[1])

    def create(self, manifest: dict[str, Any]) -> tuple[int, Any, list[str]]:
        """A strict dry run."""
        path, plural, namespaced = self._place(manifest["apiVersion"], manifest["kind"])
        if namespaced:
            namespace = (manifest.get("metadata") or {}).get("namespace") or "default"
            path = f"{path}/namespaces/{namespace}"
        code, body, headers = self.ask(
            "POST", f"{path}/{plural}?dryRun=All&fieldValidation=Strict", manifest
        )
        warnings = [
            text for header in headers.get_all("Warning") or () for text in _WARNING.findall(header)
        ]
        return code, orjson.loads(body), warnings

    def serves(self, manifest: dict[str, Any]) -> bool:
        return (manifest["apiVersion"], manifest["kind"]) in self._served()

    def _place(self, api_version: str, kind: str) -> tuple[str, str, bool]:
        return self._served()[api_version, kind]

    def _served(self) -> dict[tuple[str, str], tuple[str, str, bool]]:
        if not self._kinds:
            versions = ["/api/v1"]
            for group in self.get("/apis")["groups"]:
                versions += [f"/apis/{version['groupVersion']}" for version in group["versions"]]
            for path in versions:
                for row in self.get(path)["resources"]:
                    if "/" not in row["name"]:
                        known = path.removeprefix("/apis/").removeprefix("/api/")
                        self._kinds[known, row["kind"]] = (path, row["name"], row["namespaced"])
        return self._kinds


def _file(user: dict[str, str], key: str, beside: Path) -> str:
    if key in user:
        return str(beside.parent / user[key])
    with tempfile.NamedTemporaryFile(delete=False) as file:
        file.write(base64.b64decode(user[f"{key}-data"]))
    return file.name
