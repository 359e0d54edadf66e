"""Replay as a service: recordings observed anew, on another device, and converted to other controllers."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from manikin.cli import main
from manikin.cli.replay import ReplayOptions
from manikin.cli.replay import run as command
from manikin.control import Chain, IkSolver
from manikin.control.numerics.law import step_response
from manikin.data.recorder import Recorder
from manikin.data.recording.format import RESIDUALS
from manikin.data.recording.read import read_episodes
from manikin.data.replay.environment import recorded_task
from manikin.data.replay.rerecord import rerecord
from manikin.data.replay.verify import replay
from manikin.data.retarget import track
from manikin.data.retarget.conversion import retarget
from manikin.data.retarget.track import Way, hand_offset, ways_to_follow
from manikin.env.make import make
from manikin.env.observe import Vision
from manikin.env.registry import task_ids
from manikin.errors import AssetError, ConfigError, DataError, UnknownNameError
from manikin.eval.runner import run_episodes
from manikin.math import pose_mul, pose_to_matrix, quat_from_rotvec
from manikin.policy.expert import ExpertPolicy
from manikin.sense.imperfect import Delay, Noise, SensorSuite
from manikin.sense.pointcloud import PointCloudSpec
from manikin.spec.camera import CameraSpec

SEEDS = (3, 8, 21)


def record(path: Path, task: str = "PickCube-v2", seeds: tuple[int, ...] = SEEDS, **options: Any) -> Path:
    env = make(task, len(seeds), autoreset="disabled", **options)
    recorder = Recorder(env, path, policy="expert", observations="observe" in options)
    run_episodes(env, ExpertPolicy(env), seeds, observers=[recorder])
    recorder.close()
    env.close()
    return path


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record(tmp_path_factory.mktemp("recording") / "run.h5")


# ---- observed anew ---------------------------------------------------------------------------------------------------


def test_pictures_from_states_and_from_actions_are_those_of_the_live_run(tmp_path: Path) -> None:
    vision = Vision(cameras=("base_camera",), size=(24, 16), renderer="rays")
    recording = record(tmp_path / "run.h5", seeds=SEEDS[:2], horizon=6)
    live = record(tmp_path / "live.h5", seeds=SEEDS[:2], horizon=6, observe="rgb", vision=vision)
    options: dict[str, Any] = {"observe": "rgb", "vision": vision, "numbers": [0, 1]}
    assert rerecord(recording, tmp_path / "states.h5", way="states", num_envs=1, **options) is None
    report = rerecord(recording, tmp_path / "actions.h5", num_envs=2, **options)
    assert report is not None and report.exact, report.summary()
    names = ("cameras/base_camera/rgb", "policy/qpos", "policy/qvel", "policy/tcp_pose")
    with (
        read_episodes(live) as a,
        read_episodes(tmp_path / "states.h5") as b,
        read_episodes(tmp_path / "actions.h5") as c,
    ):
        for number in (0, 1):
            seen = [episodes[number].observations for episodes in (a, b, c)]
            for name in names:
                first, *others = (one[name] for one in seen if one is not None)
                assert len(others) == 2 and all(np.array_equal(first, other) for other in others), name
            assert seen[0] is not None and seen[0][names[0]].shape == (len(a[number]) + 1, 16, 24, 3)
            assert np.array_equal(a[number].rewards, b[number].rewards)
        assert b.header is not None and dict(b.header.source) | {"created": ""} == {
            "file": "run.h5",
            "created": "",
            "policy": "expert",
            "how": "states",
            "anew": ["observations"],
        }
    assert replay(tmp_path / "states.h5").exact and replay(tmp_path / "actions.h5").exact
    assert "in the recorded states" in replay(tmp_path / "states.h5").not_compared["observations"]
    assert "observations" in replay(tmp_path / "actions.h5").compared


def test_cameras_and_sensors_are_recorded_and_made_again(tmp_path: Path) -> None:
    side = CameraSpec(name="side", pos=(0.2, 0.9, 0.4), target=(0.0, 0.0, 0.1), width=20, height=12)
    vision = Vision(cameras=("hand_camera", side), renderer="rays", pointcloud=PointCloudSpec(count=None))
    sensors = {"policy/qpos": [Noise(0.1), Delay((0, 2))], "cameras/side/rgb": [Noise(9.0)]}
    path = record(tmp_path / "run.h5", seeds=SEEDS[:1], horizon=3, observe="rgb", vision=vision, sensors=sensors)
    plain = record(tmp_path / "plain.h5", seeds=SEEDS[:1], horizon=3, observe="state_dict")
    side_rgb = "cameras/side/rgb"

    def seen(name: str) -> dict[str, np.ndarray]:
        with read_episodes(tmp_path / name) as episodes:
            return dict(episodes[0].observations or {})

    then, truth = seen("run.h5"), seen("plain.h5")
    assert then[side_rgb].shape == (4, 12, 20, 3) and then["cameras/hand_camera/rgb"].shape[2] != 20
    assert 0.02 < np.abs(then["policy/qpos"] - truth["policy/qpos"]).mean() < 0.3
    assert replay(path).exact and replay(plain).exact

    report = rerecord(path, tmp_path / "again.h5", reward="sparse")
    assert report is not None and report.exact and not [c for c in report.changed if not c.startswith("reward")]
    again = seen("again.h5")
    assert then.keys() == again.keys()
    assert all(np.array_equal(value, again[name]) for name, value in then.items())  # the noise too

    rerecord(path, tmp_path / "small.h5", vision=Vision(size=(8, 6)))  # a size alone: the same cameras
    small = seen("small.h5")
    assert then.keys() == small.keys() and small[side_rgb].shape == (4, 6, 8, 3)
    rerecord(path, tmp_path / "one.h5", vision=Vision(cameras=("side",)))  # by name, though no task declares it
    one = seen("one.h5")
    assert np.array_equal(one[side_rgb], then[side_rgb]) and "cameras/hand_camera/rgb" not in one

    report = rerecord(path, tmp_path / "blind.h5", observe="state_dict")  # the camera's noise has no place
    assert report is not None and report.exact, report.summary()
    assert np.array_equal(seen("blind.h5")["policy/qpos"], then["policy/qpos"])
    rerecord(path, tmp_path / "true.h5", observe="state_dict", sensors=None)
    assert np.array_equal(seen("true.h5")["policy/qpos"], truth["policy/qpos"])


@dataclass(frozen=True)
class Doubled(Noise):
    """An imperfection of one's own."""


