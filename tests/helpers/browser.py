"""A real Chromium without a window, driven over DevTools' pipe (NUL-separated JSON): needs nothing but the browser."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
QUIET = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --hide-scrollbars --remote-debugging-pipe"
).split()
IWER = ("node_modules", "iwer", "build", "iwer.min.js")
ROOT = Path(__file__).resolve().parents[2]
SOFTWARE_WEBGL = ("--use-angle=swiftshader", "--enable-unsafe-swiftshader")


def chromium() -> str | None:
    """The browser's path, or None where there is none."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


needs_browser = pytest.mark.skipif(chromium() is None, reason="no Chromium: apt-get install chromium")


def iwer() -> Path | None:
    """The emulated headset (the npm package iwer), or None where it is not: in the folder MANIKIN_IWER, else in
    .venv/iwer, where .ci/run installs it."""
    folder = Path(os.environ.get("MANIKIN_IWER") or ROOT / ".venv" / "iwer")
    file = folder.joinpath(*IWER)
    return file if file.is_file() else None


@contextmanager
def served(viewer: Any) -> Iterator[Any]:
    """Let a viewer run in a thread of its own."""
    over = threading.Event()
    thread = threading.Thread(target=viewer.run, args=(over.is_set,))
    thread.start()
    try:
        yield viewer
    finally:
        over.set()
        thread.join(30)
        viewer.close()
        assert not thread.is_alive()


def looked_at(viewer: Any, look: Callable[[], None]) -> None:
    """Run a viewer in this thread, which owns the simulation, until ``look`` is done in another; then close it.

    Raises:
        BaseException: what ``look`` raised.
    """
    errors: list[BaseException] = []

    def looks() -> None:
        try:
            look()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=looks)
    thread.start()
    viewer.run(lambda: not thread.is_alive())
    viewer.close()
    if errors:
        raise errors[0]


