"""A served policy answers as it does here, and refuses what it cannot answer."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest
import torch

pytest.importorskip("websockets", reason="websockets is not installed: pip install 'manikin[remote]'")
pytest.importorskip("msgpack", reason="msgpack is not installed: pip install 'manikin[remote]'")

from manikin import make
from manikin.errors import ActionError, ConfigError
from manikin.policy.network import NetworkPolicy
from manikin.policy.networks import GaussianActor
from manikin.policy.remote.client import RemotePolicy
from manikin.policy.remote.server import PolicyServer
from manikin.policy.trained import about_env, save_trained


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
            with pytest.raises(ConfigError, match="401"):
                RemotePolicy(server.url)
        monkeypatch.setenv("MANIKIN_POLICY_KEY", "right")
        RemotePolicy(server.url)


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


def test_a_server_for_other_machines_wants_a_key(tmp_path, monkeypatch, capsys):
    from manikin.cli import main

    monkeypatch.delenv("MANIKIN_POLICY_KEY", raising=False)
    assert main(["serve", str(tmp_path), "--host", "0.0.0.0"]) == 2
    assert "set MANIKIN_POLICY_KEY" in capsys.readouterr().err