def test_what_describes_no_sensor_and_no_vision_is_refused(tmp_path: Path) -> None:
    own = record(tmp_path / "own.h5", seeds=(0,), horizon=1, sensors={"policy/qpos": [Doubled(0.1)]})
    kinds = "Delay, Drift, Dropout, Noise, Rate"
    with pytest.raises(UnknownNameError, match=rf"test_replay.Doubled.*{kinds}.*pass sensors="):
        replay(own)
    assert rerecord(own, tmp_path / "true.h5", sensors=None) is not None
    with pytest.raises(ConfigError, match="does not describe a Noise"):
        SensorSuite({"x": [{"kind": "Noise", "width": 2}]}, control_hz=20.0)  # type: ignore[list-item]
    with pytest.raises(ConfigError, match="vision is a Vision"):
        Vision.of({"cameras": None, "colour": True})
    described = Vision(cameras=("a",), size=(4, 3)).describe()
    assert Vision.of(json.loads(json.dumps(described))) == Vision(cameras=("a",), size=(4, 3))


OWN = """
import manikin
from manikin.arenas.table import table


class Rest(manikin.Task):
    id = "Rest-v1"
    horizon_s = 0.2
    instruction = "rest"

    def scene(self, b):
        table(b)
        return {"robot": b.robot()}

    def start(self, h, ep):
        h.robot.set_qpos(h.robot.keyframe())

    def evaluate(self, h):
        return {"success": h.robot.qpos[:, 0] > 9}

    def observe(self, h):
        return {}
"""


