"""Policies in files and behind websockets."""

from __future__ import annotations

import struct
import threading
from pathlib import Path

import numpy as np
import pytest
import torch

import manikin
from manikin.errors import ActionError, AssetError, ConfigError, DataError, UnknownNameError
from manikin.eval.runner import run_episodes
from manikin.policy.checkpoint import load_policy
from manikin.policy.choices import policy_maker
from manikin.policy.wire import pack, unpack

msgpack = pytest.importorskip("msgpack")
pytest.importorskip("websockets")


# ---- the wire ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [
        np.arange(6, dtype=np.float32).reshape(2, 3),
        np.zeros((0, 4), np.uint8),
        np.array([True, False]),
        np.float32(1.5),
        np.int16(-3),
    ],
)
def test_arrays_come_back_as_they_were(value) -> None:
    back = unpack(pack({"x": [value, "word", None, 2]}))["x"]
    assert np.array_equal(back[0], value) and back[0].dtype == value.dtype and back[0].shape == value.shape
    assert back[1:] == ["word", None, 2]


def test_bytes_are_those_of_openpi() -> None:
    """Written by hand from msgpack's specification: a map of four byte keys."""
    data = struct.pack("<2f", 1.0, -2.0)

    def raw(word: bytes) -> bytes:
        return b"\xc4" + bytes([len(word)]) + word

    array = b"\x84" + raw(b"__ndarray__") + b"\xc3" + raw(b"data") + raw(data)
    array += raw(b"dtype") + b"\xa3<f4" + raw(b"shape") + b"\x91\x02"
    assert pack({"a": np.array([1.0, -2.0], np.float32)}) == b"\x81\xa1a" + array
    assert pack(np.float32(1.0))[:15] == b"\x83" + raw(b"__npgeneric__")[:14]


@pytest.mark.parametrize("value", [np.array([object()]), np.array([1j]), {1, 2}, torch.zeros(2)])
def test_what_the_format_has_not_is_refused(value) -> None:
    with pytest.raises(DataError, match="cannot be sent"):
        pack({"x": value})


# ---- a server ------------------------------------------------------------------------------------------------------


class Server:
    """An openpi server: metadata first, then an answer to each request; a word instead says that it failed."""

    def __init__(self, answer) -> None:
        from websockets.sync.server import serve

        self.answer, self.seen, self.headers = answer, [], []
        self._server = serve(self._talk, "127.0.0.1", 0, compression=None, max_size=None)
        self.url = f"ws://127.0.0.1:{self._server.socket.getsockname()[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def _talk(self, socket) -> None:
        self.headers.append(socket.request.headers.get("Authorization"))
        socket.send(pack({"model": "made up"}))
        for message in socket:
            request = unpack(message)
            self.seen.append(request)
            answer = self.answer(request)
            socket.send(answer if isinstance(answer, str | bytes) else pack(answer))
            if isinstance(answer, str):
                return

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()


@pytest.fixture
def server():
    made = []

    def make(answer):
        made.append(Server(answer))
        return made[-1]

    yield make
    for one in made:
        one.close()


