"""The configuration files of authentication and authorization, as sources that are followed.

Job: a path → what the file says, whenever it is asked for.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import yaml

from sampan.api.objects import Obj
from sampan.apiserver.authn.configuration import AuthenticationRules, rules_of
from sampan.apiserver.authz.configuration import authorizers_of
from sampan.apiserver.authz.settings import AuthorizerSettings
from sampan.apiserver.outside.followed_files import Source
from sampan.apiserver.outside.webhook_client import Target
from sampan.cmd.errors import reason_of

T = TypeVar("T")


def authentication(path: str, own_issuers: tuple[str, ...]) -> Source[AuthenticationRules]:
    return _source(path, lambda document: rules_of(document, own_issuers))


def authorization(
    path: str, target_of: Callable[[str], Target]
) -> Source[tuple[AuthorizerSettings, ...]]:
    return _source(path, lambda document: authorizers_of(document, target_of))


def _source(path: str, meaning: Callable[[Obj], T]) -> Source[T]:
    def parse(text: str) -> T:
        try:
            found = yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        except yaml.YAMLError as error:
            raise ValueError(f"it is no YAML: {reason_of(error)}") from error
        if not isinstance(found, dict):
            raise ValueError("it holds no object")
        return meaning(found)

    return Source(Path(path).absolute().read_text, parse)
