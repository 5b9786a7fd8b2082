"""Image pull records: which pods may use an image that is present already.

Job: remember with what an image was pulled; say whether a pod has that, too.
Invariant: an image that nobody had to log in for, or that was imported, is everybody's.
Invariant: what is remembered survives a restart; no password is written down, only hashes.
Owner: ImageManager. As upstream's imagePullCredentialsVerificationPolicy.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from sampan.core.bounded import Bounded
from sampan.core.files.json_files import Damaged, json_object
from sampan.core.log import get_logger
from sampan.kubelet.contracts.runtime import Credentials, Image
from sampan.kubelet.images.reference import InvalidReference, parse

log = get_logger(__name__)

EVERYBODY = "*"
PRELOADED = "NeverVerifyPreloadedImages"
_MOST_RECORDS = 2000

Record = dict[str, list[str]]
"""Repository → hashes of the credentials that it was pulled with, or EVERYBODY."""

UNREADABLE: Record = {"": []}


class ImageAccess:
    def __init__(
        self, directory: str, policy: str = PRELOADED, unverified: Sequence[str] = ()
    ) -> None:
        """Without a directory nothing outlives the process. `unverified`: with the policy for it,
        the images that everybody may use."""
        self._policy, self._unverified = policy, unverified
        self._directory = Path(directory) if directory else None
        self._records: Bounded[str, Record | None] = Bounded(_MOST_RECORDS)
        # Where records outlive the process, some may be of an earlier one.
        self.keeps_secrets = self._directory is not None and policy != "NeverVerify"

    def is_everybodys(self, image: Image, repository: str) -> bool:
        """No need to look for credentials. What anybody may pull under one name is no secret under
        another; and a name that no pull gave it was given by the owner of the node, who imported
        it. Its bare id is no name."""
        if self._policy == "NeverVerify" or self._is_listed(repository):
            return True
        record = self._record(image.id)
        if record is None:
            return self._policy == PRELOADED
        if any(EVERYBODY in marks for marks in record.values()):
            return True
        named_by_owner = (
            self._policy == PRELOADED
            and repository not in record
            and repository in _repositories(image)
        )
        return named_by_owner and record != UNREADABLE

    def _is_listed(self, repository: str) -> bool:
        if self._policy != "NeverVerifyAllowlistedImages":
            return False
        return any(
            repository.startswith(name[:-1]) if name.endswith("/*") else repository == name
            for name in self._unverified
        )

    def may_use(self, image: Image, repository: str, offered: Iterable[Credentials]) -> bool:
        if self.is_everybodys(image, repository):
            return True
        record = self._record(image.id) or {}
        return not set(record.get(repository, ())).isdisjoint(map(credentials_hash, offered))

    def pulled(self, image_id: str, repository: str, by: Credentials | None) -> None:
        """`by`: None where everybody of the node could have pulled it."""
        record = dict(self._record(image_id) or {})
        mark = EVERYBODY if by is None else credentials_hash(by)
        self.keeps_secrets = self.keeps_secrets or by is not None
        marks = record.get(repository, [])
        if mark not in marks:
            record[repository] = [*marks, mark]
            self._records[image_id] = record
            self._write(image_id, record)

    def _record(self, image_id: str) -> Record | None:
        if image_id not in self._records:
            self._records[image_id] = self._read(image_id)
        return self._records[image_id]

    def _path(self, image_id: str) -> Path:
        assert self._directory is not None
        return self._directory / hashlib.sha256(image_id.encode()).hexdigest()

    def _read(self, image_id: str) -> Record | None:
        if self._directory is None or not (path := self._path(image_id)).exists():
            return None
        try:
            found = json_object(path)["credentials"]
            return {str(repository): list(marks) for repository, marks in found.items()}
        except (Damaged, KeyError, TypeError, AttributeError) as error:
            log.warning("image pull record unreadable", image=image_id, error=error)
            return UNREADABLE  # somebody had to log in: everybody shows again that they can

    def _write(self, image_id: str, record: Record) -> None:
        if self._directory is None:
            return
        path = self._path(image_id)
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            unfinished = path.with_suffix(".new")
            unfinished.write_text(json.dumps({"image": image_id, "credentials": record}))
            os.replace(unfinished, path)
        except OSError as error:
            log.warning("image pull record not written", image=image_id, error=error)


def _repositories(image: Image) -> Iterator[str]:
    for name in (*image.tags, *image.digests):
        try:
            yield parse(name).repository
        except InvalidReference:
            continue


def credentials_hash(credentials: Credentials) -> str:
    parts = (
        credentials.username,
        credentials.password,
        credentials.identity_token,
        credentials.registry_token,
    )
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
