"""Known parameters are found again, whatever the batch, also after a kill; and what cannot be found is named."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from manikin.errors import ConfigError, DataError, UnknownNameError
from manikin.sysid import Anneal, Cma, Squares, Trajectories, Trajectory, identify, parse_parameter
from manikin.sysid.objective import Objective
from manikin.sysid.rollout import Rollout
from motions import moved

GAINS = ["kp=600:1400:tied", "kd/waist=100:500", "kd/shoulder=100:500", "kd/elbow=100:500"]
TRUTH = [950.0, 450.0, 420.0, 400.0]
SMALL = (Anneal(rounds=2, candidates=16, chains=4), Squares(iterations=4))
NOISE = 2e-4


@pytest.fixture(scope="module")
def motions() -> Trajectories:
    return moved(GAINS, TRUTH, noise=NOISE, control="joint_pos")


@pytest.mark.parametrize("control", ["joint_pos", "ee_target_delta_pose"])
def test_known_parameters_are_found_again_under_noise(control: str) -> None:
    motions = moved(GAINS, TRUTH, noise=NOISE, control=control, episodes=2, steps=9)
    methods = (Anneal(rounds=1, candidates=32, chains=32), Squares(iterations=5))
    found = identify(motions, GAINS, physics_hz=100, methods=methods[control != "joint_pos" :])
    assert found.loss == "pose" and found.loss_after < found.loss_before / 10
    assert found.after == pytest.approx(TRUTH, rel=0.05)
    assert found.loss_after < 3 * NOISE * 3**0.5  # what noise in three directions alone comes to, twice, and some
    assert found.joints["waist"]["kd"] == found.after[1] and found.joints["wrist_rotate"] == {"kp": found.after[0]}
    assert [name for name, *_ in found.stages][-1] == "squares" and not found.outside
    for k, width in enumerate(found.identifiability.deviations):
        error = abs(found.after[k] - TRUTH[k]) / (found.high[k] - found.low[k])
        assert error < 5 * width  # the interval that is told is no empty word


def test_cma_finds_them_too(motions: Trajectories) -> None:
    found = identify(motions, GAINS, physics_hz=100, methods=[Cma(candidates=240, population=12)], seed=3)
    assert found.loss_after < found.loss_before / 10


def test_the_batch_changes_nothing(motions: Trajectories) -> None:
    one, many = (identify(motions, GAINS, physics_hz=100, methods=SMALL, batch=batch) for batch in (3, 100))
    assert one.after == many.after and one.loss_after == many.loss_after  # to the bit
    assert one.identifiability == many.identifiability
    other = identify(motions, GAINS, physics_hz=100, methods=SMALL[:1], seed=1)
    assert other.after != one.after


def test_a_search_that_was_killed_goes_the_same_way_again(motions: Trajectories, tmp_path: Path) -> None:
    whole = identify(motions, GAINS, physics_hz=100, methods=SMALL)

    def kill(count: int, left: list[int] = [30]) -> None:  # noqa: B006
        left[0] -= count
        if left[0] < 0:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        identify(motions, GAINS, physics_hz=100, methods=SMALL, folder=tmp_path, on_candidates=kill)
    with pytest.raises(DataError, match=r"candidates of an unfinished search.*--resume"):
        identify(motions, GAINS, physics_hz=100, methods=SMALL, folder=tmp_path)
    with pytest.raises(DataError, match=r"other settings: seed: 0 in the file, 7 now"):
        identify(motions, GAINS, physics_hz=100, methods=SMALL, folder=tmp_path, resume=True, seed=7)
    before = len((tmp_path / "candidates.jsonl").read_bytes().splitlines())
    again = identify(motions, GAINS, physics_hz=100, methods=SMALL, folder=tmp_path, resume=True, batch=5)
    assert again.after == whole.after and again.loss_after == whole.loss_after
    lines = (tmp_path / "candidates.jsonl").read_bytes().splitlines()
    assert 30 < before < len(lines)
    done = identify(motions, GAINS, physics_hz=100, methods=SMALL, folder=tmp_path, resume=True)
    assert done.after == whole.after
    assert (tmp_path / "candidates.jsonl").read_bytes().splitlines() == lines  # nothing was worked out twice


def test_both_worlds_agree() -> None:
    pytest.importorskip("mujoco_warp", reason="MuJoCo Warp is not installed: pip install 'manikin[gpu]'")
    motions = moved(GAINS, TRUTH, control="joint_pos", episodes=1, steps=6)
    vary = [
        *GAINS,
        "friction=0:2:tied",
        "armature=0.01:1:tied,log",
        "delay=0:0.2",
        "force=5:50:tied",
        "damping=0:9:tied",
    ]
    values = np.array([[700, 300, 200, 250, 0.5, 0.2, 0.05, 20, 3], [1200, 150, 200, 250, 0, 0.1, 0.013, 50, 0]])
    tracks = []
    for device in ("cpu", "warp:cpu"):
        rollout = Rollout(motions, [parse_parameter(one) for one in vary], physics_hz=100, batch=2, device=device)
        tracks.append(rollout(values))
        rollout.close()
    for key in ("pos", "quat", "qpos"):
        one, other = (getattr(t, key).numpy() for t in tracks)
        assert np.abs(one - other).max() < 2e-3
        assert np.abs(one[0] - one[1]).max() > 1e-2  # and the candidates differ


def test_what_rows_are_given_is_what_a_model_compiled_so_has(tmp_path: Path) -> None:
    """The robot of ``identified.toml``, played in its own scene, moves as the row with those parameters did."""
    vary = ["kp=600:1400", "kd=100:500", "friction=0:2:tied", "armature=0.01:1:tied", "force=5:200:tied", "delay=0:0.3"]
    rng = np.random.default_rng(1)
    values = [*rng.uniform(700, 1300, 6), *rng.uniform(150, 450, 6), 0.8, 0.3, 60.0, 0.13]
    recorded = moved(vary, values)
    parts = [f"[joints.{name}]\nkp = {values[k]}\nkd = {values[6 + k]}\nfriction = 0.8\narmature = 0.3\nforce = 60.0"
             for k, name in enumerate(_joints())]  # fmt: skip
    file = tmp_path / "identified.toml"
    file.write_text("\n".join(['format = 1\nrobot = "widowx_bridge"\ndelay = 0.13', *parts]))
    rollout = Rollout(recorded, [parse_parameter("damping=0:1:tied")], robot=str(file), physics_hz=100, batch=1)
    assert Objective(rollout, "pose").losses(np.zeros((1, 1)))[0] < 2e-6
    rollout.close()
    plain = Rollout(recorded, [parse_parameter("damping=0:1:tied")], physics_hz=100, batch=1)
    assert Objective(plain, "pose").losses(np.zeros((1, 1)))[0] > 1e-2
    plain.close()


def _joints() -> tuple[str, ...]:
    from manikin.robots import robot

    return robot("widowx_bridge").arm.joints


def test_a_delay_is_a_shift_in_time() -> None:
    """Two control steps late, the arm is where it would be two steps earlier."""

    def motion(delay: float) -> Trajectory:
        return moved(["delay=0:0.6"], [delay], steps=9, episodes=1, control="joint_pos").items[0]

    now, late, between = (motion(delay) for delay in (0.0, 0.4, 0.0049))
    assert now.qpos is not None and late.qpos is not None and between.qpos is not None
    assert np.abs(late.qpos[2:] - now.qpos[:-2]).max() < 1e-6
    assert np.abs(late.qpos[2:] - now.qpos[2:]).max() > 1e-2
    middle = motion(0.01).qpos
    assert middle is not None  # about half a physics step late lies about half way to a whole one
    ratio = (between.qpos - now.qpos)[1:, 0] / (middle - now.qpos)[1:, 0]
    assert np.median(ratio) == pytest.approx(0.49, abs=0.05)


def test_what_cannot_be_told_apart_is_named(motions: Trajectories) -> None:
    vary = ["kd/waist=100:500", "damping/waist=0:400", "force/wrist_rotate=1500:2000"]
    found = identify(motions, vary, physics_hz=100, methods=[Squares(iterations=3)])
    said = [direction.words for direction in found.identifiability.open]
    assert any("kd/waist" in words and "damping/waist" in words and "while" in words for words in said)
    assert "force/wrist_rotate alone" in said  # it never came near
    assert "not determined" in found.summary()


def test_a_loss_of_joints_needs_no_pose(motions: Trajectories) -> None:
    joints = tuple(Trajectory(name=t.name, actions=t.actions, qpos=t.qpos) for t in motions.items)
    recorded = dataclasses.replace(motions, items=joints)
    found = identify(recorded, GAINS, physics_hz=100, methods=[Squares(iterations=5)])
    assert found.loss == "joints" and found.loss_after < found.loss_before / 10
    with pytest.raises(UnknownNameError, match="unknown loss 'pose'"):
        identify(recorded, GAINS, physics_hz=100, loss="pose")


def test_bad_input_is_named(motions: Trajectories) -> None:
    with pytest.raises(DataError, match="6 numbers per action, and joint_pos of panda has 7 without grippers: joint1"):
        identify(motions, ["kp=1:2"], control="joint_pos", robot="panda", physics_hz=100)
    with pytest.raises(DataError, match="has 6 joints, and panda has 7"):
        identify(dataclasses.replace(motions, control="ee_delta_pose"), ["kp=1:2"], robot="panda", physics_hz=100)
    far = tuple(
        Trajectory(name=t.name, actions=t.actions, pos=t.pos + 2.0, quat=t.quat)  # type: ignore[operator]
        for t in motions.items
    )
    with pytest.raises(DataError, match="'motion 0' begins where widowx_bridge cannot be: its tool comes no nearer"):
        identify(dataclasses.replace(motions, items=far), GAINS, physics_hz=100)
    with pytest.raises(ConfigError, match="recorded at 5 Hz, not at 10 Hz"):
        identify(motions, GAINS, control_hz=10)
    with pytest.raises(ConfigError, match="physics_hz=99 must be a multiple of the recordings' control_hz=5"):
        identify(motions, GAINS, physics_hz=99)
    with pytest.raises(ConfigError, match="reversed or empty; write the lower end first: kp=600:1400"):
        parse_parameter("kp=1400:600")
    with pytest.raises(UnknownNameError, match=r"unknown parameter 'stiffness'.*Valid: armature"):
        parse_parameter("stiffness=1:2")
    with pytest.raises(UnknownNameError, match=r"unknown joint of widowx_bridge 'wast'.*Did you mean 'waist'"):
        identify(motions, ["kp/wast=1:2"], physics_hz=100)
    with pytest.raises(UnknownNameError, match="unknown method 'newton'"):
        identify(motions, GAINS, methods=["newton"])
    with pytest.raises(ConfigError, match="name at least one parameter"):
        identify(motions, [], physics_hz=100)
    with pytest.raises(ConfigError, match="kp=1:2: the controller drives the joints by torque"):
        identify(dataclasses.replace(motions, control="osc_pose"), ["kp=1:2"], physics_hz=100)
