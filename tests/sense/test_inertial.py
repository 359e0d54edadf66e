"""IMU and range finder: against finite differences, closed forms and the declared noise, on both kinds of device."""

from __future__ import annotations

import json
import math
from pathlib import Path

import mujoco
import numpy as np
import pytest
import torch

import manikin
from manikin.data.recorder import Recorder
from manikin.data.recording.read import EpisodeFile
from manikin.data.replay.rerecord import rerecord
from manikin.env.observe import Observation
from manikin.errors import ConfigError, UnknownNameError
from manikin.eval.runner import run_episodes
from manikin.policy.random_policy import RandomPolicy
from manikin.rng import EpisodeRng
from manikin.sense.imperfect import Drift, Noise
from manikin.sense.imu import Imu
from manikin.sense.rangefinder import RangeFinder
from manikin.spec.prop import Shape

TASK = "PickCube-v2"
DEVICES = ["cpu", "warp:cpu"]
G = 9.81


class Falling(manikin.Task):
    """A ball in the air beside a robot.

    Success: never.
    """

    id, instruction, horizon_s, control = "Falling-v0", "stay", 2.0, "joint_pos"

    def scene(self, b):
        robot = b.robot()
        ball = b.part("ball", [Shape(type="sphere", size=(0.05,))], pos=(0.6, 0.6, 3.0), mass=0.2)
        b.fixture("floor", Shape(type="box", size=(9.0, 9.0, 0.1), pos=(0.0, 0.0, -0.1)))
        return {"robot": robot, "ball": ball}

    def start(self, h, ep):
        h.robot.set_qpos(h.robot.keyframe())
        h.ball.set_pose((0.6, 0.6, 3.0))

    def evaluate(self, h):
        return {"success": torch.zeros(h.n, dtype=torch.bool)}

    def observe(self, h):
        return {"privileged": {"height": h.ball.pos[:, 2:]}}


def make(*sources, task=TASK, n=2, **options):
    return manikin.make(
        task, n, robot="panda", observe=["state", *sources], autoreset="disabled", reward="sparse", **options
    )


@pytest.mark.parametrize("device", DEVICES)
def test_at_rest_an_imu_reads_gravity_upwards_and_falling_it_reads_nothing(device: str) -> None:
    on_ball = Imu(name="ball_imu", on="ball")
    turned = Imu(name="turned", on="robot", quat=(math.sqrt(0.5), math.sqrt(0.5), 0.0, 0.0))
    env = make(on_ball, turned, task=Falling, device=device)
    env.reset(seed=0)
    for _ in range(3):
        seen = env.step(env.towards(env.arm_qpos))[0]
    assert seen["ball_imu"]["accelerometer"].abs().max() < 2e-3 and seen["ball_imu"]["gyro"].abs().max() < 1e-3
    base = seen["turned"]
    assert torch.allclose(base["accelerometer"], torch.tensor([0.0, G, 0.0]).expand(2, 3), atol=2e-3)
    assert base["gyro"].abs().max() < 1e-5


def test_a_moving_imu_agrees_with_differences_of_its_poses() -> None:
    place = (0.03, -0.02, 0.05)
    env = make(Imu(on="robot/hand", pos=place), n=1, task=Falling, control_hz=500, physics_hz=500)
    env.reset(seed=0)
    poses, readings, rest = [], [], env.arm_qpos.clone()
    for k in range(150):
        wave = 0.1 * (1 - math.cos(2 * math.pi * k / 150))  # begins and ends at rest
        way = torch.tensor([[wave, 0.5 * wave, -wave, wave, wave, -wave, wave]])
        seen = env.step(env.towards(rest + way))[0]
        model, data = env.model_data()
        mujoco.mj_kinematics(model, data)
        body = model.body("robot/hand").id
        rotation = data.xmat[body].reshape(3, 3).copy()
        poses.append((rotation, data.xpos[body] + rotation @ place))
        readings.append({name: value[0].numpy().astype(float) for name, value in seen["imu"].items()})
    dt, middle = 1 / 500, range(40, 110)
    for k in middle:
        rotation = poses[k][0]
        spin = (rotation - poses[k - 1][0]) / dt  # MuJoCo's step: the velocity after it made the move
        skew = rotation.T @ spin
        rate = np.array([skew[2, 1] - skew[1, 2], skew[0, 2] - skew[2, 0], skew[1, 0] - skew[0, 1]]) / 2
        assert np.abs(readings[k]["gyro"] - rate).max() < 0.01 + 0.02 * np.abs(rate).max()
        # sensors hold the acceleration that led to this step: velocity after it minus velocity before it
        after, now, before = (poses[k + i][1] for i in (0, -1, -2))
        acceleration = poses[k - 1][0].T @ ((after - 2 * now + before) / dt**2 + np.array([0, 0, G]))
        assert np.abs(readings[k]["accelerometer"] - acceleration).max() < 0.3 + 0.05 * np.abs(acceleration).max()


