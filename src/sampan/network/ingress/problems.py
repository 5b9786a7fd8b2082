"""What is wrong with an Ingress, as its events say it.

Job: an Ingress and what it names → reasons and messages. Pure.
"""

from collections.abc import Callable, Iterator

from sampan.api.objects import Obj
from sampan.network.ingress.backends import why_not_served
from sampan.network.ingress.certificates import TLS_SECRET, context_of
from sampan.network.ingress.routing import backends_of, tls_hosts

Problem = tuple[str, str]  # reason, message
Find = Callable[[str], Obj | None]  # by key


def problems_of(ingress: Obj, service: Find, secret: Find) -> Iterator[Problem]:
    for backend in backends_of(ingress):
        named = service(f"{backend.namespace}/{backend.service}") if backend.service else None
        problem = why_not_served(backend, named)
        if problem is not None:
            yield problem
    for key in dict.fromkeys(key for _, key in tls_hosts(ingress)):
        found = secret(key)
        if found is None:
            yield "SecretNotFound", f'Secret "{key}" of type {TLS_SECRET} not found'
            continue
        made = context_of(found)
        if isinstance(made, str):
            yield "InvalidCertificate", f'Secret "{key}": {made}'
