"""A page of pictures and buttons, for any browser and any machine: rendered here, sent as PNG, no WebGL needed."""

from __future__ import annotations

import hmac
import json
import queue
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np

from manikin.errors import ConfigError, ManikinError
from manikin.render.files.video import encode_png
from manikin.view.picture import Painter
from manikin.view.session import Session
from manikin.view.site import Answer, Handler, Site, as_json, from_elsewhere

__all__ = ["StreamViewer"]

LARGEST = 10_000  # of a request's body [bytes]
PATIENCE = 1.0  # how long a question for news is kept open [s]
WATCHED = 3.0  # without a question for this long nobody watches, and no pictures are made [s]
PUSH_S = 0.2  # how long a body that was pulled with the mouse is pushed [s]


class StreamViewer(Site):
    """Serves a session to browsers over HTTP.

    Only pages that this server has sent can change anything: a request that does must carry the page's token and come
    from the same origin. On a loopback address (the default) requests are answered only if they were made by a
    loopback name, so that no other site's name can be pointed here.

    Make it and call :meth:`run` in one thread: OpenGL's pictures are bound to the thread that made the first.

    Args:
        session: what is shown.
        painter: makes its pictures.
        host: address to listen on.
        port: 0 is the first free one from 8080 on.
        tls: encrypts what is served; None serves plain HTTP.

    Raises:
        ConfigError: the port is taken.
    """

    pages: ClassVar[Mapping[str, str]] = {}  # beside the first, by their paths
    fastest = 1 / 30  # [s] between pictures

    def __init__(
        self,
        session: Session,
        painter: Painter,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        super().__init__("page.html", host=host, port=port, handler=_Handler, more=self.pages, tls=tls)
        self.session, self.painter = session, painter
        self._news = threading.Condition()
        self._frame, self._shown, self._asked_at = 0, (-1, -1), time.monotonic()
        self._changes = 0  # of the painter
        self._picture: dict[str, Any] = {}
        self._status: dict[str, Any] = {}
        self._image: np.ndarray = np.zeros((1, 1, 3), np.uint8)
        self._pulls: queue.SimpleQueue[dict[str, float]] = queue.SimpleQueue()
        self._png: tuple[int, bytes] = (-1, b"")
        self._png_lock = threading.Lock()
        self._next_paint = 0.0
        self._paint()
        self.open()

    def run(self, stop: Callable[[], bool] = lambda: False) -> None:
        """Let time pass and make pictures until ``stop()``. The thread that calls this owns the simulation."""
        while not stop():
            while not self._pulls.empty():
                if (touched := self.painter.touched(**self._pulls.get())) is not None:
                    self.session.ask("push", body=touched[0], force=touched[1], seconds=PUSH_S)
            pause = self.session.advance()
            now = time.monotonic()
            watched = now - self._asked_at < WATCHED
            news = self.session.moves or self._shown != (self.session.version, self._changes)
            if watched and news and now >= self._next_paint:
                self._paint()
            elif not self.beside():
                time.sleep(max(pause, 0.0005))

    # ---- the thread of the simulation ------------------------------------------------------------------------------

    def beside(self) -> bool:
        """Make what is shown beside pictures, where it is time to; whether anything was made."""
        return False

    def _paint(self) -> None:
        began, shown = time.monotonic(), (self.session.version, self._changes)
        image, contacts = self.painter.paint()
        spent = time.monotonic() - began
        with self._news:
            self._image, self._status, self._shown = image, self.session.status, shown
            self._frame += 1
            about = {"frame": self._frame, "contacts": contacts, "milliseconds": round(1000 * spent, 1)}
            both = image.shape[1] == 2 * self.painter.width  # eyes, as it was painted
            self._picture = {**about, "stereo": both, **self.session.pictured}
            self._news.notify_all()
        # half of the time at most is spent on pictures, so that physics goes on
        self._next_paint = time.monotonic() + max(self.fastest - spent, spent if self.session.playing else 0.0)

    # ---- threads that answer ---------------------------------------------------------------------------------------

    def get(self, path: str, query: dict[str, str]) -> Answer | None:
        """Its pictures, its news, its floor plans."""
        if path == "/picture.png":
            return 200, self.png(), "image/png"
        if path == "/status":
            after = query.get("after", "-1")
            return self.news(int(after) if after.lstrip("-").isdecimal() and len(after) < 19 else -1)
        if path == "/plan.svg":
            number = query.get("number", "")
            homes = self.session.map
            known = homes is not None and number.isdecimal() and len(number) < 9
            svg = homes.svg(int(number)) if homes is not None and known else None
            return None if svg is None else (200, svg.encode(), "image/svg+xml")
        return None

    def news(self, after: int) -> Answer:
        """What there is to show, as JSON; waits a second for a picture newer than number ``after``."""
        self._asked_at = time.monotonic()
        with self._news:
            self._news.wait_for(lambda: self._frame != after, PATIENCE)
            self._asked_at = time.monotonic()
            painter = self.painter
            chosen = {k: getattr(painter, k) for k in ("camera", "cameras", "forces", "tiles")}
            status = {**self._status, "picture": {**self._picture, **chosen, "renderer": painter.renderer.name}}
        return as_json(status)

    def png(self) -> bytes:
        """The newest picture."""
        return self.newest()[1]

    def newest(self, after: int | None = None) -> tuple[dict[str, Any], bytes]:
        """What is known of the newest picture, and the picture; waits a second for one newer than number ``after``."""
        with self._news:
            if after is not None:
                self._asked_at = time.monotonic()
                self._news.wait_for(lambda: self._frame != after, PATIENCE)
                self._asked_at = time.monotonic()
            about, image = self._picture, self._image
        with self._png_lock:  # several browsers share one encoding
            if self._png[0] != about["frame"]:
                self._png = (about["frame"], encode_png(image, level=1))
            return about, self._png[1]

    def do(self, wish: dict[str, Any]) -> None:
        """Pass a wish on to the painter or the session; raises what they raise."""
        values = dict(wish)
        name = values.pop("wish", None)
        if name in self.painter.wishes:
            self.painter.ask(name, **values)
            self._changes += 1
        elif name == "pull" and "push" in self.session.wishes:
            self._pulls.put(_pull(values))
        else:
            self.session.ask(str(name), **values)


def _pull(values: dict[str, Any]) -> dict[str, float]:
    for name in ("x", "y", "right", "up"):
        value = values.get(name)
        if not isinstance(value, int | float) or isinstance(value, bool) or not abs(value) <= 10:
            raise ConfigError(f"pull takes x, y, right and up as fractions of the picture; {name} is {value!r}")
    return {name: float(values[name]) for name in ("x", "y", "right", "up")}


class _Handler(Handler):
    @property
    def viewer(self) -> StreamViewer:
        viewer: StreamViewer = self.server.site  # type: ignore[attr-defined]
        return viewer

    def do_POST(self) -> None:
        """A wish."""
        given = self.headers.get("X-Manikin-Token", "")
        host, origin = self.headers.get("Host"), self.headers.get("Origin")
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > LARGEST:
            self.close_connection = True  # what follows is not read
            return self.say(413, {"error": f"a request must say its length, at most {LARGEST} bytes"})
        body = self.rfile.read(int(length))
        if not self.viewer.welcome(host):
            return self.say(421, {"error": "this server answers to localhost only"})
        if from_elsewhere(origin, host):
            return self.say(403, {"error": "the request comes from another site"})
        if not hmac.compare_digest(given.encode("latin-1", "replace"), self.viewer.token.encode()):
            return self.say(403, {"error": "the request lacks the page's token; load the page again"})
        if self.path != "/do":
            return self.say(404, {"error": "wishes go to /do"})
        try:
            wish = json.loads(body)
            if not isinstance(wish, dict):
                raise ConfigError("a wish is an object")
            self.viewer.do(wish)
        except (ManikinError, ValueError, RecursionError) as error:
            return self.say(400, {"error": str(error)})
        return self.say(200, {"ok": True})