@pytest.mark.parametrize("device", DEVICES)
def test_ranges_are_those_of_geometry(device: str) -> None:
    """Rays from a ball 3 m up in a plane that stands upright: the floor is at height / cos of the angle."""
    down = RangeFinder(
        on="ball", rays=9, angles=(-0.8, 0.8), far=4.0, quat=(math.sqrt(0.5), 0.0, math.sqrt(0.5), 0.0)
    )  # x down
    up = RangeFinder(name="up", on="ball", quat=(math.sqrt(0.5), 0.0, -math.sqrt(0.5), 0.0), far=7.5)
    env = make(down, up, task=Falling, device=device)
    seen, _ = env.reset(seed=0)
    for _ in range(2):
        height = seen["privileged"]["height"]
        expected = (height / torch.cos(torch.linspace(-0.8, 0.8, 9))).clamp(max=4.0)
        assert torch.allclose(seen["range"], expected, atol=1e-3) and (seen["range"][:, 0] == 4.0).all()
        assert seen["up"].shape == (2, 1) and (seen["up"] == 7.5).all()
        seen = env.step(env.towards(env.arm_qpos))[0]


@pytest.mark.parametrize("device", DEVICES)
def test_noise_is_as_declared_and_the_episodes_own(device: str) -> None:
    quiet = (Imu(), RangeFinder(on="robot/hand", quat=(math.sqrt(0.5), 0.0, -math.sqrt(0.5), 0.0)))
    noisy = (
        Imu(gyro_noise=[Noise(0.02, bias_std=0.1)], accelerometer_noise=[Drift(0.5)]),
        RangeFinder(on="robot/hand", quat=(math.sqrt(0.5), 0.0, -math.sqrt(0.5), 0.0), noise=[Noise(0.01)]),
    )
    n = 64 if device == "cpu" else 3
    options = {"device": device, "control_hz": 20}
    env, plain, one = make(*noisy, n=n, **options), make(*quiet, n=n, **options), make(*noisy, n=1, **options)
    a, b, c = env.reset(seed=0)[0], plain.reset(seed=0)[0], one.reset(seed=2)[0]
    errors = []
    for k in range(21):
        if k:
            a, b, c = (e.step(torch.zeros(e.num_envs, 8))[0] for e in (env, plain, one))
        assert torch.equal(a["imu"]["gyro"][2], c["imu"]["gyro"][0]) and torch.equal(a["range"][2], c["range"][0])
        errors.append({k: a["imu"][k] - b["imu"][k] for k in a["imu"]})
    seeds = EpisodeRng(torch.arange(n), torch.zeros(n, dtype=torch.int64))
    bias = seeds.normal("sense/imu/gyro/0/bias", 0.0, 1.0, (3,)) * 0.1
    step = seeds.derive(torch.full((n,), 20)).normal("sense/imu/gyro/0/noise", 0.0, 1.0, (3,)) * 0.02
    assert torch.allclose(errors[20]["gyro"], bias + step, atol=2e-6)
    assert (errors[0]["accelerometer"] == 0).all()
    if n == 64:  # after a second a walk is as wide as declared
        assert errors[20]["accelerometer"].std().item() == pytest.approx(0.5, rel=0.2)
        assert errors[5]["accelerometer"].std().item() == pytest.approx(0.25, rel=0.2)
    kept = env.save()
    after = env.step(torch.zeros(n, 8))[0]
    loaded = env.load(kept)[0]
    assert all(torch.equal(loaded["imu"][name], a["imu"][name]) for name in a["imu"])
    again = env.step(torch.zeros(n, 8))[0]
    assert all(torch.equal(again["imu"][name], after["imu"][name]) for name in a["imu"])
    assert torch.equal(again["range"], after["range"])


def test_they_are_described_with_their_noise_and_change_no_physics() -> None:
    sources = (Imu(on="robot/hand", gyro_noise=[Noise(0.1), Drift(0.2)]), RangeFinder(rays=3))
    env, plain = make(*sources), manikin.make(TASK, 2, robot="panda", observe="state_dict", autoreset="disabled")
    said = json.loads(json.dumps(env.fingerprint()["observe"]))
    assert said[1]["gyro_noise"] == [{"kind": "Noise", "std": 0.1}, {"kind": "Drift", "std": 0.2}]
    assert Observation.of(said).plain == said
    env.reset(seed=3), plain.reset(seed=3)
    for _ in range(5):
        env.step(torch.full((2, 8), 0.3)), plain.step(torch.full((2, 8), 0.3))
    assert torch.equal(env.state_hash(), plain.state_hash())


