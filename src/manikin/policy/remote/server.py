"""A policy behind a websocket, for others to ask: openpi's protocol, the other side of the client."""

from __future__ import annotations

import hmac
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from manikin.errors import AssetError, ConfigError, DataError, ManikinError
from manikin.policy.api import Policy
from manikin.policy.remote.batching import Batcher, Metrics
from manikin.policy.remote.wire import pack, unpack

__all__ = ["PolicyServer"]

LARGEST = 2**26  # [bytes] of a request: dozens of pictures
MOST = 64  # rows of a request
_DRAIN = 10.0  # [s] for answers to be sent when the server stops


class PolicyServer:
    """Answers requests of one row each with the policy's next actions (H, A).

    A client connects, is sent the metadata, and then sends one dictionary after another: the row's observation by name
    (a flat one is ``state``), ``prompt`` (the instruction), and by choice ``request_id``, which comes back with the
    answer. With ``batch`` several rows may come in one request, ``{"rows": [row, ...]}``, as many as ``batch`` of the
    metadata says; its answer is (rows, H, A). Requests of several clients are then answered together, too. A request
    that cannot be answered gets a text that says why, and the connection ends.

    ``GET /healthz`` says OK, and 503 while the server stops. ``GET /metrics`` has numbers for Prometheus; with a key it
    wants that.

    Args:
        policy: stateless: one whose answer depends on the observation alone.
        shapes: the observation's shape by name; requests with others are refused.
        metadata: what clients are told first.
        host: address to listen on; only this machine by default.
        port: 0 for a free one.
        batch: take several rows in a request. For a policy whose answer to a row has the same bits whatever rows it is
            asked with, as :class:`~manikin.policy.network.NetworkPolicy`; else results depend on how many run at once.
        key: clients must send ``Authorization: Api-Key KEY``; None for no key.

    Attributes:
        port, url: where it listens.
        metrics: what it did so far.

    Raises:
        AssetError: msgpack or websockets is not installed.
        ConfigError: the policy keeps memory of episodes, or the address is in use.
    """

    def __init__(
        self,
        policy: Policy,
        shapes: Mapping[str, Sequence[int]],
        *,
        metadata: Mapping[str, Any] | None = None,
        host: str = "127.0.0.1",
        port: int = 8000,
        key: str | None = None,
        batch: bool = False,
    ) -> None:
        try:
            from websockets.sync.server import serve
        except ImportError as error:
            raise AssetError(f"a policy server needs websockets ({error}): pip install 'manikin[remote]'") from None
        if not getattr(policy, "stateless", False):
            raise ConfigError("only a stateless policy can be served: the protocol does not say when episodes begin")
        self._policy, self._key = policy, key
        self._shapes = {name: tuple(shape) for name, shape in shapes.items()}
        sizes = [4 * int(np.prod(shape)) for shape in self._shapes.values()]
        self._most = max(1, min(MOST, LARGEST // (2 * max(1, sum(sizes))))) if batch else 1
        self._metadata = {**(metadata or {}), "request_id": True, **({"batch": self._most} if batch else {})}
        pack(self._metadata)  # can be sent
        self.metrics, self._stops = Metrics(), False
        self._busy, self._sent = 0, threading.Condition()
        self._connections: set[Any] = set()
        try:
            self._server = serve(
                self._talk, host, port, compression=None, max_size=LARGEST, process_request=self._enter
            )
        except OSError as error:
            raise ConfigError(f"cannot listen on {host}:{port}: {error.strerror}") from None
        self._batcher = Batcher(self._act, self._most, self.metrics)
        self.port = int(self._server.socket.getsockname()[1])
        self.url = f"ws://{host}:{self.port}"

    def serve_forever(self) -> None:
        """Answer until :meth:`close`."""
        self._server.serve_forever()

    def close(self) -> None:
        """Take no new connections, answer what was asked, and stop."""
        self._stops = True
        self._server.shutdown()
        self._batcher.close()
        with self._sent:  # what was answered goes out first
            self._sent.wait_for(lambda: not self._busy, timeout=_DRAIN)
        for connection in list(self._connections):
            connection.close(1001, "the server stops")

    def __enter__(self) -> PolicyServer:
        self._thread = threading.Thread(target=self.serve_forever, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        self._thread.join()

    def _enter(self, connection: Any, request: Any) -> Any:
        """Who may connect; and the two pages that are no websocket: ``/healthz``, open to all, and ``/metrics``."""
        if request.path == "/healthz":
            return connection.respond(503, "it stops\n") if self._stops else connection.respond(200, "OK\n")
        if self._key is not None:
            given = request.headers.get("Authorization") or ""
            if not hmac.compare_digest(given.encode(), f"Api-Key {self._key}".encode()):
                return connection.respond(401, "this policy server wants a key: Authorization: Api-Key KEY\n")
        if request.path == "/metrics":
            return connection.respond(200, self.metrics.text())
        return None

    def _talk(self, connection: Any) -> None:
        from websockets.exceptions import ConnectionClosed

        self._connections.add(connection)
        self.metrics.connected(1)
        try:
            connection.send(pack(self._metadata))
            for message in connection:
                with self._answering():
                    began = time.perf_counter()
                    try:
                        answer, rows = self._answer(message)
                    except (ManikinError, RuntimeError) as error:
                        self.metrics.error()
                        connection.send(str(error))
                        return
                    connection.send(pack(answer))
                    self.metrics.request(rows, time.perf_counter() - began)
        except ConnectionClosed:
            return
        finally:
            self.metrics.connected(-1)
            self._connections.discard(connection)

    @contextmanager
    def _answering(self) -> Iterator[None]:
        """A request is being answered, until its answer is sent."""
        with self._sent:
            self._busy += 1
        try:
            yield
        finally:
            with self._sent:
                self._busy -= 1
                self._sent.notify_all()

    def _act(self, rows: dict[str, torch.Tensor], prompts: list[str]) -> torch.Tensor:
        return self._policy.act(rows["state"] if [*rows] == ["state"] else nested(rows), prompts)

    def _answer(self, message: Any) -> tuple[dict[str, Any], int]:
        """The answer, and how many rows were asked about."""
        request = unpack(message) if isinstance(message, bytes) else None
        if not isinstance(request, dict):
            raise DataError("a request must be a msgpack dictionary of the observation")
        number, several = request.pop("request_id", None), "rows" in request
        rows = request["rows"] if several else [request]
        if not isinstance(rows, list) or not 1 <= len(rows) <= self._most or not all(isinstance(r, dict) for r in rows):
            raise DataError(f"'rows' must be a list of 1 to {self._most} dictionaries")
        if several and len(request) > 1:
            raise DataError("a request of several rows has 'rows' alone")
        prompts = [str(row.pop("prompt", "")) for row in rows]
        leaves = [self._row(row) for row in rows]
        together = {name: torch.stack([row[name] for row in leaves]) for name in self._shapes}
        actions = self._batcher.ask(together, prompts)
        answer: dict[str, Any] = {"actions": (actions if several else actions[0]).cpu().numpy()}
        return (answer if number is None else {**answer, "request_id": number}), len(rows)

    def _row(self, request: dict[str, Any]) -> dict[str, torch.Tensor]:
        """The observation of one row, checked."""
        row: dict[str, torch.Tensor] = {}
        for name, shape in self._shapes.items():
            if name not in request:
                raise DataError(f"the request has no {name!r}; this policy takes {self._expected()}")
            try:
                value = np.array(request.pop(name))
                leaf = torch.from_numpy(value if value.dtype == np.uint8 else value.astype(np.float32))
            except (TypeError, ValueError):
                raise DataError(f"{name!r} is no array of numbers") from None
            if tuple(leaf.shape) != shape:
                raise DataError(f"{name!r} has shape {tuple(leaf.shape)}; this policy takes {self._expected()}")
            row[name] = leaf
        if request:
            raise DataError(f"unknown {', '.join(map(repr, request))}; this policy takes {self._expected()}")
        return row

    def _expected(self) -> str:
        return ", ".join(f"{name} {shape}" for name, shape in self._shapes.items())


def nested(leaves: Mapping[str, torch.Tensor]) -> dict[str, Any]:
    """``{"a/b": x}`` as ``{"a": {"b": x}}``: the inverse of flattening an observation."""
    tree: dict[str, Any] = {}
    for name, leaf in leaves.items():
        *folders, last = name.split("/")
        at = tree
        for folder in folders:
            at = at.setdefault(folder, {})
        at[last] = leaf
    return tree
