"""Contact forces on robots' links: against MuJoCo's own contacts, in episodes, recordings, reports."""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np
import pytest
import torch

from manikin.data.recorder import Recorder
from manikin.data.recording.read import read_episodes
from manikin.env.make import make
from manikin.eval.evaluation import Evaluation, TaskResult
from manikin.eval.pages.report import render_html
from manikin.eval.protocol import load_protocol
from manikin.eval.report import as_dict
from manikin.eval.runner import run_episodes
from manikin.policy.random_policy import RandomPolicy
from toy_env import Chase, ToyEnv


def of_contacts(env, row: int) -> dict[str, np.ndarray]:
    """Net force on every body in the world [N], from MuJoCo's list of contacts for the row's present state."""
    model, data = env.model_data(row)
    net = np.zeros((model.nbody, 3))
    for i, contact in enumerate(data.contact):
        force = np.zeros(6)
        mujoco.mj_contactForce(model, data, i, force)
        world = contact.frame.reshape(3, 3).T @ force[:3]
        one, two = model.geom_bodyid[contact.geom]
        net[one] -= world
        net[two] += world
    return {model.body(b).name: net[b] for b in range(model.nbody)}


def pressed(**options):
    """Rows whose hand presses on the table, whose fingers do, whose arm is free; with current forces."""
    env = make("PickCube-v2", num_envs=3, autoreset="disabled", **options)
    env.reset(seed=3)
    hand = [0.01, 0.85, -0.35, -1.83, 0.04, 1.4, 1.01]
    fingers = [0.008, 0.743, -0.029, -1.809, 0.018, 2.102, 0.764]
    env.robot.set_qpos(torch.tensor([hand, fingers, env.robot.keyframe().tolist()], device=env.device))
    env.world.forward()
    return env


def test_forces_are_the_norm_of_what_all_contacts_do_to_each_link() -> None:
    env = pressed()
    found = env.forces.numpy()
    assert env.force_names[0] == "total" and len(env.force_names) == found.shape[1]
    assert {"hand", "link7", "fingers/left_finger", "fingers/right_finger"} < set(env.force_names)
    assert "link0" not in env.force_names  # it cannot move
    for row in range(3):
        net = of_contacts(env, row)
        links = {name: np.linalg.norm(net["robot/" + name.removeprefix("fingers/")]) for name in env.force_names[1:]}
        np.testing.assert_allclose(found[row, 1:], list(links.values()), rtol=1e-4, atol=1e-4)
        counted = sum(force for name, force in links.items() if not name.startswith("fingers/"))
        assert found[row, 0] == pytest.approx(counted, rel=1e-4, abs=1e-4)
    assert found[0, 0] > 10 and found[1, 0] == 0 and found[1].max() > 10  # fingers are not in the total
    assert (found[2] == 0).all()
    env.close()


def test_forces_of_two_robots_are_one_table() -> None:
    env = make("TwoArmLift-v3", num_envs=1, autoreset="disabled")
    env.reset(seed=0)
    several = [name for name in env.force_names if name != "total"]
    assert len(set(several)) == len(several) and {name.split("/")[0] for name in several} == {
        r.name for r in env.robots
    }
    assert env.forces.shape == (1, len(env.force_names))
    assert env.joints.shape == (1, len(env.joint_names))
    env.close()


def test_forces_of_a_row_do_not_depend_on_the_others() -> None:
    found = []
    for n in (1, 3):
        env = make("PickCube-v2", num_envs=n, autoreset="disabled")
        env.reset(seed=[7, 8, 9][:n])
        down = torch.zeros(n, 8)
        down[:, 1], down[:, 3] = 1.0, 1.0
        rows = []
        for _ in range(25):
            env.step(down)
            rows.append(env.forces[0].clone())
        found.append(torch.stack(rows))
        env.close()
    assert (found[0] == found[1]).all() and found[0].max() > 1


def test_sums_and_peaks_are_those_of_the_trace_wherever_they_are_told(tmp_path: Path) -> None:
    env = ToyEnv(3, horizon=12)
    recorder = Recorder(env, tmp_path / "run.h5")
    run = run_episodes(env, Chase(), range(7), observers=[recorder])
    alone = run_episodes(ToyEnv(2, horizon=12), Chase(), range(7))  # without a recorder, in another batch
    assert run.results == alone.results
    recorder.close()
    with read_episodes(tmp_path / "run.h5") as episodes:
        for result, episode in zip(run.results, episodes, strict=True):
            at = np.abs(episode.states[1:, 0].astype(np.float64) * 10).astype(np.float32)
            assert (episode.forces["arm"] == at).all() and (episode.forces["total"] == at).all()
            assert result.force_sum == episode.force_sum and result.force_peak == episode.force_peak
            assert result.force_peak["arm"] == at.max() and result.force_sum["arm"] == at.astype(np.float64).sum()
            assert (episode.joints["y"] == episode.states[:, 1].astype(np.float32)).all()
            row = episodes.attributes(episode.number)
            assert row["force_peak"] == at.max() and row["force_sum"] == at.astype(np.float64).sum()


def test_the_report_says_how_hard_the_robot_pressed() -> None:
    run = run_episodes(ToyEnv(4, horizon=12), Chase(), range(20))
    protocol = load_protocol("pick-cube")
    task = TaskResult(
        task="PickCube-v2",
        results=run.results,
        fingerprint={"control_hz": 20.0},
        held_steps=1,
        confidence=0.95,
        seconds=1.0,
        env_steps=run.env_steps,
    )
    made = Evaluation(
        protocol=protocol, policy="chase", tasks=(task,), interrupted=False, created="2026-01-01T00:00:00"
    )
    report = as_dict(made)
    force = report["per_task"][0]["forces"]
    assert list(force) == ["total", "arm", "fingers/tip"]
    peaks = np.array([r.force_peak["arm"] for r in run.results])
    assert force["arm"]["peak"] == {
        "mean": pytest.approx(peaks.mean()),
        "p95": pytest.approx(np.percentile(peaks, 95)),
        "worst": peaks.max(),
        "seed": int(peaks.argmax()),
    }
    page = render_html(report)
    assert "How hard it pressed" in page and "finger: tip" in page and f"{peaks.max():,.1f}" in page


def test_recordings_of_real_tasks_have_forces_joints_and_reward_terms(tmp_path: Path) -> None:
    env = make("PushCube-v2", num_envs=2, autoreset="disabled", horizon=15)
    recorder = Recorder(env, tmp_path / "run.h5")
    run_episodes(env, RandomPolicy(env), range(2), observers=[recorder])
    recorder.close()
    with read_episodes(tmp_path / "run.h5") as episodes:
        episode = episodes[1]
        assert tuple(episode.forces) == env.force_names and tuple(episode.joints) == env.joint_names
        assert all(len(v) == len(episode) for v in (*episode.forces.values(), *episode.reward_terms.values()))
        assert all(len(v) == len(episode) + 1 for v in episode.joints.values())
        scale = env.task.reward_norm or env.task.reward_max
        np.testing.assert_allclose(sum(episode.reward_terms.values()) / scale, episode.rewards, atol=1e-5)
        qpos = [env.scene.model.joint("robot/" + name).qposadr[0] for name in env.joint_names]
        states = episode.states[:, 1:][:, qpos]  # time comes first
        np.testing.assert_array_equal(np.stack(list(episode.joints.values()), 1), states.astype(np.float32))
    env.close()
