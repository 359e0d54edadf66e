"""Private parts of MuJoCo Studio, the viewer in the browser: its server, its sockets and its choice of a camera."""

from __future__ import annotations

import gc
import socket
import weakref
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from mujoco.studio import app as studio_app
from mujoco.studio import ux, web_viewer
from mujoco.studio.web import web_server

__all__ = ["Guard", "choose_camera", "free_plugins", "guarded_viewer", "listening_address"]


class Guard(Protocol):
    """What is checked of a request before Studio answers it."""

    def refusal(self, address: str, path: str, headers: Mapping[str, str]) -> tuple[int, str] | None:
        """From a server's address and a request's path and headers, the status and the text that refuse it, or None
        where it may pass."""

    def cookie(self, path: str) -> str | None:
        """What the answer's ``Set-Cookie`` says; None for none."""


guards: weakref.WeakKeyDictionary[socket.socket, Guard] = weakref.WeakKeyDictionary()


def checked_serve(serve: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap the function that starts Studio's server: sockets with a guard check each request first."""

    def start(*args: Any, sock: socket.socket, process_request: Callable[..., Any], **options: Any) -> Any:
        address, guard = sock.getsockname()[0], guards.get(sock)

        def check(connection: Any, request: Any) -> Any:
            if guard is None:
                return process_request(connection, request)
            if refused := guard.refusal(address, request.path, request.headers):
                return connection.respond(*refused)
            answer, cookie = process_request(connection, request), guard.cookie(request.path)
            if answer is not None and cookie:
                answer.headers["Set-Cookie"] = cookie
            return answer

        return serve(*args, sock=sock, process_request=check, **options)

    return start


if not hasattr(web_server.serve, "checked"):  # once, also where this module is loaded again
    web_server.serve = checked_serve(web_server.serve)
    web_server.serve.checked = True


class _GuardedViewer(web_viewer.WebViewer):  # type: ignore[misc]
    """Studio's web viewer listens on every interface and answers pages of any site; this one listens on ``address`` and
    has a ``guard``."""

    address: str
    guard: Guard

    def _start_server(self) -> None:
        guards[self._http_sock] = type(self).guard
        self._http_sock.listen()  # the first request waits until the server runs
        super()._start_server()

    @property
    def _host(self) -> str:
        return self.address

    @_host.setter
    def _host(self, value: str) -> None:
        """What Studio would choose is ignored."""


def guarded_viewer(address: str, guard: Guard) -> type:
    """Studio's web viewer as a class that listens on ``address`` and refuses requests."""
    return type("Viewer", (_GuardedViewer,), {"address": address, "guard": guard})


def listening_address(viewer: Any) -> str:
    """The address that a viewer's server really listens on."""
    return str(viewer._http_sock.getsockname()[0])


def choose_camera(viewer: Any, number: int) -> None:
    """Look through camera ``number`` of the model, or freely if it is negative. Studio remembers the choice in its app
    plugin, which draws a box for it."""
    app = next((p for p in viewer.plugins.plugins if isinstance(p, studio_app.App)), None)
    chosen = ux.set_camera(viewer.model, viewer.camera, ux.TUMBLE_CAMERA_IDX if number < 0 else number)
    if app is not None:
        app.ux_state.camera_index = chosen


def free_plugins(plugins: Iterable[Any]) -> None:
    """Free the viewer of these plugins now. Studio's interface has one context per process: a closed viewer that the
    garbage collector frees later would take the next viewer's along, and end the process."""
    for plugin in plugins:
        plugin.viewer = None
    gc.collect()