def test_a_task_of_ones_own_is_found_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the commands alone, as in a later session: nothing is registered and nothing imported."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    Path("rest_task.py").write_text(OWN)
    words = ["collect", "rest_task.py", "--policy", "random", "--episodes", "2", "--num-envs", "2", "--out", "a b.h5"]
    words.append("--observations")
    assert main(words) == 0  # it has no dense reward either
    assert "replay 'a b.h5' --check --task rest_task.py" in capsys.readouterr().out
    with read_episodes("a b.h5") as episodes:
        assert episodes.header is not None and episodes.header.fingerprint["reward"] == "sparse"
        assert dict(episodes.header.recorded) == {
            "first_seed": 0, "keep": "all", "states": True, "observations": True,
        }  # fmt: skip
        assert episodes[0].observations is not None
    assert "Rest-v1" not in task_ids()
    assert main(["replay", "a b.h5", "--check"]) == 0
    assert "2 of 2 episodes reproduced" in capsys.readouterr().out
    assert main([*words, "--resume", "--seed", "7"]) == 2
    assert "first_seed: 0 there, 7 here" in capsys.readouterr().err

    assert main(["convert", "a b.h5", "a.hdf5", "--to", "robomimic"]) == 0

    with read_episodes("a b.h5") as episodes:
        assert episodes.header is not None
        made = dict(episodes.header.fingerprint)
    assert made["task_class"] == "rest_task.py:Rest"
    (tmp_path / "else").mkdir()
    monkeypatch.chdir(tmp_path / "else")
    for place in ("rest_task.py:Rest", "../here/rest_task.py:Rest", f"{tmp_path.as_posix()}/here/rest_task.py:Rest"):
        with pytest.raises(DataError, match=f"{place}, which is not below the current folder"):
            recorded_task({**made, "task_class": place})
    recording = "../here/a b.h5"
    assert main(["replay", recording, "--check"]) == 2
    assert "or give the file: manikin replay --task FILE.py" in capsys.readouterr().err
    assert main(["replay", recording, "--check", "--task", "../here/rest_task.py"]) == 0
    Path("rest_task.py").write_text(OWN.replace("Rest-v1", "Rest-v2"))
    assert main(["replay", recording, "--check", "--task", "rest_task.py"]) == 2
    assert "the recording is of 'Rest-v1', but rest_task.py contains 'Rest-v2'" in capsys.readouterr().err
    Path("rest_task.py").write_text("import nothing_of_that_name")
    assert main(["replay", recording, "--check", "--task", "rest_task.py"]) == 2
    assert "rest_task.py of task Rest-v1 cannot be imported: ModuleNotFoundError" in capsys.readouterr().err


def test_rewards_of_another_kind_are_those_of_a_live_run(recording: Path, tmp_path: Path) -> None:
    live = record(tmp_path / "live.h5", seeds=SEEDS[:1], reward="dense")
    rerecord(recording, tmp_path / "actions.h5", numbers=[0], reward="dense")
    rerecord(recording, tmp_path / "states.h5", numbers=[0], reward="dense", way="states", observations=False)
    with (
        read_episodes(live) as a,
        read_episodes(tmp_path / "actions.h5") as b,
        read_episodes(tmp_path / "states.h5") as c,
    ):
        assert a[0].rewards.max() == 5.0 and np.array_equal(a[0].rewards, b[0].rewards)
        # forces, which say whether the cube is held, are of the instant in c and of the step's last physics step in a
        assert (np.abs(a[0].rewards - c[0].rewards) < 1e-5).mean() > 0.9


def test_an_interrupted_replay_goes_on_and_refuses_another_source(recording: Path, tmp_path: Path) -> None:
    out = tmp_path / "new.h5"
    rerecord(recording, out, numbers=[2], reward="sparse")
    with pytest.raises(DataError, match="exists"):
        rerecord(recording, out, reward="sparse")
    report = rerecord(recording, out, reward="sparse", resume=True)
    assert report is not None and [e.number for e in report.episodes] == [0, 1]
    with read_episodes(out) as episodes:
        assert episodes.numbers == [0, 1, 2] and set(np.unique(episodes[0].rewards)) == {0.0, 1.0}
    with pytest.raises(DataError, match="cannot be resumed"):
        rerecord(recording, out, reward="sparse", way="states", resume=True)


