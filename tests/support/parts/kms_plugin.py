"""A key management service as a process of its own: `python -m tests.support.parts.kms_plugin
SOCKET STATE`.

Job: KMS v2 over a unix socket, with messages of its own making. Its key is named in the file STATE,
    how it is in STATE.healthz; what it was asked is noted in STATE.asked, a method per line.
"""

import hashlib
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import grpc
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_TEXT, _BYTES = 9, 12
_MESSAGES = {
    "StatusRequest": (),
    "StatusResponse": (("version", _TEXT), ("healthz", _TEXT), ("key_id", _TEXT)),
    "EncryptRequest": (("plaintext", _BYTES), ("uid", _TEXT)),
    "EncryptResponse": (("ciphertext", _BYTES), ("key_id", _TEXT), ("annotations", 11)),
    "DecryptRequest": (
        ("ciphertext", _BYTES), ("uid", _TEXT), ("key_id", _TEXT), ("annotations", 11),
    ),
    "DecryptResponse": (("plaintext", _BYTES),),
}  # fmt: skip
NOTE = "note.plugin.example.org"


def _classes() -> dict[str, Any]:
    file = descriptor_pb2.FileDescriptorProto(name="kms.proto", package="v2", syntax="proto3")
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for number, (field, kind) in enumerate(fields, 1):
            is_map = kind == 11
            made = message.field.add(name=field, number=number)
            made.type, made.label = cast("Any", kind), cast("Any", 3 if is_map else 1)
            if is_map:
                made.type_name = f".v2.{name}.AnnotationsEntry"
                entry = message.nested_type.add(name="AnnotationsEntry")
                entry.options.map_entry = True
                entry.field.add(name="key", number=1, type=_TEXT, label=1)
                entry.field.add(name="value", number=2, type=_BYTES, label=1)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    find = pool.FindMessageTypeByName
    return {name: message_factory.GetMessageClass(find(f"v2.{name}")) for name in _MESSAGES}


class Plugin:
    def __init__(self, state: Path) -> None:
        self._state, self._classes = state, _classes()

    def handler(self) -> Any:
        methods: dict[str, Any] = {
            method: grpc.unary_unary_rpc_method_handler(
                handle,
                request_deserializer=self._classes[f"{method}Request"].FromString,
                response_serializer=lambda message: message.SerializeToString(),
            )
            for method, handle in (
                ("Status", self._status), ("Encrypt", self._encrypt), ("Decrypt", self._decrypt),
            )
        }  # fmt: skip
        return grpc.method_handlers_generic_handler("v2.KeyManagementService", methods)

    def _note(self, method: str) -> None:
        with self._state.with_suffix(".asked").open("a") as file:
            file.write(f"{method}\n")

    def _key(self) -> str:
        return self._state.read_text().strip()

    def _status(self, _request: Any, _context: Any) -> Any:
        self._note("Status")
        health = self._state.with_suffix(".healthz")
        told = health.read_text() if health.exists() else "ok"
        return self._classes["StatusResponse"](version="v2", healthz=told, key_id=self._key())

    def _encrypt(self, request: Any, _context: Any) -> Any:
        self._note("Encrypt")
        nonce = os.urandom(12)
        sealed = nonce + _cipher(self._key()).encrypt(nonce, request.plaintext, b"")
        answer = self._classes["EncryptResponse"](ciphertext=sealed, key_id=self._key())
        answer.annotations[NOTE] = b"1"
        return answer

    def _decrypt(self, request: Any, context: Any) -> Any:
        self._note("Decrypt")
        if request.annotations[NOTE] != b"1":
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, "the note is missing")
        data = request.ciphertext
        plain = _cipher(request.key_id).decrypt(data[:12], data[12:], b"")
        return self._classes["DecryptResponse"](plaintext=plain)


def _cipher(key_id: str) -> AESGCM:
    return AESGCM(hashlib.sha256(key_id.encode()).digest())


def main(socket: str, state: Path) -> None:
    server = grpc.server(ThreadPoolExecutor(2))
    server.add_generic_rpc_handlers((Plugin(state).handler(),))
    server.add_insecure_port(f"unix://{socket}")
    server.start()
    print("ready", flush=True)
    server.wait_for_termination()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
