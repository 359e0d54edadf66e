"""A policy server that goes away and comes back, and one that takes several rows in one request."""

from __future__ import annotations

import socket
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from manikin.errors import ActionError, ConfigError

pytest.importorskip("msgpack")
pytest.importorskip("websockets")

from manikin.cli.evaluate import EvalOptions
from manikin.cli.evaluate import run as evaluate_command
from manikin.eval.protocol import Protocol
from manikin.eval.report import read_report
from manikin.policy.network import NetworkPolicy
from manikin.policy.networks import GaussianActor
from manikin.policy.remote import client
from manikin.policy.remote.client import RemotePolicy
from manikin.policy.remote.server import PolicyServer


def echo(request: dict[str, Any]) -> dict[str, Any]:
    return {"actions": np.tile(request["state"][:2], (2, 1))}


def test_a_connection_that_is_lost_is_made_again(server) -> None:
    """The server hangs up at every third request: each has its answer all the same, and no other's."""
    asked = []

    def answer(request):
        asked.append(float(request["state"][0]))
        return None if len(asked) % 3 == 0 else echo(request)

    there = server(answer)
    policy = RemotePolicy(there.url)
    for k in range(8):
        assert float(policy.act(torch.full((1, 4), float(k)), [""])[0, 0, 0]) == k
    assert len(asked) == 8 + len(asked) // 3 and len(there.headers) == 1 + len(asked) // 3
    policy.close()


def test_a_server_that_stays_away_or_returns_as_another_ends_it(server, monkeypatch) -> None:
    monkeypatch.setattr(client, "PATIENCE", 0.8)
    there = server(echo)
    policy = RemotePolicy(there.url)
    policy.act(torch.zeros(1, 4), [""])
    policy.socket.close()
    there.close()
    began = time.monotonic()
    with pytest.raises(ActionError, match=r"it did not come back within 0\.8 s"):
        policy.act(torch.zeros(1, 4), [""])
    assert 0.7 < time.monotonic() - began < 25  # not the half minute of others
    other = server(echo, port=there.port, metadata={"model": "another"})
    with pytest.raises(ActionError, match=r"came back with other metadata.*'another'.*instead of.*'made up'"):
        policy.act(torch.zeros(1, 4), [""])
    policy.close()
    assert other.seen == []


def test_waits_between_attempts_double(server, monkeypatch) -> None:
    slept: list[float] = []
    policy = RemotePolicy(server(lambda request: None).url)
    monkeypatch.setattr(client.time, "sleep", slept.append)

    def nobody() -> Any:
        if len(slept) < 4:
            raise ConnectionRefusedError("nobody there")
        return connect()

    connect = policy.connect
    monkeypatch.setattr(policy, "connect", nobody)
    with pytest.raises(ActionError, match="closed the connection"):
        policy.act(torch.zeros(1, 4), [""])
    assert slept == pytest.approx([0.1, 0.2, 0.4, 0.8, 0.1])  # then it is back, and hangs up twice more
    policy.close()


def test_several_rows_come_in_one_request_where_the_server_says_so(server) -> None:
    def answer(request):
        return {"actions": np.stack([echo(row)["actions"] for row in request["rows"]])}

    there = server(answer, metadata={"batch": 3})
    policy = RemotePolicy(there.url, adapt=lambda r: {"state": 2 * r["state"], "said": r["prompt"]})
    state = torch.rand(7, 4)
    assert torch.equal(policy.act(state, list("abcdefg"))[:, 0], 2 * state[:, :2])
    assert [[row["said"] for row in request["rows"]] for request in there.seen] == [
        ["a", "b", "c"],
        ["d", "e", "f"],
        ["g"],
    ]
    policy.close()
    for wrong, said in (
        (np.zeros((2, 2, 2)), "asked for 3 rows in one request.*it returned 2 rows"),
        (None, "it returned None"),
    ):
        there = server(lambda request, wrong=wrong: {"actions": wrong}, metadata={"batch": 3})
        with pytest.raises(ActionError, match=said):
            RemotePolicy(there.url).act(state, list("abcdefg"))


def test_the_server_answers_several_rows_as_it_answers_one() -> None:
    seeds = torch.Generator().manual_seed(0)
    actor = GaussianActor(observations=5, actions=2, hidden=[8], log_std=0.0, generator=seeds)
    network, state = NetworkPolicy(actor), torch.rand(9, 5, generator=seeds)
    with PolicyServer(network, {"state": (5,)}, port=0, batch=True) as there:
        policy = RemotePolicy(there.url)
        together = policy.act(state, [""] * 9)
        policy.metadata = {"request_id": True}  # as a client that knows nothing of several rows
        assert torch.equal(policy.act(state, [""] * 9), together)
        assert torch.equal(together, network.act(state, [""] * 9))
        policy.metadata = {"request_id": True, "batch": 100}
        with pytest.raises(ActionError, match="'rows' must be a list of 1 to 64 dictionaries"):
            policy.act(torch.rand(65, 5), [""] * 65)


