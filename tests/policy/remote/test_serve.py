"""A served policy answers as it does here, and refuses what it cannot answer."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch

pytest.importorskip("websockets", reason="websockets is not installed: pip install 'manikin[remote]'")
pytest.importorskip("msgpack", reason="msgpack is not installed: pip install 'manikin[remote]'")

from manikin import make
from manikin.cli import main as command_line
from manikin.cli.serve import ServeOptions, served_policy
from manikin.errors import ActionError, ConfigError
from manikin.policy.choices import policy_maker, trained_file
from manikin.policy.files.checkpoint import load_policy
from manikin.policy.network import NetworkPolicy
from manikin.policy.networks import GaussianActor
from manikin.policy.remote.client import RemotePolicy
from manikin.policy.remote.server import PolicyServer
from manikin.policy.trained import about_env, save_trained, trained_policy


@pytest.fixture
def policy():
    return NetworkPolicy(GaussianActor(observations=35, actions=8, hidden=[16], log_std=0.0))


def test_the_answer_is_the_policy_s_own(policy):
    observation, _ = make("PushCube-v2", num_envs=3).reset(seed=1)
    with PolicyServer(policy, {"state": (35,)}, port=0, metadata={"task": "PushCube-v2"}, batch=True) as server:
        remote = RemotePolicy(server.url)
        assert remote.metadata == {"task": "PushCube-v2", "request_id": True, "batch": 64}
        assert torch.equal(remote.act(observation, ["push"] * 3), policy.act(observation, ["push"] * 3))


@pytest.mark.parametrize(
    "observation, said",
    [
        (torch.zeros(1, 34), r"'state' has shape \(34,\); this policy takes state \(35,\)"),
        ({"qpos": torch.zeros(1, 9)}, "has no 'state'"),
        ({"state": torch.zeros(1, 35), "more": torch.zeros(1, 2)}, "unknown 'more'"),
    ],
)
def test_a_request_that_it_cannot_answer_says_why_and_others_go_on(policy, observation, said):
    with PolicyServer(policy, {"state": (35,)}, port=0) as server:
        with pytest.raises(ActionError, match=said):
            RemotePolicy(server.url).act(observation, [""])
        assert RemotePolicy(server.url).act(torch.zeros(1, 35), [""]).shape == (1, 1, 8)


def test_without_the_key_nobody_connects(policy, monkeypatch):
    with PolicyServer(policy, {"state": (35,)}, port=0, key="right") as server:
        for key in ("", "wrong"):
            monkeypatch.setenv("MANIKIN_POLICY_KEY", key)
            with pytest.raises(ConfigError, match="401; set MANIKIN_POLICY_KEY to the key of the server"):
                RemotePolicy(server.url)
        monkeypatch.setenv("MANIKIN_POLICY_KEY", "right")
        RemotePolicy(server.url)


def test_a_request_beyond_the_limit_is_refused_and_others_go_on(policy):
    from websockets.exceptions import ConnectionClosed
    from websockets.sync.client import connect

    with PolicyServer(policy, {"state": (35,)}, port=0) as server:
        with connect(server.url, max_size=None) as socket:
            socket.recv()
            with pytest.raises(ConnectionClosed) as closed:  # noqa: PT012 - while it sends, or while it waits
                socket.send(bytes(2**26 + 1))
                socket.recv()
        assert closed.value.rcvd is not None and closed.value.rcvd.code == 1009  # too big
        assert RemotePolicy(server.url).act(torch.zeros(1, 35), [""]).shape == (1, 1, 8)


def test_a_port_in_use_and_a_policy_with_memory_are_refused(policy):
    with PolicyServer(policy, {"state": (35,)}, port=0) as server, pytest.raises(ConfigError, match="cannot listen on"):
        PolicyServer(policy, {"state": (35,)}, port=server.port)
    policy.stateless = False
    with pytest.raises(ConfigError, match="only a stateless policy"):
        PolicyServer(policy, {"state": (35,)}, port=0)


def test_the_command_serves_a_checkpoint_until_it_is_interrupted(policy, tmp_path):
    env = make("PushCube-v2", num_envs=2)
    network = {"kind": "gaussian", "options": {"observations": 35, "actions": 8, "hidden": [16]}}
    about = {"algorithm": "ppo", "width": 4, **about_env(env)}
    save_trained(tmp_path / "policy.safetensors", policy.module, network=network, about=about)
    words = [sys.executable, "-m", "manikin.cli", "serve", str(tmp_path), "--port", "0"]
    quiet = {**os.environ, "COLUMNS": "200", "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=quiet) as process:
        try:
            line = process.stdout.readline()
            remote = RemotePolicy(line.partition(" at ")[2].partition(";")[0])
            assert remote.metadata["task"] == "PushCube-v2"
            observation, _ = env.reset(seed=2)
            assert torch.equal(remote.act(observation, ["", ""]), policy.act(observation, ["", ""]))
        finally:
            process.send_signal(signal.SIGINT)
            try:
                status = process.wait(20)
            finally:
                process.kill()
        assert status == 0


PUSH = """
from manikin.policy.chunk import Execution

