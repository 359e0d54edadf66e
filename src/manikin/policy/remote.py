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
from manikin.policy.wire import pack, unpack

__all__ = ["RemotePolicy"]

TIMEOUT = 60.0  # [s] for an answer, and for a request to be taken; the first of a large model takes long
LARGEST = 2**22  # [bytes] of a message from the server: a hundred times what a chunk takes
STEPS = 1000  # of a chunk
IDS = "request_id"
KEY = "MANIKIN_POLICY_KEY"  # environment variable with the server's API key


class RemotePolicy:
    """Asks a policy server for each row's next actions: one request per row, answered with a chunk (H, A).

    A request is a dictionary: the row's observation by name (``policy/qpos``, ``cameras/base_camera/rgb``; a flat one
    is ``state``), and ``prompt``, the instruction. A server that expects other names gets them through ``adapt``.

    Each request has one answer. A server whose metadata has ``request_id: True`` is also given a number under this
    name, and must return it with the answer. The protocol knows no such number. So of other servers an answer that
    nobody asked for is noticed only if it has arrived before the next request.

    Args:
        url: ``ws://host:port``.
        adapt: from such a dictionary (NumPy arrays) to what the server expects.
        restore: from the server's actions (H, D) to actions (H, A) in [-1, 1]; default as they are.

    Attributes:
        metadata: what the server said of itself.

    Raises:
        AssetError: msgpack or websockets is not installed.
        ConfigError: nobody answers at the address, or not in this protocol.
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
        except (OSError, ValueError, WebSocketException, ActionError) as error:
            if hasattr(self, "_socket"):
                self._socket.close()
            raise ConfigError(f"no policy server answers at {url}: {error}") from None

    def reset(self, rows: torch.Tensor) -> None:
        """Nothing: the protocol has no message for it."""

    def act(self, observation: Observation, instruction: Sequence[str]) -> torch.Tensor:
        """(N, H, A).

        Raises:
            ActionError: the server failed (its own words), hung up, took too long, answered more than once, or its
                answer has no actions, too many, some that are not finite, or not the same number for each row.
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
            raise ActionError(f"the policy server at {self.url} answered with actions of shapes {said}, not of one")
        return torch.from_numpy(np.stack(chunks))

    def _chunk(self, answer: Any) -> np.ndarray:
        """An answer as actions (H, A)."""
        try:
            actions = np.asarray(answer, np.float32)
        except (ValueError, TypeError):
            actions = np.empty(0, np.float32)
        if actions.ndim != 2 or not actions.size:
            found = f"shape {answer.shape}" if isinstance(answer, np.ndarray) else repr(answer)[:80]
            raise ActionError(f"the policy server at {self.url} must answer with actions (H, A), not {found}")
        if len(actions) > STEPS:
            raise ActionError(f"the policy server at {self.url} answered with {len(actions)} steps, more than {STEPS}")
        if not np.isfinite(actions).all():
            raise ActionError(f"the policy server at {self.url} answered with actions that are not finite")
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
            raise ActionError(f"the policy server at {self.url} {_said(error)}") from None
        if not isinstance(answer, dict) or "actions" not in answer:
            keys = sorted(map(str, answer)) if isinstance(answer, dict) else type(answer).__name__
            raise ActionError(f"the policy server at {self.url} answered without 'actions': {keys}")
        if numbered and answer.get(IDS) != number:
            raise ActionError(
                f"the policy server at {self.url} answered request {number} with the answer to {answer.get(IDS)!r}"
            )
        return answer

    def _expect_nothing(self) -> None:
        """Between requests no answer may be waiting: the next one would be taken for another request's."""
        try:
            self._socket.recv(timeout=0)
        except TimeoutError:
            return
        raise ActionError(
            f"the policy server at {self.url} sent an answer that was not asked for; which answer belongs to which "
            "request is not known any more"
        )

    def _receive(self) -> Any:
        message = self._socket.recv(timeout=TIMEOUT)
        if isinstance(message, str):  # how servers report that they failed
            raise ActionError(f"the policy server at {self.url} failed: {message.strip()[:2000]}")
        try:
            return unpack(message)
        except DataError as error:
            raise ActionError(f"the policy server at {self.url} answered with what is {error}") from None

    def close(self) -> None:
        """Hang up. Idempotent."""
        self._socket.close()


def _said(error: Exception) -> str:
    """What went wrong with a connection."""
    sent = getattr(error, "sent", None)
    if sent is not None and sent.code == 1009:  # by the client, to a message beyond its limit
        return f"sent a message of more than {LARGEST >> 20} MiB"
    if isinstance(error, TimeoutError) or isinstance(error.__cause__, BlockingIOError):
        return f"took longer than {TIMEOUT:g} s"
    return f"hung up: {error}"
