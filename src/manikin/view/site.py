"""A page served to browsers on this machine: what the pages of a live task and of a recording have in common.

On a loopback address (the default) requests are answered only if they were made by a loopback name, so that no other
site's name can be pointed here; a page may load nothing from elsewhere. On other addresses requests need a key.
"""

from __future__ import annotations

import ipaddress
import json
import logging
import math
import secrets
import socket
import ssl
import sys
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from typing import Any
from urllib.parse import parse_qs, urlsplit

from manikin.errors import ConfigError

__all__ = [
    "Answer",
    "Handler",
    "Site",
    "as_json",
    "bound",
    "called_by_name",
    "from_elsewhere",
    "is_loopback",
    "key_cookie",
    "key_for",
    "lacks_key",
    "page_url",
    "with_key",
]

log = logging.getLogger(__name__)

FIRST_PORT, PORTS = 8080, 64
_COOKIE = "manikin-{}"

Answer = tuple[int, bytes, str]
"""Status, body, kind of content."""


def is_loopback(host: str) -> bool:
    """Whether an address is reached from this machine only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def called_by_name(host: str | None, address: str) -> bool:
    """Whether a request's ``Host`` is a name of the ``address`` that is listened on, and not of a site that points its
    own name here. Of other addresses than loopback the names are not known, and any will do."""
    if not is_loopback(address):
        return True
    try:
        return bool(host) and urlsplit(f"//{host}").hostname in ("localhost", "127.0.0.1", "::1", address)
    except ValueError:
        return False


def from_elsewhere(origin: str | None, host: str | None) -> bool:
    """Whether a request was made by a page of another site: its ``Origin`` is not the ``Host`` that it asks."""
    try:
        return origin is not None and urlsplit(origin).netloc != host
    except ValueError:
        return True


def key_for(host: str) -> str | None:
    """A key for the pages of an address, drawn anew; None where only this machine can reach it."""
    return None if is_loopback(host) else secrets.token_urlsafe(16)


def lacks_key(key: str | None, port: int, path: str, cookies: str | None) -> bool:
    """Whether a request has not the key that is wanted: neither in its address, ``/?key=...``, nor in the cookie that
    :func:`key_cookie` set."""
    if key is None:
        return False
    named = f"{_COOKIE.format(port)}="
    kept = [one.strip().removeprefix(named) for one in (cookies or "").split(";") if one.strip().startswith(named)]
    return not any(
        secrets.compare_digest(said.encode("utf-8", "replace"), key.encode()) for said in (_said_key(path), *kept)
    )


def key_cookie(key: str | None, port: int, path: str) -> str | None:
    """The value of ``Set-Cookie`` for the answer to a request with the key in its address, so that what the page asks
    for has it too; None for others. Cookies are those of all ports of a machine, so each port has one of its own."""
    if key is None or not _said_key(path) or lacks_key(key, port, path, None):
        return None
    return f"{_COOKIE.format(port)}={key}; HttpOnly; SameSite=Strict; Path=/"


def _said_key(path: str) -> str:
    return parse_qs(urlsplit(path).query).get("key", [""])[0]


def page_url(host: str, port: int, *, tls: bool = False) -> str:
    """The address of a page on this machine; of one that all addresses reach, by the name ``localhost``."""
    name = "localhost" if is_loopback(host) or host in ("0.0.0.0", "::") else host
    return f"http{'s' * tls}://{f'[{name}]' if ':' in name else name}:{port}/"


def with_key(url: str, key: str | None) -> str:
    """An address with the key that it needs, for people who may come."""
    return url if key is None else f"{url}?key={key}"


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


def as_json(value: Any, status: int = 200) -> Answer:
    """An answer in JSON, which has no infinities and no NaN: null stands for them. Floats are rounded to what people
    read."""
    return status, json.dumps(_finite(value)).encode(), "application/json"


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 5) if math.isfinite(value) else None
    if isinstance(value, dict):
        return {k: _finite(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(v) for v in value]
    return value


class Site:
    """Serves one page and what it asks for, from threads of its own, until closed.

    Args:
        page: name of the page's file in this folder.
        host: address to listen on.
        port: 0 is the first free one from 8080 on.
        handler: answers requests.
        more: other pages, by their paths.
        tls: encrypts what is served, with a certificate that it has loaded; None serves plain HTTP.
        key: who asks must have it; None for :func:`key_for`.

    Raises:
        ConfigError: the port is taken.
    """

    def __init__(
        self,
        page: str,
        *,
        host: str,
        port: int,
        handler: type[Handler],
        more: Mapping[str, str] | None = None,
        tls: ssl.SSLContext | None = None,
        key: str | None = None,
    ) -> None:
        self.host, self.tls, self._pages = host, tls, {"/": page, **(more or {})}
        self.key = key_for(host) if key is None else key
        self.token, self._nonce = secrets.token_urlsafe(16), secrets.token_urlsafe(16)
        listening = bound(host, port)
        self.port: int = listening.getsockname()[1]
        if tls is not None:  # the threads that answer shake hands, so that a slow one keeps nobody else waiting
            listening = tls.wrap_socket(listening, server_side=True, do_handshake_on_connect=False)
        self.server = _Server((host, self.port), handler, bind_and_activate=False)
        self.server.socket.close()
        self.server.socket, self.server.daemon_threads = listening, True
        self.server.site = self  # type: ignore[attr-defined]
        self._thread = threading.Thread(target=self.server.serve_forever, args=(0.1,), daemon=True)

    def open(self) -> None:
        """Begin to answer."""
        self._thread.start()

    def close(self) -> None:
        """Stop serving. Idempotent."""
        if self._thread.is_alive():
            self.server.shutdown()
        self.server.server_close()

    @property
    def url(self) -> str:
        """Address of the page."""
        return page_url(self.host, self.port, tls=self.tls is not None)

    @property
    def link(self) -> str:
        """Address of the page with its key, for people who may come."""
        return with_key(self.url, self.key)

    @property
    def policy(self) -> str:
        """What the page may load: its own script and style, pictures and news from here, nothing from elsewhere."""
        return (
            f"default-src 'none'; script-src 'nonce-{self._nonce}'; style-src 'nonce-{self._nonce}'; "
            "img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        )

    def policy_for(self, path: str) -> str:
        """What the page at a path may load."""
        return self.policy

    def page(self, path: str = "/") -> bytes | None:
        """The page at a path, with its token; None where there is none."""
        if path not in self._pages:
            return None
        folder = resources.files("manikin.view") / "pages"
        text, theme = (folder.joinpath(name).read_text(encoding="utf-8") for name in (self._pages[path], "theme.css"))
        for word, value in (("theme", theme.rstrip()), ("token", self.token), ("nonce", self._nonce)):
            text = text.replace("{{" + word + "}}", value)
        return text.encode()

    def get(self, path: str, query: dict[str, str]) -> Answer | None:
        """What there is at a path other than those of pages; None for nothing. Called from many threads."""
        raise NotImplementedError

    def welcome(self, host: str | None) -> bool:
        """Whether the name by which a request reached us is one of ours."""
        return called_by_name(host, self.host)


class _Server(ThreadingHTTPServer):
    """A connection that breaks is no news for the terminal."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        if isinstance(sys.exc_info()[1], OSError):  # also of a handshake that failed
            log.debug("a connection from %s broke", client_address, exc_info=True)
        else:
            super().handle_error(request, client_address)


