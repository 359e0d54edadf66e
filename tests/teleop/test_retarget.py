"""teleop/headset: a person's fingers become those of a robot hand."""

from __future__ import annotations

from functools import cache

import mujoco
import numpy as np
import pytest
from scipy.optimize import least_squares

from manikin.control.coupled import ToolFrames
from manikin.env.env import Env
from manikin.errors import ConfigError
from manikin.robots import robot
from manikin.scene.robot import RobotModel, assemble
from manikin.spec.robot import RobotSpec
from manikin.teleop.device import Hand, HandOptions, Motion
from manikin.teleop.headset.pilot import HandPilot
from manikin.teleop.headset.retarget import PERSON, HandRetarget, fingers_of
from test_robot_kinds import Yard

HANDS = ("allegro", "shadow", "inspire", "panda+allegro", "xarm7+inspire")
FLAT = np.array([[0.09, -0.09, 0.0], [0.17, -0.03, 0.0], [0.18, 0.0, 0.0], [0.17, 0.03, 0.0], [0.14, 0.05, 0.0]])
FIST = np.array([[0.09, -0.02, 0.04], [0.06, -0.03, 0.05], [0.06, 0, 0.05], [0.06, 0.02, 0.05], [0.06, 0.04, 0.05]])
NONE = np.array([1.0, 0.0, 0.0, 0.0])


def retarget(word: str, **options: float) -> HandRetarget:
    arm, gripper, _ = robot(word)
    palm, *others = arm.tools
    fingers = fingers_of(others)
    return HandRetarget(ToolFrames(arm, gripper, [palm, *fingers.values()]), list(fingers), **options)


@cache
def compiled(word: str) -> tuple[RobotSpec, RobotModel, mujoco.MjModel]:
    arm, gripper, _ = robot(word)
    made = assemble(arm, gripper)
    return arm, made, made.spec.compile()


def robot_tips(word: str, hand: HandRetarget, q: np.ndarray) -> np.ndarray:
    """(tips, 3) from the body that carries the palm, in the axes of a hand: by MuJoCo on the model itself."""
    arm, made, model = compiled(word)
    data = mujoco.MjData(model)
    for joint, value in zip(arm.joints, q, strict=True):
        data.qpos[model.joint(joint).qposadr[0]] = value
    for joint, (driver, ratio) in arm.followers.items():
        data.qpos[model.joint(joint).qposadr[0]] = ratio * q[list(arm.joints).index(driver)]
    mujoco.mj_kinematics(model, data)
    bodies = {tool.name: tool.tcp_body for tool in made.tools}
    palm = model.body(bodies[hand.frames.tools[0]])
    frame = data.body(palm.name).xmat.reshape(3, 3)
    root = data.xpos[model.body_parentid[palm.id]]
    tips = np.array([data.body(bodies[tool]).xpos for tool in hand.frames.tools[1:]])
    return (tips - root) @ frame @ hand.axes


@pytest.mark.parametrize("word", HANDS)
@pytest.mark.parametrize("shape", [FLAT, FIST], ids=["flat", "fist"])
def test_joints_minimize_the_published_objective_within_their_limits(word: str, shape: np.ndarray) -> None:
    hand = retarget(word)
    before = np.clip(hand.frames.rest, *hand.frames.limits.T)
    low, high = hand.frames.limits.T
    moves = np.flatnonzero(hand.moves)
    found = hand.solve(shape, before, iterations=100)

    def residuals(x: np.ndarray) -> np.ndarray:
        q = before.copy()
        q[moves] = x
        away = hand.scale * shape[hand.fingers] - robot_tips(word, hand, q)
        return np.concatenate([away.ravel(), np.sqrt(hand.smooth) * (x - before[moves])])

    begin = np.clip(found[moves], low[moves] + 1e-9, high[moves] - 1e-9)
    best = least_squares(residuals, begin, bounds=(low[moves], high[moves]))
    cost = float((residuals(found[moves]) ** 2).sum())
    assert cost == pytest.approx(hand.cost(shape, found, before), abs=1e-9)
    assert cost <= 2 * best.cost * 1.001 + 1e-9  # that of which this is the half
    assert (found >= low).all() and (found <= high).all()
    assert np.array_equal(found[~hand.moves], before[~hand.moves])


