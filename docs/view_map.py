"""Draw the picture of the stream page with a map: docs/images/view_map.png.

    python docs/view_map.py

TidyHouse's expert picks the first object up and carries it to its goal; on the way there the page is opened in headless
Chromium, so it needs one. Run it when the page, a floor plan or an apartment has changed, and look at what comes out:
the robot is in the plan where it is in the picture, and nothing is mirrored.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS.parent / "tests" / "helpers"))

from browser import Browser, looked_at  # noqa: E402
from manikin.env.make import make  # noqa: E402
from manikin.policy.expert import ExpertPolicy  # noqa: E402
from manikin.render import make_renderer  # noqa: E402
from manikin.view.picture import Painter  # noqa: E402
from manikin.view.session import Session  # noqa: E402
from manikin.view.stream import StreamViewer  # noqa: E402

CARRIES = "navigate to goal 0"
DRIVEN = 75  # control steps of that before the picture is taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a few steps, to see that it runs")
    parser.add_argument("--out", type=Path, default=DOCS / "images", help="folder of the picture")
    options = parser.parse_args()
    env = make("TidyHouse-v1", 1, autoreset="disabled")
    session = Session(env, ExpertPolicy, seed=0, playing=False)
    left = 3 if options.quick else DRIVEN
    while left > 0 and session.status["word"] == "running":
        session.step()
        left -= options.quick or session.status["instruction"] == CARRIES
    viewer = StreamViewer(session, Painter(session, make_renderer("rays", samples=2), width=544, height=328))

    def browse() -> None:
        with Browser(size=(1080, 600)) as page:
            page.goto(viewer.url)
            page.wait_for("document.querySelector('#over .robot') && document.getElementById('plan').naturalWidth > 0")
            page.screenshot(options.out / "view_map.png")

    looked_at(viewer, browse)
    env.close()


if __name__ == "__main__":
    main()