def test_rows_are_asked_one_by_one_and_chunks_are_executed(server, monkeypatch) -> None:
    monkeypatch.setenv("MANIKIN_POLICY_KEY", "secret")

    def answer(request):
        first = np.full((4, 8), 0.1, np.float32)
        first[:, 0] = request["policy/qpos"][0]
        return {"actions": first, "server_timing": {"infer_ms": 1.0}}

    there = server(answer)
    env = manikin.make("PickCube-v1", 3, observe="state_dict", autoreset="disabled", control="joint_delta_pos")
    policy = policy_maker(there.url)(env)
    assert policy.metadata == {"model": "made up"} and there.headers == ["Api-Key secret"]
    observation, _ = env.reset(seed=0)
    actions = policy.act(observation, ["pick it up"] * 3)
    assert actions.shape == (3, 4, 8) and actions.dtype == torch.float32
    assert torch.equal(actions[:, 0, 0], observation["policy"]["qpos"][:, 0])
    request = there.seen[0]
    assert request["prompt"] == "pick it up" and request["policy/qpos"].dtype == np.float32
    assert request["policy/qpos"].shape == observation["policy"]["qpos"].shape[1:]
    there.seen.clear()
    done = run_episodes(env, policy, range(3))
    assert len(done.results) == 3
    assert len(there.seen) == 3 * -(-env.horizon // 4)  # a request for every four steps of each episode
    policy.close()


def test_names_and_scales_of_a_server_are_adapted(server) -> None:
    from manikin.policy.remote import RemotePolicy

    there = server(lambda request: {"actions": request["observation/state"][None, :2] * 100})
    policy = RemotePolicy(
        there.url, adapt=lambda r: {"observation/state": r["state"], "prompt": r["prompt"]}, restore=lambda a: a / 100
    )
    state = torch.rand(2, 5)
    assert torch.allclose(policy.act(state, ["a", "b"])[:, 0], state[:, :2])
    assert [set(r) for r in there.seen] == [{"observation/state", "prompt"}] * 2
    policy.close()


def test_what_goes_wrong_at_the_server_is_said(server) -> None:
    from manikin.policy.remote import RemotePolicy

    failing = RemotePolicy(server(lambda request: "Traceback: CUDA out of memory").url)
    with pytest.raises(ActionError, match=r"failed: Traceback: CUDA out of memory"):
        failing.act(torch.zeros(1, 2), [""])
    with pytest.raises(ActionError, match="hung up"):
        failing.act(torch.zeros(1, 2), [""])
    with pytest.raises(ActionError, match=r"without 'actions': \['action'\]"):
        RemotePolicy(server(lambda request: {"action": 1}).url).act(torch.zeros(1, 2), [""])
    lengths = iter([4, 5])
    for answer, said in (
        (lambda request: {"actions": np.zeros((next(lengths), 8))}, r"shapes \(4, 8\) and \(5, 8\), not of one"),
        (lambda request: {"actions": "hello"}, r"actions \(H, A\), not 'hello'"),
        (lambda request: {"actions": None}, r"actions \(H, A\), not None"),
        (lambda request: {"actions": np.zeros(8)}, r"actions \(H, A\), not shape \(8,\)"),
        (lambda request: {"actions": np.zeros((0, 8))}, r"actions \(H, A\), not shape \(0, 8\)"),
        (lambda request: b"\xff\xfe\x00abc", r"no msgpack message of arrays: b'\\xff\\xfe"),
        (lambda request: pack({"actions": {b"__ndarray__": True}}), "no msgpack message of arrays"),
    ):
        policy = RemotePolicy(server(answer).url)
        with pytest.raises(ActionError, match=said):
            policy.act(torch.zeros(2, 2), ["", ""])
        policy.close()
    with pytest.raises(ConfigError, match=r"no policy server answers at ws://127\.0\.0\.1:9"):
        RemotePolicy("ws://127.0.0.1:9")


# ---- a file --------------------------------------------------------------------------------------------------------


def _exported(path: Path, observation: torch.Tensor, actions: int) -> torch.nn.Module:
    torch.manual_seed(0)
    module = torch.nn.Sequential(
        torch.nn.Linear(observation.shape[1], 16), torch.nn.Tanh(), torch.nn.Linear(16, actions)
    )
    torch.export.save(torch.export.export(module.eval(), (observation,)), path)
    return module


def test_an_exported_network_acts_as_the_module_did(tmp_path: Path) -> None:
    env = manikin.make("PickCube-v1", 5, autoreset="disabled")
    observation, _ = env.reset(seed=0)
    size = env.controller.card.size
    module = _exported(tmp_path / "net.pt2", torch.rand(4, observation.shape[1]), size)
    policy = policy_maker(str(tmp_path / "net.pt2"))(env)
    assert (policy.width, policy.name) == (4, "net")
    with torch.no_grad():
        expected = module(observation)
    torch.testing.assert_close(policy.act(observation, [""] * 5)[:, 0], expected)
    assert len(run_episodes(env, policy, range(5)).results) == 5


def test_a_network_that_mixes_rows_is_fed_copies_of_one_row(tmp_path: Path) -> None:
    """An exported network takes one size of batch only, also where rows must be fed one by one."""

    class Mixing(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x[:, :2] - x[:, :2].mean(0)

    torch.export.save(torch.export.export(Mixing().eval(), (torch.rand(4, 3),)), tmp_path / "mixing.pt2")
    policy, rows = load_policy(tmp_path / "mixing.pt2"), torch.rand(6, 3)
    torch.testing.assert_close(policy.act(rows, [""] * 6), torch.zeros(6, 1, 2))  # each is the mean of its copies


def test_what_is_no_exported_network_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AssetError, match="no file"):
        load_policy(tmp_path / "none.pt2")
    (tmp_path / "bad.pt2").write_bytes(b"not a zip")
    with pytest.raises(DataError, match=r"bad\.pt2 was not written by torch\.export\.save"):
        load_policy(tmp_path / "bad.pt2")
    two = torch.nn.Bilinear(2, 2, 2).eval()
    torch.export.save(torch.export.export(two, (torch.rand(4, 2), torch.rand(4, 2))), tmp_path / "two.pt2")
    with pytest.raises(DataError, match=r"two\.pt2"):
        load_policy(tmp_path / "two.pt2")
    _exported(tmp_path / "net.pt2", torch.rand(4, 9), 8)
    policy = load_policy(tmp_path / "net.pt2")
    said = r"net\.pt2 was exported for another observation: it takes \(B, 9\) float32, and is shown "
    for shown, words in (
        (torch.zeros(3, 7), r"\(B, 7\) float32"),
        (torch.zeros(3, 9).double(), r"\(B, 9\) float64"),
        ({"policy": {"qpos": torch.zeros(3, 9)}}, r"policy/qpos \(B, 9\) float32"),
    ):
        with pytest.raises(ConfigError, match=said + words):
            policy.act(shown, [""] * 3)
    with pytest.raises(UnknownNameError, match="ws://host:port"):
        policy_maker("clever")
