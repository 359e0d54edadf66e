"""Draw the picture of a recording's page: docs/images/view_recording.png.

    python docs/view_recording.py

Collects twelve episodes of PickCube with two cameras and opens the page in headless Chromium, so it needs one. Run it
when the page has changed, and look at what comes out.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS.parent / "tests" / "helpers"))

from browser import Browser  # noqa: E402
from manikin.data.recorder import Recorder  # noqa: E402
from manikin.env.make import make  # noqa: E402
from manikin.env.observe import Vision  # noqa: E402
from manikin.eval.runner import run_episodes  # noqa: E402
from manikin.policy.expert import ExpertPolicy  # noqa: E402
from manikin.view.recording import RecordingViewer  # noqa: E402
from manikin.view.sources import open_source  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="two episodes, to see that it runs")
    parser.add_argument("--out", type=Path, default=DOCS / "images", help="folder of the picture")
    options = parser.parse_args()
    count = 2 if options.quick else 12
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.h5"
        vision = Vision(cameras=("base_camera", "hand_camera"))
        env = make("PickCube-v2", min(4, count), autoreset="disabled", observe="rgb", vision=vision)
        recorder = Recorder(env, path, policy="expert", observations=True)
        run_episodes(env, ExpertPolicy(env), range(count), observers=[recorder])
        recorder.close()
        env.close()
        viewer = RecordingViewer(open_source(path))
        try:
            with Browser(size=(1200, 1080)) as page:
                page.goto(viewer.url)
                page.wait_for(f"document.querySelectorAll('#rows tr').length === {count} && episode !== null")
                page.evaluate("seek(28)")
                page.wait_for("[...document.querySelectorAll('#cameras canvas')].every(c => c.dataset.at === '28')")
                page.screenshot(options.out / "view_recording.png")
        finally:
            viewer.close()


if __name__ == "__main__":
    main()
