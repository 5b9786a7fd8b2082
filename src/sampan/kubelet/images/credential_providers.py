"""Credential provider plugins: programs of the node that know how to log in to a registry.

Job: a CredentialProviderConfig → providers (pure); an image → what the fitting ones answer.
Invariant: one run of a plugin per image at a time; an answer is used as long as it says itself.
Invariant: a plugin that fails costs its credentials, never the pull.
Owner: NodeCredentials.
"""

import asyncio
import json
import os.path
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field

from sampan.api.objects import Obj
from sampan.api.rules.durations import parse_seconds
from sampan.core.bounded import Recent
from sampan.core.clock import Clock
from sampan.core.durations import DurationError
from sampan.core.fast_dataclass import dataclass
from sampan.core.lock_per_key import LockPerKey
from sampan.core.log import get_logger
from sampan.core.metrics import Metrics
from sampan.kubelet.contracts.runtime import Credentials
from sampan.kubelet.images.reference import Reference
from sampan.kubelet.images.registry_credentials import Entries, fits

log = get_logger(__name__)

CONFIG_VERSIONS = tuple(f"kubelet.config.k8s.io/{item}" for item in ("v1", "v1beta1", "v1alpha1"))
PLUGIN_VERSIONS = tuple(
    f"credentialprovider.kubelet.k8s.io/{item}" for item in ("v1", "v1beta1", "v1alpha1")
)
PLUGIN_SECONDS = 60.0  # as upstream
_REMEMBERED = 1000
_GLOBAL = "global"


class ProviderConfigError(ValueError):
    """The configuration cannot be used; the text says where and why."""


class _PluginFailed(Exception):
    pass


@dataclass(frozen=True, slots=True)
class CredentialProvider:
    name: str
    program: str
    match_images: tuple[str, ...]
    cache_seconds: float  # where the plugin itself does not say
    api_version: str = PLUGIN_VERSIONS[0]
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a plugin said: how far it reaches, how long it is good for, and what it is."""

    key_type: str  # Image | Registry | Global
    cache_seconds: float | None
    entries: Entries = field(repr=False)


def providers_of(
    config: Obj, *, bin_dir: str, environment: Mapping[str, str]
) -> tuple[CredentialProvider, ...]:
    """As upstream's decoding and validation. Raises ProviderConfigError."""
    if config.get("kind") != "CredentialProviderConfig":
        raise ProviderConfigError(f"kind is {config.get('kind')!r}, not CredentialProviderConfig")
    if config.get("apiVersion") not in CONFIG_VERSIONS:
        raise ProviderConfigError(f"unknown apiVersion {config.get('apiVersion')!r}")
    listed = config.get("providers") or []
    if not listed:
        raise ProviderConfigError(
            "providers: Required value: at least 1 item in plugins is required"
        )
    providers = [
        _provider(f"providers[{at}]", item, bin_dir, environment) for at, item in enumerate(listed)
    ]
    names = [provider.name for provider in providers]
    for name in names:
        if names.count(name) > 1:
            raise ProviderConfigError(f"providers: Duplicate value: {name!r}")
    return tuple(providers)


def _provider(
    where: str, one: Obj, bin_dir: str, environment: Mapping[str, str]
) -> CredentialProvider:
    name = one.get("name") or ""
    if not name or name in (".", "..") or "/" in name or " " in name:
        raise ProviderConfigError(
            f"{where}.name: {name!r} must be the name of a program, without '/' and spaces"
        )
    if one.get("apiVersion") not in PLUGIN_VERSIONS:
        raise ProviderConfigError(
            f"{where}.apiVersion: {one.get('apiVersion')!r} is none of {', '.join(PLUGIN_VERSIONS)}"
        )
    if one.get("tokenAttributes"):
        raise ProviderConfigError(
            f"{where}.tokenAttributes: tokens of service accounts are not given to plugins yet"
        )
    images = _match_images(where, one)
    if one.get("defaultCacheDuration") is None:
        raise ProviderConfigError(f"{where}.defaultCacheDuration: Required value")
    own = {entry["name"]: entry.get("value") or "" for entry in one.get("env") or ()}
    program = os.path.join(bin_dir, name)
    if not os.access(program, os.X_OK):
        raise ProviderConfigError(f"{where}: plugin binary executable {program} did not exist")
    return CredentialProvider(
        name=name,
        program=program,
        match_images=images,
        cache_seconds=_seconds(f"{where}.defaultCacheDuration", one["defaultCacheDuration"]),
        api_version=one["apiVersion"],
        arguments=tuple(one.get("args") or ()),
        environment={**environment, **own},
    )


def _match_images(where: str, one: Obj) -> tuple[str, ...]:
    images = tuple(one.get("matchImages") or ())
    if not images:
        raise ProviderConfigError(f"{where}.matchImages: Required value")
    for image in images:
        if "://" in image or not image.partition("/")[0]:
            raise ProviderConfigError(f"{where}.matchImages: {image!r} must be a host, perhaps "
                                      "with port and path, without a scheme")  # fmt: skip
    return images


def request_for(provider: CredentialProvider, image: str) -> bytes:
    asked = {
        "kind": "CredentialProviderRequest",
        "apiVersion": provider.api_version,
        "image": image,
    }
    return json.dumps(asked).encode()


