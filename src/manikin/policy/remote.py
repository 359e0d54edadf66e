"""A policy behind a websocket, in another process or on another machine: openpi's protocol."""

from __future__ import annotations

import itertools
import os
import socket
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from manikin.data.recording.format import flatten
from manikin.env.arrays import to_numpy
from manikin.errors import ActionError, AssetError, ConfigError, DataError
from manikin.policy.api import Observation
from manikin.policy.chunk import Execution
from manikin.policy.wire import pack, unpack

__all__ = ["RemotePolicy"]

TIMEOUT = 60.0  # [s] for an answer, and for a request to be taken; the first of a large model takes long
LARGEST = 2**22  # [bytes] of a message from the server: a hundred times what a chunk takes
STEPS = 1000  # of a chunk
IDS = "request_id"
KEY = "MANIKIN_POLICY_KEY"  # environment variable with the server's API key


class RemotePolicy:
    """Asks a policy server for the next actions of each row. One request per row returns one chunk (H, A).

    A request is a dictionary: the row's observation by name (``policy/qpos``, ``cameras/base_camera/rgb``; a flat one
    is ``state``), and ``prompt``, the instruction. A server that expects other names gets them through ``adapt``.

    Each request has one answer. A server whose metadata has ``request_id: True`` is also given a number under this
    name, and must return it with the answer. openpi's protocol has no such number. From other servers, an extra
    answer is detected only if it arrives before the next request.

    Args:
        url: ``ws://host:port``.
        adapt: turns such a dictionary (NumPy arrays) into the dictionary that the server expects.
        restore: turns the server's actions (H, D) into actions (H, A) in [-1, 1]. Default: no change.

    Attributes:
        metadata: the first message of the server, which describes it.
        execution: how chunks are executed, where the metadata say so (``manikin serve`` does).

    Raises:
        AssetError: msgpack or websockets is not installed.
        ConfigError: no server answers at the address, or it uses another protocol.
    """

    stateless = True

    def __init__(
        self,
        url: str,
        *,
        adapt: Callable[[dict[str, Any]], Mapping[str, Any]] | None = None,
        restore: Callable[[np.ndarray], np.ndarray] | None = None,
    ) -> None:
        try:
            from websockets.exceptions import WebSocketException
            from websockets.sync.client import connect
        except ImportError as error:
            raise AssetError(
                f"a policy behind {url} needs websockets ({error}): pip install 'manikin[remote]'"
            ) from None
        self.url, self.name = url, f"remote {url.partition('://')[2]}"
        self._numbers = itertools.count()
        self._adapt, self._restore, self._broken = adapt, restore, WebSocketException
        headers = {"Authorization": f"Api-Key {os.environ[KEY]}"} if os.environ.get(KEY) else None
        try:
            self._socket = connect(
                url,
                compression=None,
                max_size=LARGEST,
                additional_headers=headers,
                open_timeout=10.0,
                close_timeout=1.0,
            )
            if os.name == "posix":  # a server that takes no request must not block for ever
                limit = struct.pack("ll", int(TIMEOUT), 0)
                self._socket.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
            self.metadata = self._receive()
            self.execution = Execution.of(self.metadata if isinstance(self.metadata, dict) else {})
        except (OSError, ValueError, WebSocketException, ActionError) as error:
            if hasattr(self, "_socket"):
                self._socket.close()
            raise ConfigError(
                f"cannot connect to a policy server at {url}: {error}; start it, or check the address (ws://HOST:PORT)"
            ) from None

    def reset(self, rows: torch.Tensor) -> None:
        """Does nothing: the protocol has no message for a reset."""

    def act(self, observation: Observation, instruction: Sequence[str]) -> torch.Tensor:
        """(N, H, A).

        Raises:
            ActionError: the server reported a failure, closed the connection, took longer than 60 s, or answered twice.
                Or its answer has no actions, too many, some that are not finite, or another shape for each row.
        """
        tree = observation if isinstance(observation, Mapping) else {"state": observation}
        leaves = {name: to_numpy(value) for name, value in flatten(tree).items()}
        chunks = []
        for row, prompt in enumerate(instruction):
            request: Mapping[str, Any] = {name: value[row] for name, value in leaves.items()} | {"prompt": prompt}
            answer = self._ask(self._adapt(dict(request)) if self._adapt is not None else request)
            chunks.append(self._chunk(answer["actions"]))
        shapes = sorted({chunk.shape for chunk in chunks})
        if len(shapes) > 1:
            said = " and ".join(map(str, shapes))
            raise ActionError(
                f"the policy server at {self.url} returned actions of different shapes for different rows: {said}; "
                "all rows need one shape (H, A)"
            )
        return torch.from_numpy(np.stack(chunks))

    def _chunk(self, answer: Any) -> np.ndarray:
        """An answer as actions (H, A)."""
        try:
            actions = np.asarray(answer, np.float32)
        except (ValueError, TypeError):
            actions = np.empty(0, np.float32)
        if actions.ndim != 2 or not actions.size:
            found = f"shape {answer.shape}" if isinstance(answer, np.ndarray) else repr(answer)[:80]
            raise ActionError(
                f"the policy server at {self.url} must return 'actions' of shape (H, A); it returned {found}"
            )
        if len(actions) > STEPS:
            raise ActionError(
                f"the policy server at {self.url} returned a chunk of {len(actions)} steps; at most {STEPS} are "
                "accepted"
            )
        if not np.isfinite(actions).all():
            raise ActionError(f"the policy server at {self.url} returned actions that are not finite")
        return actions if self._restore is None else np.asarray(self._restore(actions), np.float32)

    def _ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        content, number = dict(request), next(self._numbers)
        numbered = isinstance(self.metadata, dict) and self.metadata.get(IDS) is True
        if numbered:
            content[IDS] = number
        try:
            self._expect_nothing()
            self._socket.send(pack(content))
            answer = self._receive()
        except (OSError, self._broken) as error:
            raise ActionError(f"the policy server at {self.url} {_reason(error)}") from None
        if not isinstance(answer, dict) or "actions" not in answer:
            keys = sorted(map(str, answer)) if isinstance(answer, dict) else type(answer).__name__
            raise ActionError(
                f"the policy server at {self.url} must return a dictionary with 'actions'; it returned {keys}"
            )
        if numbered and answer.get(IDS) != number:
            raise ActionError(
                f"the policy server at {self.url} returned {IDS} {answer.get(IDS)!r} for request {number}; it must "
                "return the number of the request"
            )
        return answer

    def _expect_nothing(self) -> None:
        """Raise if an answer waits already: the next request would receive it."""
        try:
            self._socket.recv(timeout=0)
        except TimeoutError:
            return
        raise ActionError(
            f"the policy server at {self.url} sent an extra answer that no request asked for, so later answers cannot "
            "be trusted; the server must send one answer per request. Restart it"
        )

    def _receive(self) -> Any:
        message = self._socket.recv(timeout=TIMEOUT)
        if isinstance(message, str):  # how servers report that they failed
            raise ActionError(f"the policy server at {self.url} failed: {message.strip()[:2000]}")
        try:
            return unpack(message)
        except DataError as error:
            raise ActionError(f"the policy server at {self.url} sent a message that cannot be read: {error}") from None

    def close(self) -> None:
        """Close the connection. Idempotent."""
        self._socket.close()


def _reason(error: Exception) -> str:
    """The failure of a connection, to follow 'the policy server'."""
    sent = getattr(error, "sent", None)
    if sent is not None and sent.code == 1009:  # by the client, to a message beyond its limit
        return f"sent a message of more than {LARGEST >> 20} MiB, the limit"
    if isinstance(error, TimeoutError) or isinstance(error.__cause__, BlockingIOError):
        return f"did not answer within {TIMEOUT:g} s"
    return f"closed the connection: {error}"
