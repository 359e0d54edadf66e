"""A page that shows recorded episodes: a list to choose from, cameras in step, plots. Works from the file alone."""

from __future__ import annotations

import time
from collections.abc import Callable

from manikin.errors import ManikinError
from manikin.render.files.video import encode_png
from manikin.view.site import Answer, Handler, Site, as_json
from manikin.view.sources import EpisodeSource

__all__ = ["RecordingViewer"]


class RecordingViewer(Site):
    """Serves a recording to browsers over HTTP; nothing can be changed from there.

    Args:
        source: of :func:`manikin.view.sources.open_source`; closed with the viewer.
        host: address to listen on.
        port: 0 is the first free one from 8080 on.

    Raises:
        ConfigError: the port is taken.
    """

    def __init__(self, source: EpisodeSource, *, host: str = "127.0.0.1", port: int = 0) -> None:
        super().__init__("recording.html", host=host, port=port, handler=Handler)
        self.source = source
        self.open()

    def run(self, stop: Callable[[], bool] = lambda: False) -> None:
        """Wait until ``stop()``; threads answer."""
        while not stop():
            time.sleep(0.05)

    def close(self) -> None:
        """Stop serving. Idempotent."""
        super().close()
        self.source.close()

    def get(self, path: str, query: dict[str, str]) -> Answer | None:
        """The list, an episode, a picture; what is wrong with the file in words."""
        try:
            if path == "/list":
                return as_json(self.source.about())
            if path == "/episode":
                return as_json(self.source.episode(_number(query, "number")))
            if path == "/picture.png":
                image = self.source.picture(_number(query, "number"), query.get("camera", ""), _number(query, "at"))
                return 200, encode_png(image, level=1), "image/png"
        except ManikinError as error:
            return as_json({"error": str(error)}, 404)
        return None


def _number(query: dict[str, str], name: str) -> int:
    word = query.get(name, "")
    return int(word) if word.isdecimal() and len(word) < 19 else -1