class Handler(BaseHTTPRequestHandler):
    """Answers GET for a :class:`Site`."""

    protocol_version, server_version, sys_version = "HTTP/1.1", "manikin", ""
    timeout = 60
    disable_nagle_algorithm = True  # an answer goes out in two pieces, and the second is not to wait for the first

    @property
    def site(self) -> Site:
        site: Site = self.server.site  # type: ignore[attr-defined]
        return site

    def do_GET(self) -> None:
        """The page, and what it asks for."""
        if not self.site.welcome(self.headers.get("Host")):
            return self.say(421, {"error": "this server answers to localhost only"})
        if lacks_key(self.site.key, self.site.port, self.path, self.headers.get("Cookie")):
            return self.say(401, {"error": "the address lacks its key: /?key=..."})
        where = urlsplit(self.path)
        page = self.site.page(where.path)
        if page is not None:
            return self.send(200, page, "text/html; charset=utf-8")
        found = self.site.get(where.path, {name: values[0] for name, values in parse_qs(where.query).items()})
        if found is None:
            return self.say(404, {"error": "there is nothing here; the page is at /"})
        return self.send(*found)

    def say(self, status: int, answer: dict[str, Any]) -> None:
        """Answer in JSON."""
        self.send(*as_json(answer, status))

    def send(self, status: int, body: bytes, kind: str) -> None:
        """Answer."""
        try:
            self.send_response(status)
            for name, value in (
                ("Content-Type", kind),
                ("Content-Length", str(len(body))),
                ("Cache-Control", "no-store"),
                ("Content-Security-Policy", self.site.policy_for(urlsplit(self.path).path)),
                ("Cross-Origin-Resource-Policy", "same-origin"),
                ("Referrer-Policy", "no-referrer"),
                ("X-Content-Type-Options", "nosniff"),
            ):
                self.send_header(name, value)
            if cookie := key_cookie(self.site.key, self.site.port, self.path):
                self.send_header("Set-Cookie", cookie)
            self.end_headers()
            self.wfile.write(body)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True  # the browser has left

    def log_message(self, format: str, *args: Any) -> None:
        log.debug(format, *args)
