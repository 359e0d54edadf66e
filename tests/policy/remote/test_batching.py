"""Requests of many clients are answered together, with the answers of each alone; and what a server says of itself."""

from __future__ import annotations

import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from manikin.errors import DataError
from manikin.policy.remote.batching import Batcher, Histogram, Metrics
from manikin.policy.remote.server import PolicyServer
from manikin.policy.remote.wire import pack, unpack

websockets = pytest.importorskip("websockets", reason="needs pip install 'manikin[remote]'")
from websockets.sync.client import connect  # noqa: E402


class Doubling:
    """Answers twice the observation, as one action of two; slow, and not before ``ready`` says so. It remembers how
    many rows it was asked about."""

    stateless = True

    def __init__(self, seconds: float = 0.05, ready: Callable[[], bool] = lambda: True) -> None:
        self.seconds, self.ready, self.asked = seconds, ready, []

    def act(self, shown: torch.Tensor, prompts: list[str]) -> torch.Tensor:
        assert len(prompts) == len(shown)
        self.asked.append(len(shown))
        until = time.monotonic() + 60
        while not self.ready() and time.monotonic() < until:
            time.sleep(0.01)
        time.sleep(self.seconds)
        return 2 * shown[:, None]


def test_what_waits_is_answered_together_and_each_gets_its_own() -> None:
    begun: list[int] = []
    policy = Doubling(ready=lambda: len(begun) == 16)
    batcher = Batcher(lambda rows, prompts: policy.act(rows["state"], prompts), 4, Metrics())

    def ask(rows: torch.Tensor) -> torch.Tensor:
        begun.append(len(rows))
        return batcher.ask({"state": rows}, [""] * len(rows))

    with ThreadPoolExecutor(16) as pool:
        asked = [torch.full((1 + k % 2, 2), float(k)) for k in range(16)]
        found = list(pool.map(ask, asked))
    for rows, actions in zip(asked, found, strict=True):
        assert torch.equal(actions, 2 * rows[:, None])
    assert sum(policy.asked) == 24 and max(policy.asked) in (3, 4) and len(policy.asked) < 16
    batcher.close()
    batcher.close()
    with pytest.raises(RuntimeError, match="the server stops"):
        batcher.ask({"state": torch.zeros(1, 2)}, [""])


def test_what_a_policy_raises_reaches_who_asked_and_nobody_later() -> None:
    def answer(rows: dict[str, torch.Tensor], prompts: list[str]) -> torch.Tensor:
        if float(rows["state"].max()) > 1:
            raise DataError("too large")
        return rows["state"][:, None]

    batcher = Batcher(answer, 8, Metrics())
    with pytest.raises(DataError, match="too large"):
        batcher.ask({"state": torch.full((1, 2), 5.0)}, [""])
    assert torch.equal(batcher.ask({"state": torch.ones(1, 2)}, [""]), torch.ones(1, 1, 2))
    batcher.close()


def test_a_histogram_counts_as_prometheus_does() -> None:
    histogram = Histogram((1, 2))
    for value in (0.5, 1, 1.5, 7):
        histogram.add(value)
    assert histogram.lines("x") == [
        'x_bucket{le="1"} 2',
        'x_bucket{le="2"} 3',
        'x_bucket{le="+Inf"} 4',
        "x_sum 10",
        "x_count 4",
    ]


def _get(server: PolicyServer, path: str, **headers: str) -> tuple[int, str]:
    request = urllib.request.Request(f"http://127.0.0.1:{server.port}{path}", headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def _asks(server: PolicyServer, value: float, times: int, sent: list[float]) -> list[np.ndarray]:
    with connect(server.url, compression=None) as connection:
        connection.recv()
        found = []
        for _ in range(times):
            connection.send(pack({"state": np.full(3, value, np.float32)}))
            sent.append(value)
            found.append(unpack(connection.recv())["actions"])
        return found


def test_clients_are_answered_together_and_the_numbers_say_so() -> None:
    sent: list[float] = []
    policy = Doubling(ready=lambda: len(set(sent)) == 6)  # all clients have asked
    with PolicyServer(policy, {"state": (3,)}, port=0, batch=True) as server:
        assert _get(server, "/healthz") == (200, "OK\n")
        with ThreadPoolExecutor(6) as pool:
            found = list(pool.map(lambda k: _asks(server, k, 3, sent), range(6)))
        for k, answers in enumerate(found):
            assert all(np.array_equal(a, np.full((1, 3), 2.0 * k, np.float32)) for a in answers)
        assert sum(policy.asked) == 18 and len(policy.asked) < 18
        with connect(server.url, compression=None) as connection:
            connection.recv()
            connection.send(pack({"state": np.zeros(4, np.float32)}))
            assert "has shape (4,)" in str(connection.recv())
        until = time.monotonic() + 60
        while "manikin_connections 0" not in (text := _get(server, "/metrics")[1]) and time.monotonic() < until:
            time.sleep(0.02)
        for line in ("manikin_requests_total 18", "manikin_rows_total 18", "manikin_errors_total 1"):
            assert line in text.splitlines()
        assert f"manikin_batch_rows_count {len(policy.asked)}" in text.splitlines()
        assert "manikin_request_seconds_count 18" in text.splitlines()


def test_numbers_want_the_key_and_health_does_not() -> None:
    with PolicyServer(Doubling(), {"state": (3,)}, port=0, key="secret") as server:
        assert _get(server, "/metrics")[0] == 401
        assert _get(server, "/metrics", Authorization="Api-Key secret")[0] == 200
        assert _get(server, "/healthz")[0] == 200


def test_a_request_that_was_sent_before_the_server_stops_is_answered() -> None:
    policy = Doubling(seconds=0.5)
    server = PolicyServer(policy, {"state": (3,)}, port=0, batch=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    with connect(server.url, compression=None) as connection:
        connection.recv()
        connection.send(pack({"state": np.ones(3, np.float32)}))
        until = time.monotonic() + 60
        while not policy.asked and time.monotonic() < until:
            time.sleep(0.01)
        stopping = threading.Thread(target=server.close)
        stopping.start()
        assert np.array_equal(unpack(connection.recv())["actions"], np.full((1, 3), 2.0, np.float32))
        stopping.join()
    thread.join(10)
    assert not thread.is_alive()
