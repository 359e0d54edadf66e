"""Policies behind websockets."""

from __future__ import annotations

import contextlib
import struct
import threading
import time

import numpy as np
import pytest
import torch

import manikin
from manikin.errors import ActionError, ConfigError, DataError
from manikin.eval.runner import run_episodes
from manikin.policy.choices import policy_maker
from manikin.policy.remote.wire import pack, unpack

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


def test_rows_are_asked_one_by_one_and_chunks_are_executed(server, monkeypatch) -> None:
    monkeypatch.setenv("MANIKIN_POLICY_KEY", "secret")

    def answer(request):
        first = np.full((4, 8), 0.1, np.float32)
        first[:, 0] = request["policy/qpos"][0]
        return {"actions": first, "server_timing": {"infer_ms": 1.0}}

    there = server(answer)
    env = manikin.make("PickCube-v2", 3, observe="state_dict", autoreset="disabled", control="joint_delta_pos")
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


@pytest.mark.parametrize(
    "said, name, sha256",
    [
        ({"policy": "pi0 step=3", "policy_sha256": "ab" * 32}, "pi0 step=3", "ab" * 32),
        ({"policy": "[red]<b>", "policy_sha256": "AB" * 32}, None, None),
        ({"policy": 3, "policy_sha256": "ab" * 31}, None, None),
        ({}, None, None),
    ],
)
def test_a_server_s_policy_is_called_as_its_metadata_say_or_by_its_address(server, said, name, sha256) -> None:
    there = server(lambda request: None, metadata=said)
    policy = policy_maker(there.url)(None)
    assert policy.name == (name or f"remote 127.0.0.1:{there.port}") and policy.sha256 == sha256


def test_names_and_scales_of_a_server_are_adapted(server) -> None:
    from manikin.policy.remote.client import RemotePolicy

    there = server(lambda request: {"actions": request["observation/state"][None, :2] * 100})
    policy = RemotePolicy(
        there.url, adapt=lambda r: {"observation/state": r["state"], "prompt": r["prompt"]}, restore=lambda a: a / 100
    )
    state = torch.rand(2, 5)
    assert torch.allclose(policy.act(state, ["a", "b"])[:, 0], state[:, :2])
    assert [set(r) for r in there.seen] == [{"observation/state", "prompt"}] * 2
    policy.close()


def test_what_goes_wrong_at_the_server_is_said(server) -> None:
    from manikin.policy.remote.client import RemotePolicy

    failing = RemotePolicy(server(lambda request: "Traceback: CUDA out of memory").url)
    with pytest.raises(ActionError, match=r"failed: Traceback: CUDA out of memory"):
        failing.act(torch.zeros(1, 2), [""])
    with pytest.raises(ActionError, match="closed the connection"):
        failing.act(torch.zeros(1, 2), [""])
    with pytest.raises(ActionError, match=r"a dictionary with 'actions'; it returned \['action'\]"):
        RemotePolicy(server(lambda request: {"action": 1}).url).act(torch.zeros(1, 2), [""])
    lengths = iter([4, 5])
    for answer, said in (
        (
            lambda request: {"actions": np.zeros((next(lengths), 8))},
            r"different rows: \(4, 8\) and \(5, 8\); all rows need one shape",
        ),
        (lambda request: {"actions": "hello"}, r"shape \(H, A\); it returned 'hello'"),
        (lambda request: {"actions": None}, r"shape \(H, A\); it returned None"),
        (lambda request: {"actions": np.zeros(8)}, r"shape \(H, A\); it returned shape \(8,\)"),
        (lambda request: {"actions": np.full((2, 8), np.nan)}, "actions that are not finite"),
        (lambda request: {"actions": np.zeros((5000, 8), np.float16)}, "5000 steps; at most 1000 are accepted"),
        (lambda request: {"actions": np.zeros((2_000_000, 8), np.float32)}, "sent a message of more than 4 MiB"),
        (lambda request: {"actions": bytes(300_000_000)}, "sent a message of more than 4 MiB"),
        (lambda request: {"actions": np.zeros((0, 8))}, r"shape \(H, A\); it returned shape \(0, 8\)"),
        (lambda request: b"\xff\xfe\x00abc", r"no msgpack message of arrays: b'\\xff\\xfe"),
        (lambda request: pack({"actions": {b"__ndarray__": True}}), "no msgpack message of arrays"),
    ):
        policy = RemotePolicy(server(answer).url)
        with pytest.raises(ActionError, match=said):
            policy.act(torch.zeros(2, 2), ["", ""])
        policy.close()
    with pytest.raises(ConfigError, match=r"cannot connect to a policy server at ws://127\.0\.0\.1:9"):
        RemotePolicy("ws://127.0.0.1:9")