def test_another_device_parts_step_by_step_and_success_survives(tmp_path: Path) -> None:
    pytest.importorskip("mujoco_warp", reason="MuJoCo Warp is not installed: pip install 'manikin[gpu]'")
    path = record(tmp_path / "run.h5", seeds=SEEDS[:1], horizon=5)
    report = rerecord(path, tmp_path / "warp.h5", device="warp:cpu")
    assert report is not None and not report.exact and report.ok and not report.same_processor
    one = report.episodes[0]
    assert one.tcp is not None and one.positions is not None and len(one.tcp) == one.steps + 1
    assert one.tcp[0] < 1e-6 and 0 < one.tcp[-1] < 1e-3  # single precision
    assert (one.positions[1:] > 0).all()
    table = report.divergence((1, 5, 500))
    assert [row[:2] for row in table] == [(1, 1), (5, 1)]
    assert table[1][2][1] == pytest.approx([one.tcp[5]] * 3)
    assert "some divergence is expected" in report.summary() and "with warp:cpu" in report.replayed_on
    with read_episodes(tmp_path / "warp.h5") as episodes:
        assert episodes.header is not None and episodes.header.fingerprint["device"] == "warp:cpu"


# ---- other controllers -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("control", ["joint_pos", "joint_delta_pos"])
def test_what_a_position_controller_can_express_comes_out_the_same(
    recording: Path, tmp_path: Path, control: str
) -> None:
    report = retarget(recording, tmp_path / "new.h5", control=control)
    assert report.commands and report.success == (3, 3) and report.steps == 1.0
    # two fingers with a thing between them may move together: their joints part further than the tool
    assert report.quantiles("joints")[2] < 1e-3 and report.quantiles("tool")[2] < 1e-3
    assert report.quantiles("tool")[0] < 1e-5
    assert replay(tmp_path / "new.h5").exact


def test_joint_to_ee_to_joint_and_back_is_within_a_ten_thousandth(tmp_path: Path) -> None:
    """On six joints a pose has one solution nearby: the joints come back. Small moves, so that nothing is clipped."""
    env = make("PushCube-v2", 4, robot="ur5e", autoreset="disabled", terminate=False, horizon=10)
    recorder = Recorder(env, tmp_path / "joint.h5", policy="waves")
    waves = torch.linspace(0, 6, 10)[:, None, None] + torch.arange(6) + torch.arange(4)[:, None]
    env.reset(seed=0)

    class Waves:
        stateless, at = False, 0

        def reset(self, rows: torch.Tensor) -> None: ...

        def act(self, observation: Any, instruction: Any) -> torch.Tensor:
            arm = 0.3 * torch.sin(waves[self.at])
            self.at += 1
            return torch.cat([arm, torch.ones(4, 1)], 1)[:, None]

    run_episodes(env, Waves(), range(4), observers=[recorder])
    recorder.close()
    env.close()
    there = retarget(tmp_path / "joint.h5", tmp_path / "ee.h5", control="ee_pose")
    back = retarget(tmp_path / "ee.h5", tmp_path / "back.h5", control="joint_delta_pos", stretch=1)
    assert there.steps == back.steps == 1.0
    assert there.quantiles("joints")[2] < 1e-4 and back.quantiles("joints")[2] < 1e-4
    with read_episodes(tmp_path / "joint.h5") as a, read_episodes(tmp_path / "back.h5") as b:
        for number in range(4):
            first, last = a[number], b[number]
            assert first.states is not None and last.states is not None
            assert np.abs(first.states[:, 1:7] - last.states[:, 1:7]).max() < 1e-4  # the arm's joints come first
            assert np.abs(first.states[0, 1:7] - first.states[:, 1:7]).max() > 0.01


@pytest.mark.parametrize("control", ["ee_delta_pose", "osc_pose", "joint_torque:step=20"])
def test_controllers_that_cannot_keep_up_follow_and_succeed(recording: Path, tmp_path: Path, control: str) -> None:
    report = retarget(recording, tmp_path / "new.h5", control=control, num_envs=2)
    assert report.success == (3, 3) and 1.0 <= report.steps < 3.0
    assert report.commands == (control == "ee_delta_pose")
    with read_episodes(tmp_path / "new.h5") as episodes, read_episodes(recording) as before:
        assert episodes.header is not None and episodes.header.source["control"] == "joint_delta_pos"
        for one in report.episodes:
            episode = episodes[one.number]
            assert episode.seed == SEEDS[one.number] and one.steps == (len(before[one.number]), len(episode))
            clock = episode.flags["source_step"]
            assert clock[0] == 0 and (np.diff(clock) >= 0).all() and (np.diff(clock) <= 1).all()
            for name in RESIDUALS:
                assert np.array_equal(episode.flags[f"residual_{name}"], one.residual[name].astype(np.float32))
            # the residual is what kinematics say of the two recordings' joints
            t = int(clock[-1])
            states = (episode.states, before[one.number].states)
            assert states[0] is not None and states[1] is not None
            joints = np.abs(states[0][-1, 1:8] - states[1][t + 1, 1:8]).max()
            assert joints == pytest.approx(one.residual["joints"][-1], abs=1e-6)
        # a recording at 100 Hz gets the rate that controllers by torque need
        assert before.header is not None and before.header.fingerprint["physics_hz"] == 100
        assert episodes.header.fingerprint["physics_hz"] == (100 if control == "ee_delta_pose" else 200)
    assert replay(tmp_path / "new.h5").exact


