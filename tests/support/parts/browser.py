"""A real browser, headless, driven by the DevTools protocol over a pair of pipes.

Job: open pages, look at them and use them as a person would, and say what went wrong in them.
Invariant: whatever a page reports as an error is kept, so that a test can refuse it.
Owner: a test; `stop` ends the browser and removes its profile.
"""

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

PATIENCE_SECONDS = 60.0
CANDIDATES = ("chromium", "chromium-browser", "google-chrome")
_FLAGS = (
    "--headless=new", "--remote-debugging-pipe", "--no-first-run", "--no-default-browser-check",
    "--disable-background-networking", "--disable-component-update", "--disable-extensions",
    "--disable-sync", "--metrics-recording-only", "--mute-audio", "--hide-scrollbars",
    "--ignore-certificate-errors",  # the cluster's own authority is nobody's on this machine
    "--no-proxy-server", "--disable-dev-shm-usage", "--window-size=1280,900",
)  # fmt: skip


class BrowserError(Exception):
    """The browser or the page said so."""


def find_browser() -> str | None:
    return next((path for name in CANDIDATES if (path := shutil.which(name))), None)


class Browser:
    def __init__(self, program: str) -> None:
        self._profile = tempfile.mkdtemp(prefix="sampan-browser-")
        to_child, self._out = os.pipe()
        self._in, from_child = os.pipe()
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (to_child, from_child)]
        sandbox = ["--no-sandbox"] if os.getuid() == 0 else []

        def connect_pipes() -> None:
            os.dup2(ends[0], 3)  # where the protocol's pipes are looked for
            os.dup2(ends[1], 4)

        self._process = subprocess.Popen(
            [program, *_FLAGS, *sandbox, f"--user-data-dir={self._profile}", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            preexec_fn=connect_pipes, pass_fds=(3, 4),
        )  # fmt: skip
        for end in (to_child, from_child, *ends):
            os.close(end)
        self._unread = b""
        self._last_id = 0
        self._pages: dict[str, Page] = {}

    def page(self, url: str, *, width: int = 1280, height: int = 900) -> "Page":
        """In a context of its own: it shares no storage with others."""
        context = self.call("Target.createBrowserContext")["browserContextId"]
        where = {"url": "about:blank", "browserContextId": context}
        target = self.call("Target.createTarget", where)["targetId"]
        attached = {"targetId": target, "flatten": True}
        session = self.call("Target.attachToTarget", attached)["sessionId"]
        page = self._pages[session] = Page(self, session, context)
        for domain in ("Page", "Runtime", "Log", "Network"):
            page.call(f"{domain}.enable")
        page.resize(width, height)
        page.open(url)
        return page

    def call(
        self, method: str, parameters: Mapping[str, Any] | None = None, session: str = ""
    ) -> Any:
        """Raises BrowserError."""
        self._last_id += 1
        own = self._last_id
        message: dict[str, Any] = {"id": own, "method": method, "params": parameters or {}}
        if session:
            message["sessionId"] = session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        until = time.monotonic() + PATIENCE_SECONDS
        while True:
            answer = self._next(until, method)
            if answer.get("id") == own:
                if "error" in answer:
                    raise BrowserError(f"{method}: {answer['error'].get('message')}")
                return answer["result"]
            if answer.get("sessionId") in self._pages:
                self._pages[answer["sessionId"]].note(answer["method"], answer["params"])

    def stop(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(60)
        os.close(self._out)
        os.close(self._in)
        shutil.rmtree(self._profile, ignore_errors=True)

    def _next(self, until: float, method: str) -> Any:
        while b"\0" not in self._unread:
            ready, _, _ = select.select([self._in], [], [], max(0.0, until - time.monotonic()))
            if not ready:
                raise BrowserError(f"{method}: no answer in {PATIENCE_SECONDS:.0f} s")
            data = os.read(self._in, 1 << 20)
            if not data:
                raise BrowserError(f"{method}: the browser has gone")
            self._unread += data
        whole, self._unread = self._unread.split(b"\0", 1)
        return json.loads(whole)


class Page:
    def __init__(self, browser: Browser, session: str, context: str) -> None:
        self._browser, self._session, self._context = browser, session, context
        self.troubles: list[str] = []  # exceptions, and what the browser's own log calls an error
        self.requested: list[str] = []  # every URL

    def call(self, method: str, parameters: Mapping[str, Any] | None = None) -> Any:
        return self._browser.call(method, parameters, self._session)

    def note(self, method: str, parameters: Any) -> None:
        match method:
            case "Runtime.exceptionThrown":
                details = parameters["exceptionDetails"]
                thrown = details.get("exception", {}).get("description", "")
                self.troubles.append(f"{details['text']} {thrown}")
            case "Log.entryAdded" if parameters["entry"]["level"] == "error":
                entry = parameters["entry"]
                self.troubles.append(f"{entry['text']} {entry.get('url', '')}")
            case "Network.requestWillBeSent":
                self.requested.append(parameters["request"]["url"])

    def open(self, url: str) -> None:
        """Again where the machine's network changes: then browsers give up what they fetch."""
        for _ in range(20):
            if "errorText" not in self.call("Page.navigate", {"url": url}):
                return
            time.sleep(0.2)
        raise BrowserError(f"{url}: {self.troubles}")

    def evaluate(self, expression: str) -> Any:
        """Its value, awaited. Raises BrowserError."""
        asked = {"expression": expression, "awaitPromise": True, "returnByValue": True}
        answer = self.call("Runtime.evaluate", asked)
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            raise BrowserError(details.get("exception", {}).get("description", details["text"]))
        return answer["result"].get("value")

    def wait_for(self, expression: str, seconds: float = PATIENCE_SECONDS) -> None:
        """Until it is true. Raises BrowserError with what the page shows then."""
        until = time.monotonic() + seconds
        while True:
            if self.evaluate(f"(async () => {expression})().then(Boolean, () => false)"):
                return
            if time.monotonic() > until:
                shown = self.evaluate("document.body.innerText")
                raise BrowserError(f"never: {expression}\ntroubles: {self.troubles}\n{shown}")
            time.sleep(0.05)

    def wait_for_text(self, text: str, seconds: float = PATIENCE_SECONDS) -> None:
        self.wait_for(f"document.body.innerText.includes({json.dumps(text)})", seconds)

    def text(self, selector: str = "body") -> str:
        return str(self.evaluate(f"document.querySelector({json.dumps(selector)}).innerText"))

    def go(self, fragment: str) -> None:
        """Another view of the same page."""
        self.evaluate(f"location.hash = {json.dumps(fragment)}")

    def click(self, selector: str) -> None:
        """As a person: there where it is."""
        quoted = json.dumps(selector)
        self.wait_for(f"document.querySelector({quoted})")
        place = self.evaluate(
            f"(() => {{ const item = document.querySelector({quoted});"
            " item.scrollIntoView({block: 'center'}); const box = item.getBoundingClientRect();"
            " return [box.x + box.width / 2, box.y + box.height / 2]; })()"
        )
        self.click_at(*place)

    def click_at(self, x: float, y: float) -> None:
        at = {"x": x, "y": y, "button": "left", "clickCount": 1}
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", {"type": kind, **at})

    def type(self, text: str) -> None:
        """Into what has the focus."""
        self.call("Input.insertText", {"text": text})

    def press(self, key: str) -> None:
        """A key by its name, or by the character that it types."""
        codes = {
            "Enter": (13, "\r"), "Tab": (9, ""), "Escape": (27, ""), "ArrowUp": (38, ""),
            "PageUp": (33, ""),
        }  # fmt: skip
        code, text = codes.get(key) or (ord(key.upper()), key)
        down = {"type": "keyDown", "key": key, "code": key, "windowsVirtualKeyCode": code}
        self.call("Input.dispatchKeyEvent", {**down, "text": text} if text else down)
        self.call("Input.dispatchKeyEvent", {**down, "type": "keyUp"})

    def resize(self, width: int, height: int) -> None:
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.call("Emulation.setDeviceMetricsOverride", size)

    def prefer(self, **features: str) -> None:
        """prefer(prefers_color_scheme="dark")"""
        wanted = [{"name": key.replace("_", "-"), "value": item} for key, item in features.items()]
        self.call("Emulation.setEmulatedMedia", {"features": wanted})

    def screenshot(self, path: Path) -> None:
        picture = self.call("Page.captureScreenshot", {"format": "png"})["data"]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(picture))

    def close(self) -> None:
        self._browser.call("Target.disposeBrowserContext", {"browserContextId": self._context})


def quiet(troubles: Sequence[str], *expected: str) -> list[str]:
    """The troubles that nobody expected; pods of real nodes change the machine's network."""
    expected = ("ERR_NETWORK_CHANGED", *expected)
    return [item for item in troubles if not any(word in item for word in expected)]
