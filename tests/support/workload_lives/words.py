"""What stands for something in the texts of a scenario, and is filled in when it is done.

Job: `{ns}`, `{life}`, `{name}`; `{in N minutes at ZONE}`: the schedule of that minute of the day;
    `{csr COMMON-NAME ORGANIZATION… dns:NAME ip:ADDRESS}`: a certificate request, in base64.
"""

import base64
import ipaddress
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from typing import Any
from zoneinfo import ZoneInfo

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_WORDS = re.compile(r"\{(in \d+ minutes at [\w/+-]+|csr [^{}]*|[a-z]+)\}")


def filled(value: Any, words: Mapping[str, str], now: float) -> Any:
    if isinstance(value, Mapping):
        return {filled(name, words, now): filled(item, words, now) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [filled(item, words, now) for item in value]
    if isinstance(value, str):
        return _WORDS.sub(lambda found: _filled(found[1], words, now), value)
    return value


def _filled(word: str, words: Mapping[str, str], now: float) -> str:
    kind, *rest = word.split(" ")
    match kind:
        case "in":
            at = datetime.fromtimestamp(now + 60 * int(rest[0]), UTC).astimezone(ZoneInfo(rest[3]))
            return f"{at.minute} {at.hour} * * *"
        case "csr":
            return _request(tuple(rest))
    return words[kind]


@cache
def _request(words: tuple[str, ...]) -> str:
    names = [word for word in words if not word.startswith(("dns:", "ip:"))]
    subject = [x509.NameAttribute(NameOID.COMMON_NAME, names[0])]
    subject += [x509.NameAttribute(NameOID.ORGANIZATION_NAME, name) for name in names[1:]]
    builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(subject))
    others: list[x509.GeneralName] = [
        x509.DNSName(word.removeprefix("dns:")) for word in words if word.startswith("dns:")
    ]
    others += [
        x509.IPAddress(ipaddress.ip_address(word.removeprefix("ip:")))
        for word in words
        if word.startswith("ip:")
    ]
    if others:
        builder = builder.add_extension(x509.SubjectAlternativeName(others), critical=False)
    signed = builder.sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256())
    return base64.b64encode(signed.public_bytes(serialization.Encoding.PEM)).decode()