def test_a_seed_reaches_a_server_that_takes_one(server) -> None:
    there = server(echo, metadata={"policy_seed": True})
    policy = RemotePolicy(there.url, seed=4)
    policy.act(torch.zeros(2, 4), ["", ""])
    assert [request["policy_seed"] for request in there.seen] == [4, 4]
    policy.close()
    with pytest.raises(ConfigError, match="takes no seed"):
        RemotePolicy(server(echo).url, seed=4)


@pytest.mark.parametrize("how", ["dies", "hangs", "garbage"])
def test_what_is_measured_stays_and_resume_goes_on(how: str, server, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(client, "PATIENCE", 0.5)
    over = threading.Event()
    protocol = Protocol(name="short", tasks=("PushCube-v2",), seeds=tuple(range(5)), horizon=3)
    file = tmp_path / "short.toml"
    file.write_text(protocol.to_toml(), encoding="utf-8")
    broken = True

    def answer(request):
        if broken and len(there.seen) == 10:
            monkeypatch.setattr(client, "TIMEOUT", 1.0)  # for the next answer, which never comes
        if broken and len(there.seen) > 10:
            if how == "hangs":
                over.wait(60)
            return None if how == "dies" else b"\xff\x00 garbage"
        return {"actions": np.full((1, 8), 0.1, np.float32)}

    there = server(answer)
    options = EvalOptions(protocol=str(file), policy=(there.url,), num_envs=2, pictures=0, out=tmp_path / "out")
    assert evaluate_command(options) == 1
    said = {"dies": "closed the connection", "hangs": "did not answer within 1 s", "garbage": "cannot be read"}[how]
    partial = read_report(tmp_path / "out" / "report.json")
    assert partial["interrupted"] and said in partial["error"] and partial["overall"]["n_episodes"] == 2
    broken, before = False, len(there.seen)
    over.set()
    monkeypatch.setattr(client, "TIMEOUT", 60.0)
    again = EvalOptions(**{**vars(options), "resume": True})
    assert evaluate_command(again) == 0
    whole = read_report(tmp_path / "out" / "report.json")
    assert [e["seed"] for e in whole["per_task"][0]["per_episode"]] == [0, 1, 2, 3, 4]
    assert len(there.seen) - before <= 3 * 4  # two rows, three episodes: nothing that was measured runs again


def test_openpi_s_own_client_is_answered() -> None:
    """The client that others use, where it is installed."""
    place = "openpi_client.websocket_client_policy"
    client = pytest.importorskip(place, reason="needs openpi-client, which is no part of manikin")
    network = NetworkPolicy(GaussianActor(observations=5, actions=2, hidden=[8], log_std=0.0))
    state = torch.rand(1, 5)
    with PolicyServer(network, {"state": (5,)}, port=0, batch=True) as there:
        policy = client.WebsocketClientPolicy(host="127.0.0.1", port=there.port)
        answer = policy.infer({"state": state[0].numpy(), "prompt": "push"})
        np.testing.assert_array_equal(answer["actions"], network.act(state, ["push"])[0].numpy())


def test_openpi_s_own_server_answers_us() -> None:
    """The server that others use, where it is installed, from openpi's repository."""
    place = "openpi.serving.websocket_policy_server"
    theirs = pytest.importorskip(place, reason="needs openpi, which is no part of manikin")

    class Policy:
        def infer(self, request: dict[str, Any]) -> dict[str, Any]:
            if request["prompt"] == "fail":
                raise ValueError("this policy fails")
            return {"actions": np.outer([1.0, 2.0, 3.0], request["cameras/top/rgb"].mean((0, 1))).astype(np.float32)}

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = theirs.WebsocketPolicyServer(Policy(), host="127.0.0.1", port=port, metadata={"reset_pose": [0.0]})
    threading.Thread(target=server.serve_forever, daemon=True).start()
    until = time.monotonic() + 20
    while True:
        try:
            policy = RemotePolicy(f"ws://127.0.0.1:{port}")
            break
        except ConfigError:
            assert time.monotonic() < until
            time.sleep(0.1)
    assert policy.metadata == {"reset_pose": [0.0]}
    pictures = torch.randint(0, 256, (2, 4, 5, 3), dtype=torch.uint8)
    for _ in range(2):  # its second answer also says how long the first took
        answer = policy.act({"cameras": {"top": {"rgb": pictures}}}, ["pick", "place"])
        means = pictures.double().mean((1, 2))
        expected = torch.tensor([1.0, 2.0, 3.0])[None, :, None] * means[:, None]
        assert torch.allclose(answer.double(), expected.double(), rtol=1e-6)
    with pytest.raises(ActionError, match="this policy fails"):
        policy.act({"cameras": {"top": {"rgb": pictures[:1]}}}, ["fail"])
    policy.close()
