"""Clients of other libraries, ready to use with one cluster.

Job: import a library when it is asked for, and configure it from the cluster's kubeconfig.
Invariant: nothing global is configured: two clusters in one test have two clients.
"""

import importlib
from pathlib import Path
from typing import Any


class Clients:
    def __init__(self, kubeconfig: Path) -> None:
        self._kubeconfig = str(kubeconfig)

    def kubernetes(self) -> Any:
        """An ApiClient of the official library: `client.CoreV1Api(c.clients.kubernetes())`."""
        return _library("kubernetes.config").new_client_from_config(config_file=self._kubeconfig)

    async def kubernetes_asyncio(self) -> Any:
        """An ApiClient; `async with await c.clients.kubernetes_asyncio() as api:`."""
        config = _library("kubernetes_asyncio.config")
        return await config.new_client_from_config(config_file=self._kubeconfig)

    def kr8s(self) -> Any:
        """The synchronous API of kr8s."""
        return _library("kr8s").api(kubeconfig=self._kubeconfig)

    async def kr8s_asyncio(self) -> Any:
        return await _library("kr8s.asyncio").api(kubeconfig=self._kubeconfig)

    def lightkube(self) -> Any:
        config = _library("lightkube").KubeConfig.from_file(self._kubeconfig)
        return _library("lightkube").Client(config=config)

    def pykube(self) -> Any:
        """An HTTPClient of pykube-ng."""
        pykube = _library("pykube")
        return pykube.HTTPClient(pykube.KubeConfig.from_file(self._kubeconfig))


_DISTRIBUTIONS = {"pykube": "pykube-ng", "kubernetes_asyncio": "kubernetes-asyncio"}


def _library(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        top = name.partition(".")[0]
        wanted = _DISTRIBUTIONS.get(top, top)
        raise ImportError(f"the library is not installed: pip install {wanted}") from error
