"""A page of pictures and buttons, for any browser and any machine: rendered here, sent as PNG, no WebGL needed."""

from __future__ import annotations

import hmac
import ipaddress
import json
import logging
import secrets
import socket
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from typing import Any
from urllib.parse import parse_qs, urlsplit

import numpy as np

from manikin.errors import ConfigError, ManikinError
from manikin.render.video import encode_png
from manikin.view.picture import Painter
from manikin.view.session import Session

__all__ = ["StreamViewer", "bound", "is_loopback"]

log = logging.getLogger(__name__)

LARGEST = 10_000  # of a request's body [bytes]
FASTEST = 1 / 30  # between pictures [s]
PATIENCE = 1.0  # how long a question for news is kept open [s]
WATCHED = 3.0  # without a question for this long nobody watches, and no pictures are made [s]
FIRST_PORT, PORTS = 8080, 64
PICTURE = ("camera", "forces", "tiles", "move")  # what the painter is asked, the rest is for the session


def is_loopback(host: str) -> bool:
    """Whether an address is reached from this machine only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def bound(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 is the first free one from 8080 on.

    Raises:
        ConfigError: the port is taken, or this machine has no such address.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    last: OSError | None = None
    for candidate in [port] if port else range(FIRST_PORT, FIRST_PORT + PORTS):
        listening = socket.socket(family, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((host, candidate))
            listening.listen()
            return listening
        except (OSError, OverflowError) as error:
            listening.close()
            last = error if isinstance(error, OSError) else OSError(str(error))
    raise ConfigError(f"cannot listen on {host} port {port or f'{FIRST_PORT} and following'}: {last}")


class StreamViewer:
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

    Raises:
        ConfigError: the port is taken.
    """

    def __init__(self, session: Session, painter: Painter, *, host: str = "127.0.0.1", port: int = 0) -> None:
        self.session, self.painter, self.host = session, painter, host
        self.token, self._nonce = secrets.token_urlsafe(16), secrets.token_urlsafe(16)
        listening = bound(host, port)
        self.port: int = listening.getsockname()[1]
        self._server = ThreadingHTTPServer((host, self.port), _Handler, bind_and_activate=False)
        self._server.socket.close()
        self._server.socket, self._server.daemon_threads = listening, True
        self._server.viewer = self  # type: ignore[attr-defined]
        self._news = threading.Condition()
        self._frame, self._shown, self._asked_at = 0, (-1, -1), time.monotonic()
        self._changes = 0  # of the painter
        self._picture: dict[str, Any] = {}
        self._status: dict[str, Any] = {}
        self._image: np.ndarray = np.zeros((1, 1, 3), np.uint8)
        self._png: tuple[int, bytes] = (-1, b"")
        self._png_lock = threading.Lock()
        self._next_paint = 0.0
        self._paint()
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.1,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """Address of the page."""
        name = "localhost" if is_loopback(self.host) or self.host in ("0.0.0.0", "::") else self.host
        return f"http://{f'[{name}]' if ':' in name else name}:{self.port}/"

    def run(self, stop: Callable[[], bool] = lambda: False) -> None:
        """Let time pass and make pictures until ``stop()``. The thread that calls this owns the simulation."""
        while not stop():
            pause = self.session.advance()
            now = time.monotonic()
            watched = now - self._asked_at < WATCHED
            if watched and now >= self._next_paint and self._shown != (self.session.version, self._changes):
                self._paint()
            else:
                time.sleep(max(pause, 0.0005))

    def close(self) -> None:
        """Stop serving. Idempotent."""
        self._server.shutdown()
        self._server.server_close()

    # ---- the thread of the simulation ------------------------------------------------------------------------------

    def _paint(self) -> None:
        began, shown = time.monotonic(), (self.session.version, self._changes)
        image, contacts = self.painter.paint()
        spent = time.monotonic() - began
        with self._news:
            self._image, self._status, self._shown = image, self.session.status, shown
            self._frame += 1
            self._picture = {"frame": self._frame, "contacts": contacts, "milliseconds": round(1000 * spent, 1)}
            self._news.notify_all()
        # half of the time at most is spent on pictures, so that physics goes on
        self._next_paint = time.monotonic() + max(FASTEST - spent, spent if self.session.playing else 0.0)

    # ---- threads that answer ---------------------------------------------------------------------------------------

    def page(self) -> bytes:
        """The page, with its token."""
        text = resources.files("manikin.view").joinpath("page.html").read_text(encoding="utf-8")
        return text.replace("{{token}}", self.token).replace("{{nonce}}", self._nonce).encode()

    @property
    def policy(self) -> str:
        """What the page may load: its own script and style, pictures and news from here, nothing from elsewhere."""
        return (
            f"default-src 'none'; script-src 'nonce-{self._nonce}'; style-src 'nonce-{self._nonce}'; "
            "img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        )

    def news(self, after: int) -> bytes:
        """What there is to show, as JSON; waits a second for a picture newer than number ``after``."""
        self._asked_at = time.monotonic()
        with self._news:
            self._news.wait_for(lambda: self._frame != after, PATIENCE)
            self._asked_at = time.monotonic()
            painter = self.painter
            chosen = {k: getattr(painter, k) for k in ("camera", "cameras", "forces", "tiles")}
            status = {**self._status, "picture": {**self._picture, **chosen, "renderer": painter.renderer.name}}
        return json.dumps(_finite(status)).encode()

    def png(self) -> bytes:
        """The newest picture."""
        with self._news:
            frame, image = self._frame, self._image
        with self._png_lock:  # several browsers share one encoding
            if self._png[0] != frame:
                self._png = (frame, encode_png(image, level=1))
            return self._png[1]

    def do(self, wish: dict[str, Any]) -> None:
        """Pass a wish on to the painter or the session; raises what they raise."""
        values = dict(wish)
        name = values.pop("wish", None)
        if name in PICTURE:
            self.painter.ask(name, **values)
            self._changes += 1
        else:
            self.session.ask(str(name), **values)

    def welcome(self, host: str | None) -> bool:
        """Whether the name by which a request reached us is one of ours."""
        if not is_loopback(self.host):
            return True  # names of this machine are not known here
        return urlsplit(f"//{host}").hostname in ("localhost", "127.0.0.1", "::1", self.host) if host else False


class _Handler(BaseHTTPRequestHandler):
    protocol_version, server_version, sys_version = "HTTP/1.1", "manikin", ""
    timeout = 60

    @property
    def viewer(self) -> StreamViewer:
        viewer: StreamViewer = self.server.viewer  # type: ignore[attr-defined]
        return viewer

    def do_GET(self) -> None:
        """The page, its pictures, its news."""
        if not self.viewer.welcome(self.headers.get("Host")):
            return self._say(421, {"error": "this server answers to localhost only"})
        where = urlsplit(self.path)
        if where.path == "/":
            return self._send(200, self.viewer.page(), "text/html; charset=utf-8")
        if where.path == "/picture.png":
            return self._send(200, self.viewer.png(), "image/png")
        if where.path == "/status":
            after = parse_qs(where.query).get("after", ["-1"])[0]
            number = int(after) if after.lstrip("-").isdecimal() and len(after) < 19 else -1
            return self._send(200, self.viewer.news(number), "application/json")
        return self._say(404, {"error": "there is nothing here; the page is at /"})

    def do_POST(self) -> None:
        """A wish."""
        given = self.headers.get("X-Manikin-Token", "")
        host, origin = self.headers.get("Host"), self.headers.get("Origin")
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > LARGEST:
            self.close_connection = True  # what follows is not read
            return self._say(413, {"error": f"a request must say its length, at most {LARGEST} bytes"})
        body = self.rfile.read(int(length))
        if not self.viewer.welcome(host):
            return self._say(421, {"error": "this server answers to localhost only"})
        if origin is not None and urlsplit(origin).netloc != host:
            return self._say(403, {"error": "the request comes from another site"})
        if not hmac.compare_digest(given.encode("latin-1", "replace"), self.viewer.token.encode()):
            return self._say(403, {"error": "the request lacks the page's token; load the page again"})
        if self.path != "/do":
            return self._say(404, {"error": "wishes go to /do"})
        try:
            wish = json.loads(body)
            if not isinstance(wish, dict):
                raise ConfigError("a wish is an object")
            self.viewer.do(wish)
        except (ManikinError, ValueError, RecursionError) as error:
            return self._say(400, {"error": str(error)})
        return self._say(200, {"ok": True})

    def _say(self, status: int, answer: dict[str, Any]) -> None:
        self._send(status, json.dumps(answer).encode(), "application/json")

    def _send(self, status: int, body: bytes, kind: str) -> None:
        try:
            self.send_response(status)
            for name, value in (
                ("Content-Type", kind),
                ("Content-Length", str(len(body))),
                ("Cache-Control", "no-store"),
                ("Content-Security-Policy", self.viewer.policy),
                ("Cross-Origin-Resource-Policy", "same-origin"),
                ("Referrer-Policy", "no-referrer"),
                ("X-Content-Type-Options", "nosniff"),
            ):
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True  # the browser has left

    def log_message(self, format: str, *args: Any) -> None:
        log.debug(format, *args)


def _finite(value: Any) -> Any:
    """JSON has no infinities and no NaN: null stands for them. Floats are rounded to what people read."""
    if isinstance(value, float):
        return round(value, 5) if np.isfinite(value) else None
    if isinstance(value, dict):
        return {k: _finite(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(v) for v in value]
    return value