@pytest.mark.parametrize(
    ("source", "error", "message"),
    [
        (lambda: Imu(on="robot/hadn"), UnknownNameError, "Did you mean 'robot/hand'"),
        (lambda: Imu(pos=(0.0, 1.0)), ConfigError, "pos of 'imu' must be 3 numbers"),
        (lambda: Imu(quat=(0.0, 0.0, 0.0, 0.0)), ConfigError, "must not be zero"),
        (lambda: RangeFinder(rays=0), ConfigError, "1 to 4096"),
        (lambda: RangeFinder(far=-1.0), ConfigError, "positive"),
        (lambda: Imu(name="policy"), ConfigError, "two sources of an observation are named policy"),
        (lambda: Imu(name="a/b"), ConfigError, "without '/'"),
    ],
)
def test_what_cannot_be_is_refused_in_words(source, error, message) -> None:
    with pytest.raises(error, match=message):
        make(source())


def test_a_recording_is_observed_anew_through_sensors_that_it_was_made_without(tmp_path: Path) -> None:
    env = manikin.make(TASK, 2, robot="panda", horizon=4, terminate=False, autoreset="disabled")
    with Recorder(env, tmp_path / "run.h5", states=True) as recorder:
        run_episodes(env, RandomPolicy(env), [0, 1], observers=[recorder])
    observe = ["state", Imu(on="robot/hand"), RangeFinder()]
    rerecord(tmp_path / "run.h5", tmp_path / "anew.h5", observe=observe)
    rerecord(tmp_path / "run.h5", tmp_path / "states.h5", observe=observe, way="states")
    with EpisodeFile(tmp_path / "anew.h5") as anew, EpisodeFile(tmp_path / "states.h5") as states:
        seen = anew[1].observations
        assert seen["imu/gyro"].shape == (5, 3) and seen["range"].shape == (5, 1)
        assert np.allclose(states[1].observations["range"], seen["range"], atol=1e-5)
        assert np.allclose(states[1].observations["imu/gyro"], seen["imu/gyro"], atol=1e-5)


def test_a_robots_own_unit_is_observed_by_its_name() -> None:
    """Against the robot's own handle, in motion; and noise and a turn on top of it. Its base is elsewhere."""
    half = math.sqrt(0.5)
    sources = (
        Imu(on="robot/imu"),
        Imu(name="turned", on="robot/imu", quat=(half, 0.0, 0.0, half)),
        Imu(name="noisy", on="robot/imu", gyro_noise=[Noise(0.1)]),
        Imu(name="base", on="robot"),
    )

    class Walking(Falling):
        id, control, robots = "Walking-v0", "joint_target_delta_pos", ("go2",)

        def start(self, h, ep):
            h.robot.set_root((0.0, 0.0, 0.5, 1.0, 0.0, 0.0, 0.0), (0.3, 0.0, 0.0, 0.4, -0.2, 0.6))
            h.robot.set_qpos(h.robot.keyframe())
            h.ball.set_pose((3.0, 3.0, 3.0))

    env = manikin.make(Walking, 2, observe=["state", *sources], autoreset="disabled", reward="sparse")
    env.reset(seed=0)
    for _ in range(6):  # it falls and lands
        seen = env.step(env.hold() + 0.2)[0]
        own = env.robots[0].imus["imu"]
        assert torch.equal(seen["imu"]["accelerometer"], own.acceleration)
        assert torch.equal(seen["imu"]["gyro"], own.gyro) and own.gyro.norm() > 0.05
        x, y, z = own.gyro.unbind(1)
        assert torch.allclose(seen["turned"]["gyro"], torch.stack([y, -x, z], 1), atol=1e-5)
        assert 0.01 < (seen["noisy"]["gyro"] - own.gyro).abs().max() < 1.0
    assert (seen["base"]["accelerometer"] - own.acceleration).abs().max() > 1e-3
    assert env.fingerprint()["observe"][1] == {"kind": "Imu", "on": "robot/imu"}
    with pytest.raises(UnknownNameError, match=r"'robot/imo'. Did you mean 'robot/imu'"):
        manikin.make(Walking, 1, observe=["state", Imu(on="robot/imo")])