def test_an_answer_too_many_is_noticed(server) -> None:
    """Two answers for one request: the next request must not be answered by the second of them."""
    from manikin.policy.remote.client import RemotePolicy

    def twice(request):
        said = {"actions": np.full((1, 2), request["state"][0])}
        return [said, said] if request["state"][0] == 3 else said

    there = server(twice)
    policy = RemotePolicy(there.url)
    for step in range(4):
        assert float(policy.act(torch.full((1, 4), float(step)), [""])[0, 0, 0]) == step
    until = time.monotonic() + 60
    while there.sent < 5:
        assert time.monotonic() < until
        time.sleep(0.01)
    assert policy.socket.ping().wait(60)  # what was sent before its answer has arrived
    with pytest.raises(ActionError, match="sent an extra answer that no request asked for"):
        policy.act(torch.full((1, 4), 4.0), [""])
    policy.close()


def test_a_server_that_numbers_its_answers_is_held_to_it(server) -> None:
    from manikin.policy.remote.client import RemotePolicy

    late, kept = threading.Event(), []

    def answer(request):
        kept.append({"actions": np.full((1, 2), request["state"][0]), "request_id": request["request_id"]})
        return kept[-2] if late.is_set() else kept[-1]  # one behind

    there = server(answer, metadata={"request_id": True})
    policy = RemotePolicy(there.url)
    for step in range(3):
        assert float(policy.act(torch.full((1, 4), float(step)), [""])[0, 0, 0]) == step
    assert [r["request_id"] for r in there.seen] == [0, 1, 2]
    late.set()
    with pytest.raises(ActionError, match="returned request_id 2 for request 3"):
        policy.act(torch.full((1, 4), 3.0), [""])
    policy.close()


def test_a_server_that_stays_silent_or_takes_nothing_is_given_up(server, monkeypatch) -> None:
    from manikin.policy.remote import client

    monkeypatch.setattr(client, "TIMEOUT", 1.0)
    over = threading.Event()

    def sleeps(request):
        over.wait(20)
        return {"actions": np.zeros((1, 2))}

    try:
        for rows in (torch.zeros(1, 2), torch.zeros(1, 10_000_000)):  # the second fills every buffer on its way
            there = server(sleeps)
            policy, began = client.RemotePolicy(there.url), time.monotonic()
            if rows.shape[1] > 2:  # the server is busy with another request, and reads no further
                policy.socket.send(pack({"first": 1}))
                policy.socket.send(pack({"second": bytes(1000)}))
            with pytest.raises(ActionError, match="did not answer within 1 s"):
                policy.act(rows, [""])
            assert time.monotonic() - began < 50  # and not a minute, as without the change above
            policy.close()
    finally:
        over.set()


@pytest.mark.parametrize("seed", range(3))
def test_messages_of_every_kind_are_answered_in_words(seed: int) -> None:
    """Bytes of a good message changed at random, and headers of arrays that lie: a DataError or a value, never else."""
    random = np.random.default_rng(seed)
    good = pack({"actions": np.ones((4, 8), np.float32), "timing": {"ms": np.float32(1.0)}, "names": ["a", None]})
    for _ in range(2000):
        message = bytearray(good)
        for place in random.integers(0, len(good), random.integers(1, 5)):
            message[place] = random.integers(256)
        with contextlib.suppress(DataError):
            unpack(bytes(message))
    dtypes = [
        "O",
        "V8",
        "<c16",
        "f4,f4",
        "(2,2)f4",
        "S0",
        "U1000000000",
        "{'a':'f4'}",
        "f3",
        "",
        "M8[7D]",
        3,
        None,
        [1],
    ]
    for dtype in dtypes:
        for shape in ([4, 8], [-1], [-1, -1], [2**62, 2**62], "x", [], None):
            for kind in (b"__ndarray__", b"__npgeneric__"):
                lie = {kind: True, b"data": bytes(128), b"dtype": dtype, b"shape": shape}
                with contextlib.suppress(DataError):
                    unpack(msgpack.packb(lie))
    for bomb in (b"\x91" * 100_000, b"\xdd\xff\xff\xff\xff", b"\xc6\xff\xff\xff\xff", b"", b"\xd6\xff"):
        with pytest.raises(DataError, match="no msgpack message"):
            unpack(bomb)
