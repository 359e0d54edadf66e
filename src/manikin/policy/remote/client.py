"""A policy behind a websocket, in another process or on another machine: openpi's protocol."""

from __future__ import annotations

import inspect
import itertools
import os
import re
import socket
import struct
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from manikin.data.recording.format import flatten
from manikin.env.arrays import to_numpy
from manikin.errors import ActionError, AssetError, ConfigError, DataError
from manikin.policy.api import Observation
from manikin.policy.chunk import Execution
from manikin.policy.remote.wire import pack, unpack

__all__ = ["RemotePolicy"]

TIMEOUT = 60.0  # [s] for an answer, and for a request to be taken; the first of a large model takes long
PATIENCE = 30.0  # [s] for a server that is gone to come back
ATTEMPTS = 3  # to have one request answered, each over a new connection
FIRST_WAIT = 0.1  # [s] before the first attempt to connect again; each next wait is twice as long
LARGEST = 2**22  # [bytes] of a message from the server: a hundred times what a chunk takes
STEPS = 1000  # of a chunk
IDS = "request_id"
BATCH = "batch"
ROWS = "rows"
SEED = "policy_seed"
NAME = "policy"
HASH = "policy_sha256"
KEY = "MANIKIN_POLICY_KEY"  # environment variable with the server's API key