def answer_of(provider: CredentialProvider, output: bytes) -> Answer:
    """Raises ValueError."""
    told = json.loads(output)
    if not isinstance(told, dict) or told.get("kind") != "CredentialProviderResponse":
        raise ValueError("not a CredentialProviderResponse")
    if told.get("apiVersion") != provider.api_version:
        raise ValueError(
            f"apiVersion from credential plugin response did not match expected apiVersion: "
            f"{told.get('apiVersion')}, actual plugin apiVersion: {provider.api_version}"
        )
    key_type = told.get("cacheKeyType") or ""
    if key_type not in ("Image", "Registry", "Global"):
        raise ValueError(
            f'credential provider plugin did not return a valid cacheKeyType: "{key_type}"'
        )
    lasting = told.get("cacheDuration")
    return Answer(
        key_type,
        None if lasting is None else _seconds("cacheDuration", lasting),
        [
            (pattern, Credentials(item.get("username") or "", item.get("password") or ""))
            for pattern, item in (told.get("auth") or {}).items()
        ],
    )


class CredentialProviders:
    def __init__(
        self, providers: Sequence[CredentialProvider], *, clock: Clock, metrics: Metrics
    ) -> None:
        self._providers, self._clock = providers, clock
        self._running = LockPerKey()
        # (plugin, key) → until
        self._known: Recent[tuple[str, str], tuple[float, Entries]] = Recent(_REMEMBERED)
        self._duration = metrics.histogram(
            "kubelet_credential_provider_plugin_duration",
            "Duration of execution in seconds for credential provider plugin",
            ("plugin_name",),
        )
        self._errors = metrics.counter(
            "kubelet_credential_provider_plugin_errors",
            "Number of errors from credential provider plugin",
            ("plugin_name",),
        )

    async def entries(self, image: Reference) -> Entries:
        found: list[tuple[str, Credentials]] = []
        for provider in self._providers:
            if any(fits(pattern, image) for pattern in provider.match_images):
                found += await self._asked(provider, image)
        return found

    async def _asked(self, provider: CredentialProvider, image: Reference) -> Entries:
        try:
            async with self._running.held((provider.name, image.repository)):
                known = self._remembered(provider, image)
                return known if known is not None else await self._fresh(provider, image)
        except _PluginFailed as error:
            self._errors.add(provider.name)
            log.warning("a credential provider failed", plugin=provider.name, error=error)
            return ()

    def _remembered(self, provider: CredentialProvider, image: Reference) -> Entries | None:
        for key in (image.repository, image.registry, _GLOBAL):
            until, entries = self._known.get((provider.name, key), (0.0, ()))
            if self._clock.monotonic() < until:
                return entries
        return None

    async def _fresh(self, provider: CredentialProvider, image: Reference) -> Entries:
        began = self._clock.monotonic()
        try:
            output = await run_plugin(provider, request_for(provider, image.repository))
            answer = answer_of(provider, output)
        except ValueError as error:
            raise _PluginFailed(str(error)) from error
        finally:
            self._duration.observe(self._clock.monotonic() - began, provider.name)
        seconds = answer.cache_seconds
        if seconds is None:
            seconds = provider.cache_seconds
        if seconds > 0:
            keys = {"Image": image.repository, "Registry": image.registry, "Global": _GLOBAL}
            until = self._clock.monotonic() + seconds
            self._known[provider.name, keys[answer.key_type]] = (until, answer.entries)
        return answer.entries


async def run_plugin(provider: CredentialProvider, request: bytes) -> bytes:
    """What the plugin writes; it is ended where it takes too long. Raises _PluginFailed."""
    pipe = asyncio.subprocess.PIPE
    try:
        process = await asyncio.create_subprocess_exec(
            provider.program, *provider.arguments,
            stdin=pipe, stdout=pipe, stderr=pipe, env=dict(provider.environment),
        )  # fmt: skip
    except OSError as error:
        raise _PluginFailed(f"{provider.program} cannot be run: {error}") from error
    try:
        async with asyncio.timeout(PLUGIN_SECONDS):
            output, said = await process.communicate(request)
    except TimeoutError as error:
        raise _PluginFailed(f"no answer within {PLUGIN_SECONDS:.0f} s") from error
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        told = said.decode(errors="replace").strip()[:500]
        raise _PluginFailed(f"exit status {process.returncode}: {told}")
    return output


def _seconds(where: str, text: object) -> float:
    """Go's spelling: 10m, 1h30m, 0s; a bare 0 is allowed."""
    try:
        return parse_seconds("0" if text == 0 else text)
    except DurationError as error:
        raise ProviderConfigError(f"{where}: {text!r} is not a duration such as 10m") from error


def merge(configs: Iterable[object]) -> Obj:
    """Of several files, in the order of their names: the providers of all."""
    whole: Obj = {}
    for config in configs:
        if not isinstance(config, dict):
            raise ProviderConfigError("not a CredentialProviderConfig")
        before = whole.get("providers") or []
        whole = {**config, "providers": [*before, *(config.get("providers") or [])]}
    return whole