class Browser:
    """One page of a headless Chromium. A context manager.

    Args:
        arguments: more of the browser's switches.
        size: (width, height) of the page [pixels].
    """

    def __init__(self, arguments: Sequence[str] = (), size: tuple[int, int] = (1200, 800)) -> None:
        program = chromium()
        assert program, "no Chromium"
        self._profile = tempfile.TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True)
        theirs_in, self._out = os.pipe()
        self._in, theirs_out = os.pipe()
        command = [program, *QUIET, *arguments, f"--user-data-dir={self._profile.name}", "about:blank"]
        # The browser reads commands from descriptor 3 and answers on 4.
        shell = f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}'
        self._process = subprocess.Popen(
            ["bash", "-c", shell, "bash", *command],
            pass_fds=(theirs_in, theirs_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._number, self._buffer, self._session = 0, b"", None
        self.events: list[dict[str, Any]] = []
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.send("Page.enable")
        self.send("Runtime.enable")
        self.send("Log.enable")
        self.send("Network.enable")
        self.send(
            "Emulation.setDeviceMetricsOverride", width=size[0], height=size[1], deviceScaleFactor=1, mobile=False
        )

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def send(self, method: str, timeout: float = 60.0, **params: Any) -> dict[str, Any]:
        """One DevTools command and its answer; what the browser says meanwhile is kept in ``events``."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        until = time.monotonic() + timeout
        while True:
            answer = self._receive(until)
            if answer.get("id") == self._number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]
            self.events.append(answer)

    def _receive(self, until: float) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._in], [], [], max(0.0, until - time.monotonic()))
            assert ready, "the browser does not answer"
            read = os.read(self._in, 1 << 20)
            assert read, "the browser has gone"
            self._buffer += read
        message, self._buffer = self._buffer.split(b"\0", 1)
        return json.loads(message)

    def goto(self, url: str) -> None:
        """Open a page and wait until it is read."""
        result = self.send("Page.navigate", url=url)
        assert "errorText" not in result, result["errorText"]
        self.wait_for("location.href !== 'about:blank' && document.readyState !== 'loading'")

    def evaluate(self, code: str) -> Any:
        """What a JavaScript expression gives in the page; promises are waited for."""
        answer = self.send("Runtime.evaluate", expression=code, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def wait_for(self, code: str, timeout: float = 120.0) -> Any:
        """Ask until the expression gives something true, and return that."""
        until = time.monotonic() + timeout
        while not (value := self.evaluate(code)):
            assert time.monotonic() < until, f"not within {timeout} s: {code}"
            time.sleep(0.05)
        return value

    def click(self, selector: str) -> None:
        """Press the mouse on the middle of an element, as a person would."""
        find = f"document.querySelector({selector!r})"
        self.evaluate(f"{find}.scrollIntoView({{block: 'nearest'}})")
        x, y = self.evaluate(f"(r => [r.x + r.width / 2, r.y + r.height / 2])({find}.getBoundingClientRect())")
        self.mouse("mousePressed", x, y, button="left", clickCount=1)
        self.mouse("mouseReleased", x, y, button="left", clickCount=1)

    def mouse(self, kind: str, x: float, y: float, **params: Any) -> None:
        """A mouse event at (x, y) [pixels]."""
        self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, **params)

    def screenshot(self, path: Path | None = None) -> bytes:
        """The page as PNG, also written to ``path``."""
        png = base64.b64decode(self.send("Page.captureScreenshot", format="png")["data"])
        if path is not None:
            path.write_bytes(png)
        return png

    def complaints(self) -> list[str]:
        """Errors that the page has logged or thrown so far, and requests that failed."""
        said = []
        for event in self.events:
            params = event.get("params", {})
            if event.get("method") == "Runtime.exceptionThrown":
                said.append(str(params["exceptionDetails"].get("exception", params["exceptionDetails"])))
            elif event.get("method") == "Log.entryAdded" and params["entry"]["level"] == "error":
                said.append(f"{params['entry']['text']} {params['entry'].get('url', '')}")
            elif event.get("method") == "Runtime.consoleAPICalled" and params["type"] == "error":
                said.append(" ".join(str(a.get("value", a.get("description"))) for a in params["args"]))
        return said

    def requested(self) -> list[str]:
        """Addresses that the page has asked for so far."""
        return [e["params"]["request"]["url"] for e in self.events if e.get("method") == "Network.requestWillBeSent"]

    def close(self) -> None:
        """End the browser."""
        try:
            self._session = None
            self.send("Browser.close", timeout=5)
        except (AssertionError, OSError):
            pass
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._in)
        os.close(self._out)
        self._profile.cleanup()


SETUP = """
globalThis.device = new IWER.XRDevice(IWER.metaQuest3, {stereoEnabled: true});
device.installRuntime({forceInstall: true});
device.stereoEnabled = true;
device.position.set(0, 1.6, 0);
for (const [side, x] of [["left", -0.2], ["right", 0.2]]) {
  device.controllers[side].position.set(x, 1.2, -0.4);
  device.hands[side].position.set(x, 1.2, -0.4);
}
"""


class EmulatedHeadset(Browser):
    """A browser with a headset. A context manager.

    Args:
        arguments: more of the browser's switches.
        size: of the page [pixels]; small, as both eyes are drawn in software.
    """

    def __init__(self, arguments: Sequence[str] = (), size: tuple[int, int] = (480, 400)) -> None:
        super().__init__((*SOFTWARE_WEBGL, *arguments), size)
        file = iwer()
        assert file is not None
        self.send("Page.addScriptToEvaluateOnNewDocument", source=file.read_text(encoding="utf-8") + SETUP)

    def enter(self, url: str, *, stereo: bool = True) -> None:
        """Open a headset's page and put the headset on."""
        self.goto(url)
        self.wait_for("!document.getElementById('enter').disabled")
        if not stereo:
            self.evaluate("document.getElementById('stereo').checked = false")
        self.click("#enter")
        self.wait_for("headset.sent > 3")

    def put(self, side: str, x: float, y: float, z: float) -> None:
        """Bring a controller to a place [m] of the room: right, up, backward."""
        self.evaluate(f"device.controllers.{side}.position.set({x}, {y}, {z})")

    def button(self, side: str, name: str, value: float) -> None:
        """Press a button of a controller (``squeeze``, ``trigger``, ``a-button``, ...): 1 is fully down."""
        self.evaluate(f"device.controllers.{side}.updateButtonValue({name!r}, {value})")
