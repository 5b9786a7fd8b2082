"""A URL as a source of pods.

Job: ask for a Pod or a PodList now and then, and deliver it when it changed.
Invariant: an answer that cannot be used changes nothing: the last good set stays.
Invariant: before the first good answer nothing is delivered, so nothing is cleaned up.
Owner: Kubelet runs it.
"""

import ssl
from collections.abc import Callable, Sequence

from sampan.api.objects import Obj
from sampan.core.clock import Clock
from sampan.core.http.client import HttpClient
from sampan.core.http.errors import HttpError
from sampan.core.log import get_logger
from sampan.kubelet.sources.manifests import BadManifest

log = get_logger(__name__)

INTERVAL_SECONDS = 20.0
TIMEOUT_SECONDS = 10.0

Deliver = Callable[[Sequence[Obj]], None]
DecodeAll = Callable[[bytes, str], list[Obj]]  # (content, URL) → pods; raises BadManifest


class HttpSource:
    def __init__(
        self,
        url: str,
        *,
        deliver: Deliver,
        decode: DecodeAll,
        clock: Clock,
        headers: Sequence[tuple[str, str]] = (),
        interval_seconds: float = INTERVAL_SECONDS,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._url, self._deliver, self._decode, self._clock = url, deliver, decode, clock
        self._headers, self._interval_seconds, self._tls = tuple(headers), interval_seconds, tls
        self._last: bytes | None = None
        self._complained = ""

    async def run(self) -> None:
        """Until cancelled."""
        http = HttpClient(ssl_context=self._tls)
        try:
            while True:
                await self.ask(http)
                await self._clock.sleep(self._interval_seconds)
        finally:
            await http.close()

    async def ask(self, http: HttpClient) -> None:
        try:
            answer = await http.request(
                "GET", self._url, headers=self._headers, timeout_seconds=TIMEOUT_SECONDS
            )
        except HttpError as error:
            self._complain(str(error))
            return
        if answer.status != 200:
            self._complain(f"the answer was {answer.status}")
        elif answer.body != self._last:
            self._take(answer.body)

    def _take(self, body: bytes) -> None:
        try:
            pods = self._decode(body, self._url)
        except BadManifest as error:
            self._complain(str(error))
            return
        self._last, self._complained = body, ""
        self._deliver(pods)

    def _complain(self, why: str) -> None:
        """Once for each reason: it is asked again and again."""
        if why != self._complained:
            self._complained = why
            log.warning("pods were not read from the URL, going on with those of before",
                        url=self._url, why=why)  # fmt: skip