class Push:
    stateless = True
    execution = Execution(3)
    def reset(self, rows): ...
    def act(self, observation, instruction):
        return observation["policy"]["qpos"][:, None, :8].clamp(-1, 1)

def policy(env):
    return Push()

def forgetful(env):
    made = Push()
    made.stateless = False
    return made
"""


def test_any_policy_is_served_by_its_word(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("push.py").write_text(PUSH)
    network = GaussianActor(observations=35, actions=8, hidden=[16], log_std=0.0)
    torch.export.save(torch.export.export(network.eval(), (torch.zeros(1, 35),)), "small.pt2")
    flat, _ = make("PushCube-v2", num_envs=2).reset(seed=3)
    named, _ = make("PushCube-v2", num_envs=2, observe="state_dict").reset(seed=3)
    for word, task, shown, alone in (
        ("ppo-PushCube-v2", None, flat, trained_policy(trained_file("ppo-PushCube-v2"))),
        ("small.pt2", None, flat, lambda env: load_policy("small.pt2")),
        ("push.py:policy", "PushCube-v2", named, policy_maker("push.py:policy")),
    ):
        options = ServeOptions(policy=word, task=task, observe="state_dict" if task else None)
        served, shapes, told = served_policy(options)
        env = make("PushCube-v2", num_envs=2, **served_by(told))
        with PolicyServer(served, shapes, port=0, metadata=told) as server:
            remote = RemotePolicy(server.url)
            given = remote.act(shown, ["", ""])
        assert torch.equal(given, alone(env).act(shown, ["", ""])), word
        assert remote.execution == alone(env).execution, "chunks are executed as the policy wants"


def test_rows_that_are_computed_together_do_not_change_each_other():
    served, shapes, _ = served_policy(ServeOptions(policy="ppo-PushCube-v2", together=8))
    rows, _ = make("PushCube-v2", num_envs=5).reset(seed=4)
    with PolicyServer(served, shapes, port=0, batch=True) as server:
        remote = RemotePolicy(server.url)
        every = remote.act(rows, [""] * 5)
        assert all(torch.equal(remote.act(rows[i : i + 1], [""])[0], every[i]) for i in range(5))


def served_by(told):
    return {"control": told["control"]} if told.get("control") else {}


def test_what_cannot_be_served_is_told_why(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("push.py").write_text(PUSH)
    for words, said in (
        (["expert"], "expert cannot be served: the protocol does not say when episodes begin"),
        (["expert", "--task", "PushCube-v2"], "Serve a run's folder, policy.safetensors, policy.pt2"),
        (["graded:noise=0.3", "--task", "PushCube-v2"], "graded:noise=0.3 cannot be served"),
        (["push.py:policy"], "give its task, manikin serve push.py:policy --task PickCube-v2"),
        (["ppo-PushCub-v2"], "unknown policy 'ppo-PushCub-v2'. Did you mean 'ppo-PushCube-v2'? Valid: ppo-"),
        (["runs/nope"], "no run's folder and no file at runs/nope"),
        (["ppo-PushCube-v2", "--together", "0"], "width must be at least 1 row"),
        (["ppo-PushCube-v2", "--device", "gpu"], "unknown device 'gpu'"),
        (["push.py:forgetful", "--task", "PushCube-v2"], "only a stateless policy can be served"),
        (["push.py:policy", "--task", "PushCube-v2", "--together", "8"], "--device and --together are for a trained"),
    ):
        assert command_line(["serve", *words, "--port", "0"]) == 2
        assert said in " ".join(capsys.readouterr().err.split())


def test_a_server_for_other_machines_wants_a_key(tmp_path, monkeypatch, capsys):
    from manikin.cli import main

    monkeypatch.delenv("MANIKIN_POLICY_KEY", raising=False)
    assert main(["serve", str(tmp_path), "--host", "0.0.0.0"]) == 2
    assert "set MANIKIN_POLICY_KEY" in capsys.readouterr().err