@pytest.mark.parametrize("word", HANDS)
def test_axes_point_along_the_fingers_and_the_thumb_is_on_its_side(word: str) -> None:
    hand = retarget(word)
    tips = robot_tips(word, hand, np.clip(hand.frames.rest, *hand.frames.limits.T))
    assert (tips[1:, 0] > 0.08).all() and (np.diff(tips[1:, 1]) > 0).all()  # index to little finger, to the right
    assert tips[0, 1] < tips[1, 1] + 0.01  # of a right hand, palm down, the thumb is to the left
    assert np.linalg.det(hand.axes) == pytest.approx(1.0)


def test_a_fist_bends_the_fingers_and_a_larger_person_changes_nothing() -> None:
    hand = retarget("allegro")
    rest = hand.frames.rest
    reach = {}
    for name, shape in (("flat", FLAT), ("fist", FIST)):
        q = rest
        for _ in range(20):
            q = hand.solve(shape, q)
        reach[name] = np.linalg.norm(robot_tips("allegro", hand, q)[1:], axis=1).mean()
    assert reach["fist"] < 0.75 * reach["flat"]
    usual = hand.scale
    hand.measure(1.25 * FLAT)
    scaled = hand.solve(1.25 * FLAT, rest)
    hand.measure(FLAT)
    np.testing.assert_allclose(hand.solve(FLAT, rest), scaled, atol=1e-6)
    long = np.linalg.norm(FLAT[1:4], axis=1).mean()
    assert hand.scale == pytest.approx(usual * PERSON / long)


def test_only_hands_have_fingers() -> None:
    assert fingers_of(("ff", "mf", "rf", "th")) == {0: "th", 1: "ff", 2: "mf", 3: "rf"}
    assert fingers_of(("tip_0", "tip_120")) == {} and fingers_of(("index", "middle")) == {}
    arm, gripper, _ = robot("allegro")
    with pytest.raises(ConfigError, match="fingers"):
        HandRetarget(ToolFrames(arm, gripper, ["palm", "palm"]), [0])


def yard(word: str) -> tuple[Env, HandPilot]:
    env = Env(Yard, robot=word, control="joint_pos", reward="none", autoreset="disabled")
    env.reset(seed=0)
    return env, HandPilot(env, HandOptions())


def test_a_hand_on_an_arm_follows_the_fingers_and_is_moved_by_the_other_hands_pinch() -> None:
    env, pilot = yard("panda+allegro")
    names = env.robot.arm.joints
    arm = [k for k, name in enumerate(names) if name in env.robot.arm.groups["arm"].joints]
    other = [k for k in range(len(names)) if k not in arm]
    start, q0 = env.robot.tcp_pos[0].numpy().copy(), env.arm_qpos[0].numpy().copy()

    def do(pos: tuple[float, float, float], tips: np.ndarray, pinched: bool, count: int) -> None:
        hands = {
            "right": Hand(pos=np.array(pos), quat=NONE, held=True, tips=tips),  # a fist is no hold here
            "left": Hand(pos=np.zeros(3), quat=NONE, pinched=pinched, tips=FLAT),
        }
        for _ in range(count):
            env.step(pilot.action(Motion(hands=hands)))

    do((0, 0, 0), FIST, False, 30)
    bent = env.arm_qpos[0].numpy().copy()
    assert np.abs(bent[arm] - q0[arm]).max() < 0.02 and np.abs(bent[other] - q0[other]).max() > 0.5
    do((0, 0, 0), FIST, True, 1)
    do((0.0, 0.05, 0.03), FIST, True, 40)
    np.testing.assert_allclose(env.robot.tcp_pos[0].numpy() - start, [0, 0.05, 0.03], atol=0.005)
    env.close()


@pytest.mark.parametrize("word", ["g1_upper_body", "allegro"])
def test_a_trigger_closes_fingers_that_have_no_command_of_their_own(word: str) -> None:
    env, pilot = yard(word)
    side = next(iter(pilot.sides))
    arm, _, _ = robot(word)
    tool = pilot.sides[side].split("/")[1]
    prefix = env.robot.prefix
    if word == "allegro":
        bodies = [prefix + "ff_tip", prefix + "th_tip"]
    else:
        bodies = [prefix + f.body for f in arm.tools[tool].gripper.fingers]
        bodies = [bodies[0], bodies[-1]]

    def gap() -> float:
        return float(np.linalg.norm(np.subtract(*(env.model_data(0)[1].body(name).xpos.copy() for name in bodies))))

    gaps = []
    for grip in (1.0, 0.0, -1.0):
        hands = {side: Hand(pos=np.zeros(3), quat=NONE, grip=grip)}
        for _ in range(30):
            env.step(pilot.action(Motion(hands=hands)))
        gaps.append(gap())
    assert gaps[2] < 0.7 * gaps[0], gaps
    env.close()
