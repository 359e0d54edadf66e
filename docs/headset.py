"""Measure how late a headset's pictures are, and draw the picture of its page: docs/images/headset.jpg.

    python docs/headset.py                 # prints a table, draws nothing
    python docs/headset.py --draw          # also draws what the emulated headset shows

The headset is emulated in headless Chromium by the npm package iwer, on this machine; install it with
``npm install --prefix .venv/iwer iwer``. A right hand goes round while it holds the Panda of PickCube. Times run in the
page, from when a pose was taken to when the first picture that shows its action is drawn. Run it on an idle machine.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS.parent / "tests" / "helpers"))

from browser import EmulatedHeadset, chromium, iwer, looked_at  # noqa: E402
from manikin.env.make import make  # noqa: E402
from manikin.render import make_renderer  # noqa: E402
from manikin.teleop.headset.headset import Headset  # noqa: E402
from manikin.teleop.loop import TeleopLoop  # noqa: E402
from manikin.view.headset.certificate import certificate_for, tls_context  # noqa: E402
from manikin.view.headset.session import HeadsetSession  # noqa: E402
from manikin.view.headset.viewer import HeadsetViewer  # noqa: E402
from manikin.view.picture import Painter  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two seconds of each, to see that it runs")
    parser.add_argument("--draw", action="store_true", help="also draw the picture")
    parser.add_argument("--seconds", type=float, default=20.0, help="of each measurement")
    parser.add_argument("--renderer", default="auto")
    parser.add_argument("--out", type=Path, default=DOCS / "images", help="folder of the picture")
    options = parser.parse_args()
    if chromium() is None or iwer() is None:
        raise SystemExit("needs Chromium and the npm package iwer: npm install --prefix .venv/iwer iwer")
    seconds = 2.0 if options.quick else options.seconds
    load = os.getloadavg()[0]
    print("| pictures | pose to action | pose to picture | pictures/s | frames/s | reports per frame |")
    print("| --- | --- | --- | --- | --- | --- |")
    for words, smooth, stereo, tls in (
        ("as states come, one eye", False, False, False),
        ("as states come, both eyes", False, True, False),
        ("the way between states, both eyes", True, True, False),
        ("the same, encrypted", True, True, True),
    ):
        found = measured(seconds, options.renderer, smooth=smooth, stereo=stereo, tls=tls)
        print(f"| {words} | {found} |", flush=True)
        if options.quick:
            break
    print(f"\n{os.cpu_count()} cores, load {load:.1f} before it began", file=sys.stderr)
    if options.draw:
        draw(options.out / "headset.png", options.renderer)


def measured(seconds: float, renderer: str, **how: Any) -> str:
    """A row of the table."""
    found: dict[str, Any] = {}

    def drive(page: EmulatedHeadset) -> None:
        go_round(page, 1.5)  # what is prepared at first is not counted
        before = page.evaluate("(() => { headset.lags.length = 0; return {...headset, now: performance.now()}; })()")
        go_round(page, seconds)
        found.update(page.evaluate("({...headset, now: performance.now()})"), before=before)

    loop = with_headset(drive, renderer, (320, 240), (400, 300), **how)
    lags, before = sorted(found["lags"]), found["before"]
    span = (found["now"] - before["now"]) / 1000
    rate = {name: (found[name] - before[name]) / span for name in ("pictures", "frames", "sent")}
    action = (
        "-"
        if loop.latency.mean is None
        else f"{1000 * loop.latency.mean:.0f} ms, 95 % within {1000 * loop.latency.p95:.0f} ms"
    )
    late = f"{sum(lags) / len(lags):.0f} ms, 95 % within {lags[int(0.95 * len(lags))]:.0f} ms" if lags else "-"
    return f"{action} | {late} | {rate['pictures']:.0f} | {rate['frames']:.0f} | {rate['sent'] / rate['frames']:.2f}"


def go_round(page: EmulatedHeadset, seconds: float) -> None:
    began = time.monotonic()
    while (t := time.monotonic() - began) < seconds:
        angle = 2 * math.pi * t / 2.0
        page.put("right", 0.2 + 0.05 * math.sin(angle), 1.2 + 0.05 * (1 - math.cos(angle)), -0.4)
        time.sleep(0.01)


def with_headset(
    drive: Any, renderer: str, size: tuple[int, int], shown: tuple[int, int], *, smooth: bool, stereo: bool, tls: bool
) -> TeleopLoop:
    """Let ``drive`` move a headset that holds the tool; returns the loop, closed."""
    env = make("PickCube-v2", 1, autoreset="disabled", control="joint_pos", horizon=100_000)
    with tempfile.TemporaryDirectory() as folder, Headset(smooth=smooth) as device:
        loop = TeleopLoop(env, device, out=Path(folder) / "run.h5")
        session = HeadsetSession(loop)
        painter = Painter(session, make_renderer(renderer), width=size[0], height=size[1])
        context = tls_context(certificate_for("127.0.0.1")) if tls else None
        viewer = HeadsetViewer(session, painter, tls=context)

        def browse() -> None:
            with EmulatedHeadset(["--ignore-certificate-errors"], size=shown) as page:
                page.enter(viewer.headset_url, stereo=stereo)
                page.button("right", "squeeze", 1)
                page.wait_for("document.getElementById('state').textContent.startsWith('recording')")
                drive(page)

        looked_at(viewer, browse)
        session.close()
        loop.close()
    env.close()
    return loop


def draw(path: Path, renderer: str) -> None:
    """What the headset shows, both eyes, with the points of a depth camera."""

    def drive(page: EmulatedHeadset) -> None:
        page.evaluate("device.quaternion.set(Math.sin(-0.17), 0, 0, Math.cos(0.17))")  # looks down a little
        page.evaluate("document.getElementById('cloud').click()")
        page.put("right", 0.3, 1.26, -0.45)
        page.wait_for("headset.points > 500")
        page.wait_for("headset.pictures > 12")
        page.screenshot(path)

    with_headset(drive, renderer, (640, 480), (1200, 640), smooth=False, stereo=True, tls=False)
    print(path, file=sys.stderr)


if __name__ == "__main__":
    main()