def test_the_rate_of_a_conversion_is_the_recorded_one_where_it_is_high_enough(tmp_path: Path) -> None:
    recording = record(tmp_path / "fast.h5", "PushCube-v2", (0,), physics_hz=300)
    for name, options, expected in (("same", {}, 300), ("asked", {"physics_hz": 500.0}, 500)):
        retarget(recording, tmp_path / f"{name}.h5", control="osc_pose", **options)
        with read_episodes(tmp_path / f"{name}.h5") as episodes:
            assert episodes.header is not None and episodes.header.fingerprint["physics_hz"] == expected


def test_rates_that_do_not_fit_the_tasks_own_are_converted_too(tmp_path: Path) -> None:
    recording = record(tmp_path / "odd.h5", "PushCube-v2", (0,), physics_hz=150, control_hz=30)
    for control, expected in (("ee_delta_pose", 150), ("osc_pose", 300)):  # 30 Hz divides neither 100 nor 200 Hz
        retarget(recording, tmp_path / f"{control}.h5", control=control)
        with read_episodes(tmp_path / f"{control}.h5") as episodes:
            assert episodes.header is not None and episodes.header.fingerprint["physics_hz"] == expected


def test_to_its_own_controller_a_recording_is_itself(recording: Path, tmp_path: Path) -> None:
    """Also where torques are commanded, which are otherwise followed."""
    retarget(recording, tmp_path / "osc.h5", control="osc_pose", numbers=[0])
    report = retarget(tmp_path / "osc.h5", tmp_path / "again.h5", control="osc_pose")
    assert report.success == (1, 1) and report.steps == 1.0
    assert [report.quantiles(name)[2] for name in RESIDUALS] == [0.0] * len(RESIDUALS)
    with read_episodes(tmp_path / "osc.h5") as a, read_episodes(tmp_path / "again.h5") as b:
        assert np.array_equal(a[0].actions, b[0].actions) and np.array_equal(a[0].states, b[0].states)


