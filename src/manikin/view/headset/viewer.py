"""The page for a headset, beside the page of pictures and buttons."""

from __future__ import annotations

import struct
import threading
import time
from collections.abc import Mapping
from typing import Any, ClassVar

from manikin.errors import ConfigError, UnknownNameError
from manikin.render.view import view_of
from manikin.view.headset.certificate import address_in_network
from manikin.view.headset.cloud import SIZE, around_person, cloud_bytes, cloud_of
from manikin.view.headset.session import HeadsetSession
from manikin.view.picture import FREE
from manikin.view.site import Answer, as_json, with_key
from manikin.view.stream import StreamViewer

__all__ = ["CLOUDS", "HeadsetViewer"]

CLOUDS = 10.0  # clouds per second at most
WATCHED = 3.0  # without a question for this long nobody watches, and no clouds are made [s]
PATIENCE = 1.0  # how long a question for a cloud is kept open [s]
BINARY = "application/octet-stream"


class HeadsetViewer(StreamViewer):
    """Serves a :class:`HeadsetSession`. Pictures are made up to 60 times a second.

    ``/headset`` is the page. ``/headset/picture?after=N`` gives a picture newer than number N: the length of a text
    (uint32, little-endian), the text, which is JSON about the picture and the episode, and the picture as PNG; the last
    is empty where none came within a second. ``/headset/cloud?after=N&camera=NAME`` likewise gives points, see
    :func:`~manikin.view.headset.cloud.cloud_bytes`; without a name those that the picture's own camera sees.
    """

    pages: ClassVar[Mapping[str, str]] = {"/headset": "headset.html"}
    fastest = 1 / 60
    session: HeadsetSession

    def __init__(self, session: HeadsetSession, *args: Any, **options: Any) -> None:
        self._cloud_news = threading.Condition()
        self._cloud: tuple[int, bytes] = (0, b"")
        self._cloud_shown, self._cloud_due = (-1, ""), 0.0
        self._cloud_asked, self._cloud_camera = -1e9, ""
        self._cloud_error: Exception | None = None
        robot = session.env.part(0)[0].robots[0]
        self._base = robot.base_pose.double().cpu().numpy()
        super().__init__(session, *args, **options)

    @property
    def headset_url(self) -> str:
        """Address of the page for the headset."""
        url = self.url
        if self.host in ("0.0.0.0", "::"):
            url = url.replace("localhost", address_in_network())
        return with_key(f"{url}headset", self.key)

    def get(self, path: str, query: dict[str, str]) -> Answer | None:
        after = query.get("after", "")
        number = int(after) if after.isdecimal() and len(after) < 19 else -1
        if path == "/headset/picture":
            about, png = self.newest(number)
            status = self.session.status
            said = {key: about.get(key) for key in ("frame", "pose", "milliseconds", "stereo")} | {
                "hand": {k: v for k, v in status["hand"].items() if k not in ("help", "keys")},
                "word": status["word"],
                "step": status["step"],
            }
            text = as_json(said)[1]
            return 200, struct.pack("<I", len(text)) + text + (png if about["frame"] != number else b""), BINARY
        if path == "/headset/about":
            names = [name for name in self.painter.cameras if name != FREE]
            return as_json({"task": self.session.env.task.id, "cameras": names, **self.session.status["hand"]})
        if path == "/headset/cloud":
            return self._cloud_after(number, query.get("camera", ""))
        return super().get(path, query)

    def _cloud_after(self, number: int, camera: str) -> Answer:
        if camera and camera not in self.painter.cameras:
            return as_json({"error": str(UnknownNameError("camera", camera, self.painter.cameras))}, 400)
        with self._cloud_news:
            self._cloud_asked, self._cloud_camera = time.monotonic(), camera
            self._cloud_news.wait_for(lambda: self._cloud[0] > max(0, number) or self._cloud_error, PATIENCE)
            if self._cloud_error is not None:
                return as_json({"error": str(self._cloud_error)}, 400)
            made, body = self._cloud
        return 200, body if made > number else b"", BINARY

    def beside(self) -> bool:
        """Make a cloud, if one is asked for and something has changed."""
        now, camera = time.monotonic(), self._cloud_camera
        wanted = now - self._cloud_asked < WATCHED and now >= self._cloud_due
        shown = (self.session.version, camera)
        if not wanted or shown == self._cloud_shown:
            return False
        model, data = self.session.look()
        try:
            view = (
                view_of(model, data, camera, *SIZE)
                if camera and camera != FREE
                else self.painter.view(model, data, *SIZE)
            )
            points, colours = cloud_of(self.painter.renderer, model, data, view)
        except ConfigError as error:
            with self._cloud_news:
                self._cloud_error = error
                self._cloud_news.notify_all()
            return False
        placed = around_person(points, self._base, self.session.headset.hands.turn)
        spent = time.monotonic() - now
        with self._cloud_news:
            number = self._cloud[0] + 1
            self._cloud = number, cloud_bytes(number, placed, colours)
            self._cloud_news.notify_all()
        self._cloud_shown, self._cloud_due = shown, now + max(1 / CLOUDS, 3 * spent)
        return True
