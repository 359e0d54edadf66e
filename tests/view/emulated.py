"""A headset that is emulated in a page, by the npm package iwer: it stands 1.6 m high and looks ahead."""

from __future__ import annotations

from collections.abc import Sequence

from browser import SOFTWARE_WEBGL, Browser, iwer

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