def test_followed_slowly_the_tool_stays_nearer(
    recording: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is tried last, where an episode has lost its success."""
    off = []
    for way in (ways_to_follow(False)[0], Way(commands=False, ahead=3, pace=3, near=0.4)):
        monkeypatch.setattr("manikin.data.retarget.conversion.ways_to_follow", lambda *_, way=way: [way])
        out = tmp_path / f"{way.pace}.h5"
        report = retarget(recording, out, control="osc_pose", numbers=[0], num_envs=1, physics_hz=200.0)
        assert report.success == (1, 1) and report.steps >= 0.9 * way.pace
        with read_episodes(out) as episodes:
            clock, tool = (episodes[0].flags[name] for name in ("source_step", "residual_tool"))
            last = np.append(np.diff(clock) > 0, True)  # new steps that end a recorded one
            last &= episodes[0].flags["residual_part"] == 0  # then the part's place counts, not the tool's
            off.append(np.median(tool[last]))
    assert way.pace == 3 and off[1] < 0.8 * off[0]


def test_what_lies_otherwise_in_the_hand_is_brought_where_it_was() -> None:
    """Against 4 x 4 matrices: the moved tool's part is where the recorded tool's was."""
    generator = torch.Generator().manual_seed(0)
    then, tool, off = (torch.randn(5, 7, generator=generator).double() for _ in range(3))
    then[:, :3] *= 0.05
    for pose in (then, tool):
        pose[:, 3:] /= pose[:, 3:].norm(dim=1, keepdim=True)
    off[:, 3:] = torch.cat([torch.ones(5, 1), 0.05 * off[:, 4:] / off[:, 4:].norm(dim=1, keepdim=True)], 1).double()
    off[:, 3:] /= off[:, 3:].norm(dim=1, keepdim=True)
    off[:, :3] *= 0.001
    now = pose_mul(off, then)
    move = hand_offset(then, now)
    moved = pose_mul(tool, torch.cat([move[:, :3], quat_from_rotvec(move[:, 3:])], 1))
    brought, was = pose_to_matrix(moved) @ pose_to_matrix(now), pose_to_matrix(tool) @ pose_to_matrix(then)
    assert torch.allclose(brought, was, atol=1e-9)
    far = hand_offset(then, then + 1.0 * torch.eye(7)[:1], reach=2.0)  # lost: not after it
    assert torch.allclose(far[:, :3].norm(dim=1), torch.tensor(0.06).double(), atol=1e-6)


def test_the_tool_is_moved_for_what_lies_otherwise_in_the_hand(
    recording: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Told that the cube lies 10 mm farther along the fingers' opening, the tool goes as far the other way."""
    looked = track.bodies_touched

    def told(env: Any) -> Any:
        touched, lies, robots = looked(env)
        if env.env.controller.every_substep:  # the new one
            lies[..., 1] += 0.01
        return touched, lies, robots

    off = []
    for look in (looked, told):
        monkeypatch.setattr(track, "bodies_touched", look)
        monkeypatch.setattr(
            "manikin.data.retarget.conversion.ways_to_follow", lambda *_: [Way(commands=False, ahead=3)]
        )
        out = tmp_path / f"{look.__name__}.h5"
        retarget(recording, out, control="joint_torque:step=20", numbers=[0], num_envs=1)
        with read_episodes(out) as episodes:
            flags = episodes[0].flags
            held = np.flatnonzero(flags["residual_part"] > 0)
            off.append(np.median(flags["residual_tool"][held[len(held) // 2 :]]))
    assert abs(off[1] - 0.01) < 0.004 and off[0] < 0.006


def test_the_result_does_not_depend_on_the_batch(recording: Path, tmp_path: Path) -> None:
    for n in (1, 3):
        retarget(recording, tmp_path / f"{n}.h5", control="ik_pose", num_envs=n, numbers=[0, 2])
    with read_episodes(tmp_path / "1.h5") as a, read_episodes(tmp_path / "3.h5") as b:
        for number in (0, 2):
            assert np.array_equal(a[number].actions, b[number].actions)
            assert np.array_equal(a[number].state_hash, b[number].state_hash)


def test_step_response_is_that_of_the_equation() -> None:
    for stiffness, ratio in ((150.0, 1.0), (50.0, 0.4), (80.0, 2.5)):
        for start in (0, 1):
            x, v, dt = float(start == 0), float(start == 1), 1e-5
            for _ in range(10_000):
                v += dt * (-stiffness * x - 2 * ratio * stiffness**0.5 * v)
                x += dt * v
            assert x == pytest.approx(step_response(stiffness, ratio, 0.1)[start], abs=2e-4)


@pytest.mark.parametrize(
    "control", ["joint_delta_pos", "ee_pose", "osc_pose", "joint_impedance:step=1", "joint_torque:step=60"]
)
def test_a_standing_command_is_there_after_so_long(control: str) -> None:
    """``towards(within=)`` against the simulation: the way left of 0.05 rad after the time asked for."""
    env = make("PushCube-v2", 1, control=control, autoreset="disabled", terminate=False, physics_hz=500)
    env.reset(seed=1)
    start = env.arm_qpos.clone()
    goal = start + 0.05 * torch.tensor([[1, 0.5, -1, 0.5, 1, -0.5, 1.0]])
    solver = IkSolver(Chain(env.robot.arm, env.robot.gripper))
    for k in (3, 2, 1):  # what is asked for anew each step, with the time that is left
        env.step(env.towards(goal, within=k * 0.05))
    if control in ("ee_pose", "osc_pose"):
        then, now = (solver.chain.fk(q)[0] for q in (goal, env.arm_qpos))
        way = solver.chain.fk(start)[0] - then
        assert (then - now).norm() < 0.25 * way.norm()
    else:
        assert (goal - env.arm_qpos).abs().max() < 0.25 * 0.05
    env.close()


# ---- the command, and what cannot work -------------------------------------------------------------------------------


def test_the_command_writes_converts_and_reports(recording: Path, tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "run.h5"
    path.write_bytes(recording.read_bytes())
    assert command(ReplayOptions(file=path, control="joint_pos", report=tmp_path / "steps.json")) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "joint_delta_pos -> joint_pos: commands handed over; 3 of 3" in said and "run.joint_pos.h5" in said
    steps = json.loads((tmp_path / "steps.json").read_text())
    assert len(steps) == 3 and len(steps[0]["residual"]["tool"]) == steps[0]["steps"][1]
    assert command(ReplayOptions(file=path, observe="state_dict", way="states", episodes=(1,))) == 0
    with read_episodes(tmp_path / "run.state_dict.h5") as episodes:
        assert episodes.numbers == [1] and "policy/qpos" in (episodes[1].observations or {})
    seen: dict[str, Any] = {"observe": "rgb", "way": "states", "size": (8, 8), "episodes": (1,)}
    assert command(ReplayOptions(file=path, renderer="rays", **seen)) == 0
    with read_episodes(tmp_path / "run.rgb.h5") as episodes:
        assert episodes.header is not None and episodes.header.fingerprint["vision"]["renderer"] == "rays"
        assert episodes[1].observations is not None
        assert episodes[1].observations["cameras/base_camera/rgb"].shape[1:] == (8, 8, 3)


def test_what_cannot_be_played_says_why(recording: Path, tmp_path: Path) -> None:
    out = tmp_path / "new.h5"
    with pytest.raises(UnknownNameError, match="joint_pos"):
        retarget(recording, out, control="joint_position")
    with pytest.raises(UnknownNameError, match="controller of so101"):
        retarget(record(tmp_path / "arm.h5", robot="so101", seeds=(0,), horizon=2), out, control="osc_pose")
    with pytest.raises(UnknownNameError, match="observation 'colour'"):
        rerecord(recording, out, observe="colour")
    with pytest.raises(UnknownNameError, match="base_camera"):
        rerecord(recording, out, observe="rgb", vision=Vision(cameras=("left",), size=(8, 8)))
    with pytest.raises(UnknownNameError, match="reward mode"):
        rerecord(recording, out, reward="rich")
    with pytest.raises(UnknownNameError, match="actions, states"):
        rerecord(recording, out, way="pictures")
    with pytest.raises(ConfigError, match="retarget"):
        rerecord(recording, out, control="joint_pos")
    with pytest.raises(ConfigError, match="stretch"):
        retarget(recording, out, control="joint_pos", stretch=0.5)
    if not torch.cuda.is_available():
        with pytest.raises((AssetError, ConfigError), match="cuda"):  # the first without MuJoCo Warp
            rerecord(recording, out, device="cuda")
    for wrong in ({"way": "states"}, {"way": "states", "check": True}, {"check": True, "control": "joint_pos"}):
        with pytest.raises(ConfigError):
            command(ReplayOptions(file=recording, **wrong))  # type: ignore[arg-type]
    for words, said in (
        ({"report": out}, "--report is only valid with --check"),
        ({"report": out, "observe": "state", "way": "states"}, "--report is only valid with"),
        ({"check": True, "stretch": 2.0}, "--stretch is only valid with --control"),
        ({"check": True, "resume": True}, "--resume is only valid with a new recording"),
        ({"check": True, "physics_hz": 250.0}, "--physics-hz is only valid with --control"),
    ):
        with pytest.raises(ConfigError, match=said):
            command(ReplayOptions(file=recording, **words))  # type: ignore[arg-type]
    assert not out.exists()
    env = make("PickCube-v2", 1, autoreset="disabled", horizon=3)
    recorder = Recorder(env, tmp_path / "bare.h5", states=False)
    run_episodes(env, ExpertPolicy(env), [0], observers=[recorder])
    recorder.close()
    with pytest.raises(DataError, match="has no recorded states; play its actions"):
        rerecord(tmp_path / "bare.h5", tmp_path / "seen.h5", way="states", observe="state")