class RemotePolicy:
    """Asks a policy server for the next actions of each row. One request per row returns one chunk (H, A).

    A request is a dictionary: the row's observation by name (``policy/qpos``, ``cameras/base_camera/rgb``; a flat one
    is ``state``), and ``prompt``, the instruction. A server that expects other names gets them through ``adapt``.

    Each request has one answer. A server whose metadata has ``request_id: True`` is also given a number under this
    name, and must return it with the answer. openpi's protocol has no such number. From other servers, an extra
    answer is detected only if it arrives before the next request.

    A server whose metadata has ``batch: n`` gets up to n rows in one request, ``{"rows": [request, ...]}``, and answers
    with ``actions`` (rows, H, A).

    A connection that is lost is made again, and the request is sent again: an answer depends on its request alone.
    Waits between attempts double from 0.1 s on. A server that stays away for 30 s, that closes three connections over
    one request, or that comes back with other metadata ends the evaluation; what is finished is kept.

    Args:
        url: ``ws://host:port``.
        seed: of a policy that draws random numbers; sent as ``policy_seed`` to a server whose metadata has
            ``policy_seed: True``.
        adapt: turns such a dictionary (NumPy arrays) into the dictionary that the server expects.
        restore: turns the server's actions (H, D) into actions (H, A) in [-1, 1]. Default: no change.

    Attributes:
        metadata: the first message of the server, which describes it.
        name: what the server's metadata call the policy (``policy``), else the address.
        sha256: of the policy's file, where the metadata say so (``policy_sha256``), else None.
        execution: how chunks are executed, where the metadata say so. ``manikin serve`` says all three.

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
        seed: int | None = None,
    ) -> None:
        try:
            from websockets.exceptions import WebSocketException
        except ImportError as error:
            raise AssetError(
                f"a policy behind {url} needs websockets ({error}): pip install 'manikin[remote]'"
            ) from None
        self.url = url
        self._numbers = itertools.count()
        self._adapt, self._restore, self._broken = adapt, restore, WebSocketException
        self._seed, self._gives_up = seed, False
        try:
            self.socket, self.metadata = self.connect()
            self.execution = Execution.of(self._said)
            self.name = self._told(NAME, r"[\w .=:+-]{1,100}") or f"remote {url.partition('://')[2]}"
            self.sha256 = self._told(HASH, "[0-9a-f]{64}")
        except (OSError, ValueError, WebSocketException, ActionError) as error:
            if hasattr(self, "socket"):
                self.socket.close()
            refused = getattr(getattr(error, "response", None), "status_code", None) in (401, 403)
            hint = (
                f"set {KEY} to the key of the server" if refused else "start it, or check the address (ws://HOST:PORT)"
            )
            raise ConfigError(f"cannot connect to a policy server at {url}: {error}; {hint}") from None
        if seed is not None and self._said.get(SEED) is not True:
            self.socket.close()
            raise ConfigError(
                f"the policy server at {url} takes no seed (its metadata lack {SEED}: True); start one server per seed "
                "and evaluate each"
            )

    @property
    def _said(self) -> Mapping[str, Any]:
        """What the server says of itself."""
        return self.metadata if isinstance(self.metadata, dict) else {}

    def _told(self, name: str, pattern: str) -> str | None:
        """A word of the metadata; None where there is none, or it is of another form."""
        word = self._said.get(name)
        return word if isinstance(word, str) and re.fullmatch(pattern, word) else None

    def connect(self) -> tuple[Any, Any]:
        """A connection, and the server's first message."""
        from websockets.sync.client import connect

        headers = {"Authorization": f"Api-Key {os.environ[KEY]}"} if os.environ.get(KEY) else None
        # a server that thinks for long answers no ping meanwhile; TIMEOUT is the limit
        quiet = {"ping_interval": None} if "ping_interval" in inspect.signature(connect).parameters else {}
        connection = connect(
            self.url,
            compression=None,
            max_size=LARGEST,
            additional_headers=headers,
            open_timeout=10.0,
            close_timeout=1.0,
            **quiet,
        )
        try:
            if os.name == "posix":  # a server that takes no request must not block for ever
                limit = struct.pack("ll", int(TIMEOUT), 0)
                connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
            return connection, self._read(connection)
        except BaseException:
            connection.close()
            raise

    def _connect_again(self, why: str) -> None:
        """Wait for the server to come back.

        Raises:
            ActionError: it does not, or another policy answers.
        """
        self.socket.close()
        until, wait = time.monotonic() + PATIENCE, FIRST_WAIT
        while True:
            time.sleep(wait)
            try:
                self.socket, metadata = self.connect()
                break
            except (OSError, self._broken):
                wait = min(2 * wait, until - time.monotonic())
                if wait <= 0:
                    raise ActionError(
                        f"the policy server at {self.url} {why}; it did not come back within {PATIENCE:g} s"
                    ) from None
        if metadata != self.metadata:
            raise ActionError(
                f"the policy server at {self.url} came back with other metadata, so another policy may answer: "
                f"{metadata!r:.200} instead of {self.metadata!r:.200}"
            )

    def reset(self, rows: torch.Tensor) -> None:
        """Does nothing: the protocol has no message for a reset."""

    def act(self, observation: Observation, instruction: Sequence[str]) -> torch.Tensor:
        """(N, H, A).

        Raises:
            ActionError: the server reported a failure, stayed away, took longer than 60 s, or answered twice.
                Or its answer has no actions, too many, some that are not finite, or another shape for each row.
        """
        tree = observation if isinstance(observation, Mapping) else {"state": observation}
        leaves = {name: to_numpy(value) for name, value in flatten(tree).items()}
        requests: list[Mapping[str, Any]] = []
        for row, prompt in enumerate(instruction):
            request: dict[str, Any] = {name: value[row] for name, value in leaves.items()} | {"prompt": prompt}
            request |= {} if self._seed is None else {SEED: self._seed}
            requests.append(self._adapt(request) if self._adapt is not None else request)
        batch = self._said.get(BATCH)
        if isinstance(batch, int) and not isinstance(batch, bool) and batch >= 1:
            chunks = [chunk for k in range(0, len(requests), batch) for chunk in self._several(requests[k : k + batch])]
        else:
            chunks = [self._chunk(self._ask(request)["actions"]) for request in requests]
        shapes = sorted({chunk.shape for chunk in chunks})
        if len(shapes) > 1:
            said = " and ".join(map(str, shapes))
            raise ActionError(
                f"the policy server at {self.url} returned actions of different shapes for different rows: {said}; "
                "all rows need one shape (H, A)"
            )
        return torch.from_numpy(np.stack(chunks))

    def _several(self, requests: Sequence[Mapping[str, Any]]) -> list[np.ndarray]:
        """Actions (H, A) of each, asked for in one request."""
        answers = self._ask({ROWS: [dict(request) for request in requests]})["actions"]
        if not isinstance(answers, np.ndarray | list) or len(answers) != len(requests):
            found = f"{len(answers)} rows" if isinstance(answers, np.ndarray | list) else repr(answers)[:80]
            raise ActionError(
                f"the policy server at {self.url} was asked for {len(requests)} rows in one request; 'actions' must be "
                f"(rows, H, A), and it returned {found}"
            )
        return [self._chunk(answer) for answer in answers]

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
        numbered = self._said.get(IDS) is True
        if numbered:
            content[IDS] = number
        message, answer = pack(content), None
        for attempt in range(1, ATTEMPTS + 1):
            try:
                self._expect_nothing()
                self.socket.send(message)
                answer = self._receive()
                break
            except (OSError, self._broken) as error:
                why = _reason(error)
                if attempt == ATTEMPTS or self._gives_up or not _may_come_back(error):
                    raise ActionError(f"the policy server at {self.url} {why}") from None
            self._connect_again(why)
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
            self.socket.recv(timeout=0)
        except TimeoutError:
            return
        raise ActionError(
            f"the policy server at {self.url} sent an extra answer that no request asked for, so later answers cannot "
            "be trusted; the server must send one answer per request. Restart it"
        )

    def _receive(self) -> Any:
        return self._read(self.socket)

    def _read(self, connection: Any) -> Any:
        message = connection.recv(timeout=TIMEOUT)
        if isinstance(message, str):  # how servers report that they failed
            self._gives_up = True
            raise ActionError(f"the policy server at {self.url} failed: {message.strip()[:2000]}")
        try:
            return unpack(message)
        except DataError as error:
            raise ActionError(f"the policy server at {self.url} sent a message that cannot be read: {error}") from None

    def close(self) -> None:
        """Close the connection. Idempotent."""
        self.socket.close()


def _may_come_back(error: Exception) -> bool:
    """Whether a new connection may help: not where the server was too slow or said too much."""
    sent = getattr(error, "sent", None)
    slow = isinstance(error, TimeoutError) or isinstance(error.__cause__, BlockingIOError)
    return not slow and (sent is None or sent.code != 1009)


def _reason(error: Exception) -> str:
    """The failure of a connection, to follow 'the policy server'."""
    sent = getattr(error, "sent", None)
    if sent is not None and sent.code == 1009:  # by the client, to a message beyond its limit
        return f"sent a message of more than {LARGEST >> 20} MiB, the limit"
    if isinstance(error, TimeoutError) or isinstance(error.__cause__, BlockingIOError):
        return f"did not answer within {TIMEOUT:g} s"
    return f"closed the connection: {error}"
