"""What a rule makes of a request: a redirect, or the way to a backend.

Job: a rule that matched, and the request → who is asked, what is changed there and back. Pure, but
    for the choice among backends.
Invariant: a backend that leads nowhere has its share of the requests, and they fail.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from sampan.core.fast_dataclass import replace
from sampan.core.http.messages import Headers, Request, Response
from sampan.core.http.origin import Origin
from sampan.network.gateway.filters import Filters, Redirect
from sampan.network.gateway.rules import BackendRef
from sampan.network.gateway.table import Found
from sampan.network.ingress.backends import Unavailable
from sampan.network.ingress.forwarding import ANSWER_SECONDS, Asked, Way

Resolve = Callable[[BackendRef], Sequence[Origin] | Unavailable]


def answer_of(
    found: Found, asked: Asked, resolve: Resolve, served: Mapping[int, int], rng: random.Random
) -> Way | Unavailable | Response:
    """`served`: where the ports of Gateways are on this machine."""
    filters = found.rule.filters
    if filters.redirect is not None:
        return _redirected(filters, filters.redirect, found, asked, served)
    chosen = _chosen(found.rule.backends, rng)
    if chosen is None:
        return Unavailable(500, f"HTTPRoute {found.route} has no backend for it")
    endpoints = resolve(chosen)
    if isinstance(endpoints, Unavailable):
        return endpoints
    both = (filters, chosen.filters)
    return Way(
        endpoints,
        partial(_there, both, asked.path, found.prefix),
        partial(_back, both),
        found.rule.answer_seconds or ANSWER_SECONDS,
    )


def _redirected(
    filters: Filters, redirect: Redirect, found: Found, asked: Asked, served: Mapping[int, int]
) -> Response:
    request, listener = asked.request, asked.listener
    path = request.path
    if redirect.path is not None:
        path = redirect.path.of(path, asked.path, found.prefix)
    ports = {**served, 0: listener.port}
    location = redirect.location(listener.scheme, asked.host, path, request.query, ports)
    return Response(redirect.status, filters.answer.of_answer([("location", location)]))


def _chosen(backends: Sequence[BackendRef], rng: random.Random) -> BackendRef | None:
    weights = [backend.weight for backend in backends]
    return rng.choices(backends, weights)[0] if any(weights) else None


def _there(both: Sequence[Filters], plain: str, matched: str, request: Request) -> Request:
    headers, path = dict(request.headers), request.path
    for filters in both:
        headers = filters.request.of_request(headers)
        if filters.hostname:
            headers["host"] = filters.hostname
        if filters.path is not None:
            path = filters.path.of(path, plain, matched)
    return replace(request, headers=headers, path=path)


def _back(both: Sequence[Filters], headers: Headers) -> Headers:
    for filters in both:
        headers = filters.answer.of_answer(headers)
    return headers
