"""Policy servers that answer anything, and browsers that ask manikin's pages anything."""

from __future__ import annotations

import contextlib
import json
import socket
import socketserver
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from fuzz_values import PLAIN, Case, Draw, changed_bytes, chosen, shown

import manikin
import manikin.policy.remote.client
from manikin.data.recorder import Recorder
from manikin.errors import ManikinError
from manikin.eval.runner import run_episodes
from manikin.policy.random_policy import RandomPolicy
from manikin.policy.remote.client import RemotePolicy
from manikin.policy.remote.wire import pack
from manikin.render import make_renderer
from manikin.view.picture import Painter
from manikin.view.recording import RecordingViewer
from manikin.view.session import Session
from manikin.view.sources import open_source
from manikin.view.stream import StreamViewer
from policy_server import Server

PATIENCE = 2.0  # [s] for an answer


class Servers:
    def __init__(self, folder: Path) -> None:
        manikin.policy.remote.client.TIMEOUT = PATIENCE
        self.env = manikin.make("PushCube-v2", 2, autoreset="disabled", horizon=3, observe="policy")
        self.seen = self.env.reset(seed=0)[0]
        self.size = self.env.single_action_space.shape[0]
        self.answers: list[Any] = []
        self.server = Server(lambda request: self.answers)
        recorder = Recorder(self.env, folder / "served.h5", policy="random")
        run_episodes(self.env, RandomPolicy(self.env), range(2), observers=[recorder])
        recorder.close()
        session = Session(manikin.make("PushCube-v2", 1, autoreset="disabled"), RandomPolicy)
        self.pages = [
            RecordingViewer(open_source(folder / "served.h5")),
            StreamViewer(session, Painter(session, make_renderer("rays"), width=16, height=16)),
        ]
        self.failed: list[BaseException] = []
        socketserver.BaseServer.handle_error = self._note  # type: ignore[method-assign]

    def _note(self, server: Any, request: Any, address: Any) -> None:
        """What a handler let through, but that the other side hung up."""
        error = sys.exc_info()[1]
        if error is not None and not isinstance(error, ConnectionError):
            self.failed.append(error)

    def case(self, draw: Draw) -> Case:
        return self._policy(draw) if draw.random() < 0.5 else self._page(draw)

    # ---- a policy server -----------------------------------------------------------------------------------------

    def _policy(self, draw: Draw) -> Case:
        good = {"actions": np.zeros((2, self.size), np.float32)}
        kinds: dict[str, Any] = {
            "bytes": lambda: changed_bytes(draw, pack(good))[1],
            "text": lambda: str(chosen(draw, PLAIN)),
            "hang up": lambda: None,
            "value": lambda: _sendable(chosen(draw, PLAIN)),
            "actions": lambda: {"actions": _sendable(chosen(draw, PLAIN))},
            "shape": lambda: {"actions": np.zeros(draw.integers(0, 9, int(draw.integers(0, 4))), np.float32)},
            "kind": lambda: {
                "actions": good["actions"].astype(chosen(draw, ["S3", "i8", "u1", "?", "f2", "U4", "M8[s]"]))
            },
            "not finite": lambda: {
                "actions": np.full((1, self.size), chosen(draw, [np.nan, np.inf, 1e30]), np.float64)
            },
            "steps": lambda: {"actions": np.zeros((int(draw.integers(900, 20_000)), self.size), np.float32)},
            "large": lambda: b"\0" * int(2 ** draw.uniform(20, 24)),
            "good": lambda: good,
        }
        metadata = _sendable(chosen(draw, [{"model": "x"}, {"request_id": True}, *PLAIN]))
        names = [chosen(draw, list(kinds)) for _ in range(int(draw.integers(1, 4)))]
        answers = [kinds[name]() for name in names]

        def trial() -> None:
            self.server.metadata, self.answers[:] = metadata, answers
            policy = RemotePolicy(self.server.url)
            try:
                for _ in range(2):
                    actions = policy.act(self.seen, self.env.instruction)
                    if actions.shape[0] != 2 or not torch.isfinite(actions).all():
                        raise AssertionError(f"it gave {actions.shape}")
            finally:
                policy.close()

        return f"policy server: {', '.join(names)}, metadata {shown(metadata)}", trial

    # ---- a page ----------------------------------------------------------------------------------------------------

    def _page(self, draw: Draw) -> Case:
        page = chosen(draw, self.pages)
        path = chosen(draw, ["/", "/list", "/episode?number=X", "/picture?number=0&camera=X&at=X", "/status?after=X"])
        path = chosen(draw, [path, "/picture.png", "/do", "/X", "/../../etc/passwd", "//[::1", "/?" + "a" * 70_000])
        word = str(chosen(draw, PLAIN)).replace("\n", "%0a")
        host = chosen(draw, [f"127.0.0.1:{page.port}"] * 4 + ["evil.example", "", "[", "\xff"])
        wish = chosen(draw, ["reset", "play", "move", "camera", "push", "speed", "task", "seed", "X"])
        wished = json.dumps({"wish": wish, "value": word, "name": word})
        body = chosen(draw, [wished, wished.replace('"', ""), "[X]", "{", "X", "[" * 9000]).replace("X", word)
        token = chosen(draw, [page.token, "X"])
        head = f"{chosen(draw, ['GET', 'POST', 'POST', 'PUT', 'HEAD', 'X'])} {path.replace('X', word)} HTTP/1.1\r\n"
        head += f"Host: {host}\r\nX-Manikin-Token: {token}\r\nConnection: close\r\n"
        length = chosen(draw, [str(len(body.encode()))] * 4 + ["X", "-1", "99999999999"])
        head += f"Content-Length: {length}\r\n\r\n"
        request = (head + body).encode("utf-8", "replace")
        if draw.random() < 0.3:
            request = changed_bytes(draw, request)[1]

        def trial() -> None:
            self.failed.clear()
            address = ("127.0.0.1", page.port)
            with contextlib.suppress(ConnectionError), socket.create_connection(address, timeout=PATIENCE) as asking:
                asking.sendall(request)
                with contextlib.suppress(OSError):  # it has hung up
                    asking.shutdown(socket.SHUT_WR)
                while asking.recv(65_536):
                    pass
            if isinstance(page, StreamViewer):  # wishes are granted by the thread that owns the simulation
                turns = iter([False] * 3)
                with contextlib.suppress(ManikinError):
                    page.run(lambda: next(turns, True))
            if self.failed:
                raise self.failed[0]

        return f"{type(page).__name__}: {shown(head)}", trial


def _sendable(value: Any) -> Any:
    """msgpack has whole numbers of 64 bits."""
    return value if not isinstance(value, int) or -(2**63) <= value < 2**64 else str(value)[:50]
