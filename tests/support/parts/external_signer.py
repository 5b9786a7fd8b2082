"""A signer of tokens as a process of its own: `python -m tests.support.parts.external_signer SOCKET
STATE`.

Job: ExternalJWTSigner v1 over a unix socket, with messages of its own making. STATE is a file of
    JSON: `keys`, the names of its keys, of which the first signs; `hidden`, those that discovery
    does not show; `most`, `again`, `header`. What it was asked is noted in STATE.asked.
"""

import base64
import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import grpc
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, timestamp_pb2

_TEXT, _BYTES, _FLAG, _NUMBER, _MESSAGE = 9, 12, 8, 3, 11
_MESSAGES: dict[str, tuple[tuple[str, int, str], ...]] = {
    "SignJWTRequest": (("claims", _TEXT, ""),),
    "SignJWTResponse": (("header", _TEXT, ""), ("signature", _TEXT, "")),
    "FetchKeysRequest": (),
    "Key": (("key_id", _TEXT, ""), ("key", _BYTES, ""), ("exclude_from_oidc_discovery", _FLAG, "")),
    "FetchKeysResponse": (
        ("keys", _MESSAGE, ".v1.Key"), ("data_timestamp", _MESSAGE, ".google.protobuf.Timestamp"),
        ("refresh_hint_seconds", _NUMBER, ""),
    ),
    "MetadataRequest": (),
    "MetadataResponse": (("max_token_expiration_seconds", _NUMBER, ""),),
}  # fmt: skip
DATA_FROM = 1_700_000_000


def _classes() -> dict[str, Any]:
    file = descriptor_pb2.FileDescriptorProto(name="jwt.proto", package="v1", syntax="proto3")
    file.dependency.append("google/protobuf/timestamp.proto")
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for number, (field, kind, type_name) in enumerate(fields, 1):
            made = message.field.add(name=field, number=number)
            if type_name:
                made.type_name = type_name
            made.type, made.label = cast("Any", kind), cast("Any", 3 if field == "keys" else 1)
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(timestamp_pb2.DESCRIPTOR.serialized_pb)
    pool.Add(file)
    find = pool.FindMessageTypeByName
    return {name: message_factory.GetMessageClass(find(f"v1.{name}")) for name in _MESSAGES}


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class Signer:
    def __init__(self, state: Path) -> None:
        self._state, self._classes = state, _classes()
        self._made: dict[str, ec.EllipticCurvePrivateKey] = {}

    def handler(self) -> Any:
        methods: dict[str, Any] = {
            method: grpc.unary_unary_rpc_method_handler(
                handle,
                request_deserializer=self._classes[f"{message}Request"].FromString,
                response_serializer=lambda answer: answer.SerializeToString(),
            )
            for method, message, handle in (
                ("Sign", "SignJWT", self._sign), ("FetchKeys", "FetchKeys", self._fetch_keys),
                ("Metadata", "Metadata", self._metadata),
            )
        }  # fmt: skip
        return grpc.method_handlers_generic_handler("v1.ExternalJWTSigner", methods)

    def _now(self, method: str) -> dict[str, Any]:
        with self._state.with_suffix(".asked").open("a") as file:
            file.write(f"{method}\n")
        found: dict[str, Any] = json.loads(self._state.read_text())
        return found

    def _key(self, name: str) -> ec.EllipticCurvePrivateKey:
        if name not in self._made:
            self._made[name] = ec.generate_private_key(ec.SECP256R1())
        return self._made[name]

    def _sign(self, request: Any, context: Any) -> Any:
        state = self._now("Sign")
        if state.get("broken"):
            context.abort(grpc.StatusCode.UNAVAILABLE, state["broken"])
        name = state["keys"][0]
        head = {"alg": "ES256", "kid": name, "typ": "JWT", **state.get("header", {})}
        header = _encoded(json.dumps(head).encode())
        signed = f"{header}.{request.claims}".encode()
        r, s = decode_dss_signature(self._key(name).sign(signed, ec.ECDSA(hashes.SHA256())))
        signature = _encoded(r.to_bytes(32, "big") + s.to_bytes(32, "big"))
        return self._classes["SignJWTResponse"](header=header, signature=signature)

    def _fetch_keys(self, _request: Any, _context: Any) -> Any:
        state = self._now("FetchKeys")
        answer = self._classes["FetchKeysResponse"](refresh_hint_seconds=state.get("again", 3000))
        answer.data_timestamp.seconds = DATA_FROM
        for name in state["keys"]:
            der = self._key(name).public_key().public_bytes(
                serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
            )  # fmt: skip
            is_hidden = name in state.get("hidden", ())
            answer.keys.add(key_id=name, key=der, exclude_from_oidc_discovery=is_hidden)
        return answer

    def _metadata(self, _request: Any, _context: Any) -> Any:
        most = self._now("Metadata").get("most", 86400)
        return self._classes["MetadataResponse"](max_token_expiration_seconds=most)


def main(socket: str, state: Path) -> None:
    server = grpc.server(ThreadPoolExecutor(2))
    server.add_generic_rpc_handlers((Signer(state).handler(),))
    server.add_insecure_port(f"unix://{socket}")
    server.start()
    print("ready", flush=True)
    server.wait_for_termination()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
