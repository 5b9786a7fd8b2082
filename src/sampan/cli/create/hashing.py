"""--append-hash: the suffix that names a config map's or secret's content.

Job: the hash of the content as kubectl computes it, ten letters that cannot spell words.
"""

import hashlib
import json

from sampan.api.objects import Obj

_LETTERS = {"0": "g", "1": "h", "3": "k", "a": "m", "e": "t"}


def suffix(obj: Obj) -> str:
    content = {"kind": obj["kind"], "name": obj["metadata"]["name"]}
    if obj["kind"] == "ConfigMap":
        content["data"] = obj.get("data") or {}
        if obj.get("binaryData"):
            content["binaryData"] = obj["binaryData"]
    else:
        content["data"] = obj.get("data") or {}
        content["type"] = obj.get("type") or ""
    text = json.dumps(content, separators=(",", ":"), sort_keys=True, ensure_ascii=False)
    digest = hashlib.sha256(text.encode()).hexdigest()
    return "".join(_LETTERS.get(letter, letter) for letter in digest[:10])
