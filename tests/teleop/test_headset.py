"""teleop/headset/: what a headset reports, filters, and hands whose tools follow."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.spatial.transform import Rotation

from manikin.data.recording.read import EpisodeFile
from manikin.data.replay.verify import replay
from manikin.env.make import make
from manikin.errors import ConfigError, UnknownNameError
from manikin.teleop.device import Hand, HandOptions, Motion, ScriptedDevice
from manikin.teleop.headset import turns
from manikin.teleop.headset.filter import GAP, OneEuro, TurnFilter
from manikin.teleop.headset.headset import LEASE, Headset, heading, palm_axes
from manikin.teleop.headset.pilot import LEAD, HandPilot
from manikin.teleop.headset.poses import SeenHand, hand_said, head_said
from manikin.teleop.loop import TeleopLoop

NONE = np.array([1.0, 0.0, 0.0, 0.0])


def quat(rotation: Rotation) -> np.ndarray:
    return rotation.as_quat()[[3, 0, 1, 2]]


def rotation(quat: np.ndarray) -> Rotation:
    return Rotation.from_quat(np.asarray(quat)[[1, 2, 3, 0]])


def hand_joints(side: str = "right", curl: float = 0.0, gap: float = 0.1) -> np.ndarray:
    """(25, 3) of a flat hand before the person, palm down, fingers ahead; ``curl`` bends ring and little finger,
    ``gap`` [m] is between the tips of thumb and index finger."""
    joints = np.zeros((25, 3))
    out = 1.0 if side == "right" else -1.0  # the little finger's side
    for finger, first in enumerate((5, 10, 15, 20)):
        x = out * (-0.03 + 0.02 * finger)
        for k, z in enumerate((0.02, 0.09, 0.13, 0.155, 0.175)):
            joints[first + k] = (x, 0.0, -z)
    for tip in (19, 24):
        joints[tip] = (1 - curl) * joints[tip] + curl * np.array([joints[tip, 0], -0.03, -0.04])
    for k, (x, z) in enumerate(((-0.02, 0.03), (-0.04, 0.06), (-0.05, 0.09))):
        joints[1 + k] = (out * x, -0.01, -z)
    joints[4] = joints[9] + (-out * gap, 0.0, 0.0)
    return joints + np.array([0.2, 1.1, -0.4])


# ---- filters ---------------------------------------------------------------------------------------------------------


def published_filter(values, times, cutoff, slope, speed_cutoff):
    """Algorithm 1 of Casiez et al., CHI 2012, for one number."""
    out, before, speed = [values[0]], values[0], 0.0
    for k in range(1, len(values)):
        te = times[k] - times[k - 1]
        alpha = lambda fc: 1 / (1 + 1 / (2 * math.pi * fc * te))  # noqa: B023, E731
        speed = alpha(speed_cutoff) * (values[k] - before) / te + (1 - alpha(speed_cutoff)) * speed
        a = alpha(cutoff + slope * abs(speed))
        out.append(a * values[k] + (1 - a) * out[-1])
        before = values[k]
    return out


def test_filter_is_the_published_one_along_an_axis_and_about_one():
    rng = np.random.default_rng(0)
    times = np.cumsum(rng.uniform(0.008, 0.02, 200))
    values = np.cumsum(rng.normal(0, 0.01, 200))
    direction = np.array([2.0, -1.0, 2.0]) / 3.0
    expected = published_filter(values, times, 2.0, 30.0, 1.0)
    one = OneEuro(cutoff=2.0, slope=30.0, speed_cutoff=1.0)
    found = [one(v * direction, t) for v, t in zip(values, times, strict=True)]
    np.testing.assert_allclose(found, np.outer(expected, direction), atol=1e-12)
    expected = published_filter(values, times, 2.0, 5.0, 1.0)
    turn = TurnFilter(cutoff=2.0, slope=5.0, speed_cutoff=1.0)
    start = quat(Rotation.from_rotvec([0.3, 0.2, -0.9]))
    for value, time, want in zip(values, times, expected, strict=True):
        shown = turn(turns.mul(turns.turn_of(value * direction), start), time)
        np.testing.assert_allclose((rotation(shown) * rotation(start).inv()).as_rotvec(), want * direction, atol=1e-9)


def test_filter_calms_a_hand_that_rests_and_keeps_up_with_one_that_moves():
    rng = np.random.default_rng(1)
    shaking = rng.normal(0, 0.002, (600, 3))
    one = OneEuro()
    rests = np.array([one(v, k / 72) for k, v in enumerate(shaking)])
    assert rests[100:].std() < 0.5 * shaking.std()
    one.reset()
    lag = [0.5 * k / 72 - one(np.array([0.5 * k / 72, 0, 0]), k / 72)[0] for k in range(144)]
    assert max(lag[72:]) < 0.5 * 0.012  # at 0.5 m/s not twelve milliseconds late


def test_filter_takes_no_value_twice_and_begins_anew_after_silence():
    one = OneEuro()
    one(np.zeros(3), 1.0)
    assert one(np.ones(3), 1.0)[0] == 0.0 and one(np.ones(3), 0.5)[0] == 0.0
    assert 0 < one(np.ones(3), 1.02)[0] < 1
    assert one(np.full(3, 5.0), 1.03 + GAP)[0] == 5.0
    for bad in ({"cutoff": 0}, {"slope": -1}, {"speed_cutoff": math.nan}):
        with pytest.raises(ConfigError, match="positive"):
            OneEuro(**bad)


# ---- what a headset reports ------------------------------------------------------------------------------------------


def test_reports_are_checked():
    flat = [0.1, 1.2, -0.3, 0.0, 0.0, 0.0, 2**-0.5 * 2**0.5]
    pos, turn = head_said("head", flat)
    assert pos.tolist() == [0.1, 1.2, -0.3] and turn.tolist() == [1, 0, 0, 0]
    assert head_said("head", None) is None and hand_said("left", None) is None
    seen = hand_said("left", {"pose": flat, "trigger": 0.5, "squeeze": 1, "pressed": ["lower"]})
    assert (seen.trigger, seen.squeeze, seen.pressed) == (0.5, 1.0, {"lower"}) and seen.joints is None
    assert hand_said("left", {"pose": flat, "joints": [0.0] * 75}).joints.shape == (25, 3)
    for bad, word in (
        ("x", "object"),
        ({"pose": flat[:6]}, "7 numbers"),
        ({"pose": [*flat[:3], 0, 0, 0, 0]}, "unit quaternion"),
        ({"pose": [1e6, *flat[1:]]}, "100"),
        ({"pose": [math.nan, *flat[1:]]}, "7 numbers"),
        ({"pose": [True, *flat[1:]]}, "7 numbers"),
        ({"pose": flat, "joints": [0.0] * 74}, "75 numbers"),
        ({"pose": flat, "pressed": "lower"}, "list"),
        ({"pose": flat, "pressed": ["start"]}, "'upper'|upper"),
        ({"pose": flat, "thumb": 1}, "trigger"),
    ):
        with pytest.raises((ConfigError, UnknownNameError), match=word):
            hand_said("right", bad)


def test_a_head_that_looks_left_has_a_heading_to_the_left():
    for angle in (-2.0, -0.5, 0.0, 0.7, 3.0):
        for nod in (-0.6, 0.0, 0.8):
            head = Rotation.from_euler("YXZ", [angle, nod, 0.2])
            assert heading(quat(head)) == pytest.approx(angle, abs=1e-9)


def test_hands_are_reported_forward_left_and_up_of_where_the_person_looks():
    looks = Rotation.from_euler("Y", math.radians(90))  # to the left: forward is the headset's -x
    headset = Headset()
    held = Rotation.from_rotvec([0.2, -0.4, 0.9])
    told = {"head": (np.array([0, 1.6, 0]), quat(looks)), "right": SeenHand(np.array([-0.5, 1.2, 0.1]), quat(held))}
    headset.tell(order=1, seconds=10.0, **told)
    hand = headset.read().hands["right"]
    np.testing.assert_allclose(hand.pos, [0.5, 0.1, 1.2], atol=1e-12)  # what was behind is to the left
    axes = np.array([[-1, 0, 0], [0, 0, 1], [0, 1, 0]])  # rows: forward, left, up in the headset's axes
    np.testing.assert_allclose(rotation(hand.quat).as_matrix(), axes @ held.as_matrix(), atol=1e-12)
    ahead = (np.array([0, 1.6, 0]), NONE)
    headset.tell(order=2, seconds=10.01, head=ahead, right=told["right"])  # the head may turn
    np.testing.assert_allclose(headset.read().hands["right"].pos, [0.5, 0.1, 1.2], atol=1e-12)
    pressed = SeenHand(told["right"].pos, told["right"].quat, pressed=frozenset({"stick"}))
    headset.tell(order=3, seconds=10.02, head=ahead, right=pressed)
    motion = headset.read()
    assert set(motion.buttons) == {"calibrate"}
    np.testing.assert_allclose(motion.hands["right"].pos, [-0.1, 0.5, 1.2], atol=1e-12)


def test_buttons_taps_late_reports_and_silence():
    now = [100.0]
    headset = Headset(clock=lambda: now[0])
    here = np.array([0.0, 1.0, 0.0])

    def tell(order, **options):
        headset.tell(order=order, seconds=now[0], head=None, right=SeenHand(here, NONE, **options))

    tell(1, pressed=frozenset({"lower"}))
    now[0] += 0.01
    tell(2)
    assert set(headset.read().buttons) == {"save"} and headset.acted == 2  # up again before anybody looked
    assert not headset.read().buttons
    now[0] += 0.01
    tell(3, squeeze=1.0, trigger=0.75)
    hand = headset.read().hands["right"]
    assert hand.held and hand.grip == -0.5
    headset.tell(order=2, seconds=now[0] - 0.01, head=None, right=SeenHand(here, NONE))  # overtaken on the way
    assert headset.read().hands["right"].held
    for squeeze, held in ((0.5, True), (0.39, False), (0.5, False), (0.61, True)):
        now[0] += 0.01
        tell(int(1000 * now[0]), squeeze=squeeze)
        assert headset.read().hands["right"].held is held
    now[0] += 0.9 * LEASE
    assert headset.read().hands
    now[0] += 0.2 * LEASE
    motion = headset.read()
    assert not motion.hands and not motion.buttons
    now[0] += 1
    headset.tell(order=1, seconds=now[0], head=None, right=SeenHand(here, NONE))  # the page was loaded again
    assert "right" in headset.read().hands
    headset.press("save")
    assert set(headset.read().buttons) == {"save"}
    with pytest.raises(ConfigError, match="seconds"):
        headset.tell(order=9, seconds=math.nan, head=None)


@pytest.mark.parametrize("side", ["left", "right"])
def test_a_hand_that_is_seen_holds_with_two_fingers_and_grips_with_the_others(side):
    headset = Headset()

    def told(order, **shape):
        joints = hand_joints(side, **shape)
        headset.tell(order=order, seconds=order / 72, head=None, **{side: SeenHand(joints[0], NONE, joints=joints)})
        return headset.read().hands[side]

    flat = told(1)
    assert not flat.held and not flat.pinched and flat.grip == 1.0
    np.testing.assert_allclose(rotation(flat.quat).as_matrix()[:, 2], [0, 0, -1], atol=1e-9)  # the palm is down
    np.testing.assert_allclose(rotation(flat.quat).as_matrix()[:, 0], [1, 0, 0], atol=0.15)  # fingers are ahead
    assert flat.tips[2] == pytest.approx([0.175, 0, 0], abs=0.02)
    assert told(2, curl=0.4).held is False and told(3, curl=1.0).held and told(4, curl=0.62).held
    assert not told(5).held
    assert told(6, gap=0.0475).grip == pytest.approx(0.0) and told(7, gap=0.01).grip == -1.0
    assert told(8, gap=0.01).pinched and told(9, gap=0.025).pinched and not told(10, gap=0.05).pinched
    assert np.linalg.det(palm_axes(hand_joints(side), side)) == pytest.approx(1.0)


# ---- tools that follow -----------------------------------------------------------------------------------------------


def driven(task="PickCube-v2", options=None, **more):
    env = make(task, 1, autoreset="disabled", **{"control": "joint_pos", "horizon": 2000, **more})
    env.reset(seed=0)
    return env, HandPilot(env, options or HandOptions())


def steps(env, pilot, hands, count=1, **motion):
    for _ in range(count):
        env.step(pilot.action(Motion(hands=hands, **motion)))


def right(pos=(0.0, 0.0, 0.0), turn=NONE, held=True, **more):
    return {"right": Hand(pos=np.asarray(pos, float), quat=turn, held=held, **more)}


@pytest.mark.parametrize("control", ["joint_pos", "ee_delta_pose", "osc_pose"])
def test_a_tool_moves_as_its_hand_does_from_where_the_hand_closed(control):
    env, pilot = driven(control=control)
    start = env.robot.tcp_pose[0].double().numpy().copy()
    steps(env, pilot, right((9, -9, 4), held=False))
    assert pilot.action(Motion(hands=right((9, -9, 4)))).abs().max() <= 1
    turn = Rotation.from_rotvec([0.0, 0.0, 0.4])
    for share in np.linspace(0, 1, 30):
        way = share * np.array([0.05, -0.08, 0.06])
        steps(env, pilot, right(way + np.array([9, -9, 4]), quat(Rotation.from_rotvec(share * turn.as_rotvec()))))
    steps(env, pilot, right((9.05, -9.08, 4.06), quat(turn)), 30)
    end = env.robot.tcp_pose[0].double().numpy().copy()
    tolerance = 0.012 if control == "osc_pose" else 0.002
    np.testing.assert_allclose(end[:3] - start[:3], [0.05, -0.08, 0.06], atol=tolerance)
    off = rotation(end[3:]) * rotation(start[3:]).inv() * turn.inv()
    assert off.magnitude() < 0.03
    steps(env, pilot, right((5, 5, 5), held=False), 10)  # lets go, reaches elsewhere, and goes on from there
    kept = env.robot.tcp_pose[0, :3].double().numpy().copy()
    np.testing.assert_allclose(kept, end[:3], atol=0.003)
    steps(env, pilot, right((5, 5, 5)))
    steps(env, pilot, right((5, 5.05, 5)), 30)
    np.testing.assert_allclose(env.robot.tcp_pose[0, :3].numpy() - kept, [0, 0.05, 0], atol=tolerance)
    env.close()


def test_scale_and_where_the_person_stands():
    env, pilot = driven(options=HandOptions(scale=0.5, turn=math.radians(90)))
    start = env.robot.tcp_pos[0].numpy().copy()
    steps(env, pilot, right(held=False))
    steps(env, pilot, right())
    steps(env, pilot, right((0.1, 0.0, 0.04)), 40)  # the person's forward is the robot's left
    np.testing.assert_allclose(env.robot.tcp_pos[0].numpy() - start, [0, 0.05, 0.02], atol=0.002)
    env.close()


def test_a_goal_that_cannot_be_reached_is_held_back():
    env, pilot = driven()
    steps(env, pilot, right(held=False))
    steps(env, pilot, right())
    steps(env, pilot, right((0, 0, -2.0)), 60)  # through the table
    low = env.robot.tcp_pos[0].double().numpy().copy()
    assert low[2] > -0.02
    steps(env, pilot, right((0, 0, -2.0), held=False))
    steps(env, pilot, right((0, 0, -2.0)))
    steps(env, pilot, right((0, 0, -2.0 + LEAD[0] + 0.05)), 40)  # it had not gone further ahead than this
    assert float(env.robot.tcp_pos[0, 2]) - low[2] > 0.04
    env.close()


def test_a_calibrated_hand_gives_the_tool_its_turn_wherever_it_closes():
    env, pilot = driven()
    start = rotation(env.robot.tcp_pose[0, 3:].double().numpy())
    as_tool = Rotation.from_rotvec([0.3, -0.2, 0.5])  # how this person holds a hand that points down
    hand = right((0, 0, 0), quat(as_tool), held=False)
    pilot.press("calibrate", Motion(hands=hand))
    steps(env, pilot, hand)
    more = Rotation.from_rotvec([0.2, 0.1, -0.3])
    steps(env, pilot, right((0, 0, 0), quat(more * as_tool)), 40)  # closes turned otherwise than the tool is
    off = rotation(env.robot.tcp_pose[0, 3:].double().numpy()) * (more * start).inv()
    assert off.magnitude() < 0.02
    assert pilot.sides == {"right": "robot/tool"}
    env.close()


def test_a_new_episode_waits_until_the_hand_has_let_go_and_closes_again():
    env = make("PickCube-v2", 1, autoreset="disabled", control="joint_pos", horizon=400)
    motions = [
        Motion(hands=right()),  # held from before: nothing begins
        Motion(hands=right((0.05, 0, 0))),
        Motion(hands=right(held=False)),
        Motion(hands=right()),
        Motion(hands=right((0, 0.02, 0))),
        Motion(hands=right((0, 0.02, 0)), buttons=("save",)),
        Motion(hands=right((0, 0.05, 0))),
    ]
    device = ScriptedDevice(motions)
    device.hands = HandOptions()
    loop, phases = TeleopLoop(env, device), []
    loop.begin()
    for _ in motions:
        loop.tick()
        phases.append(loop.phase)
    assert phases == ["ready", "ready", "ready", "running", "running", "ready", "ready"] and loop.saved == 1
    env.close()


def test_trigger_opens_and_closes_by_as_much_as_it_is_pulled():
    env, pilot = driven()
    spec = env.robot.gripper  # commanded closed is beyond where its fingers meet, at 0 m
    shut = -spec.closed_q[0] / (spec.open_q[0] - spec.closed_q[0])
    for grip in (1.0, 0.0, -1.0):
        steps(env, pilot, right(held=False, grip=grip), 15)
        assert float(env.robot.opening[0]) == pytest.approx(max(shut, (grip + 1) / 2), abs=0.03)
    assert pilot.closed
    env.close()


def test_two_hands_drive_two_arms_as_they_stand_left_and_right():
    env, pilot = driven("TwoRobotPickCube-v2")
    assert set(pilot.sides) == {"left", "right"}
    start = env.tcp_poses[0].double().numpy().copy()
    first = env.robots[0].base_pose.double().numpy()
    ways = {"left": np.array([0.0, 0.0, 0.05]), "right": np.array([-0.04, 0.0, 0.02])}
    hands = {side: Hand(pos=np.zeros(3), quat=NONE) for side in ways}
    steps(env, pilot, hands)
    steps(env, pilot, {side: Hand(pos=np.zeros(3), quat=NONE, held=True) for side in ways})
    steps(env, pilot, {side: Hand(pos=way, quat=NONE, held=True, grip=-1.0) for side, way in ways.items()}, 40)
    names = [robot.name for robot in env.robots]
    for side, way in ways.items():
        k = names.index(pilot.sides[side].split("/")[0])
        moved = env.tcp_poses[0, k, :3].double().numpy() - start[k, :3]
        np.testing.assert_allclose(moved, rotation(first[3:]).apply(way), atol=0.002)
    forward = rotation(first[3:]).inv()
    at = {side: forward.apply(start[names.index(tool.split("/")[0]), :3]) for side, tool in pilot.sides.items()}
    assert at["left"][1] > at["right"][1]
    env.close()


def test_more_tools_than_hands_and_masks_of_no_group_are_refused():
    with pytest.raises(UnknownNameError, match="arm"):
        driven(options=HandOptions(masks={"torso": 0.5}))
    for bad in ({"scale": 0.0}, {"turn": math.inf}, {"masks": {"arm": 2.0}}):
        with pytest.raises(ConfigError):
            HandOptions(**bad)
    with pytest.raises(UnknownNameError, match="left"):
        HandOptions(hand="both")
    env, _ = driven()
    with pytest.raises(ConfigError, match="two hands"):
        HandPilot(_crowd(env), HandOptions())
    env.close()


def _crowd(env):
    """An environment with three times its robot."""

    class Crowd:
        def part(self, row):
            return type("One", (), {"robots": (env.robots[0],) * 3})(), 0

    return Crowd()


# ---- recordings ------------------------------------------------------------------------------------------------------


def picking(env):
    """A hand that brings the tool over the cube and down, closes, lifts it to the goal, and keeps the episode."""
    pos, grip = np.zeros(3), 1.0
    yield Motion(hands=right(pos, held=False))

    def reach(goal, count):
        nonlocal pos
        for _ in range(count):
            way = (goal() - env.robot.tcp_pos[0]).double().numpy()
            pos = pos + way * min(0.3, 0.012 / max(1e-9, float(np.linalg.norm(way))))
            yield Motion(hands=right(pos, grip=grip))

    h = env.h
    yield from reach(lambda: h.cube.pos[0] + torch.tensor([0, 0, 0.06]), 50)
    yield from reach(lambda: h.cube.pos[0], 40)
    grip = -1.0
    yield from reach(lambda: env.robot.tcp_pos[0], 10)
    yield from reach(lambda: h.goal.value[0] + env.robot.tcp_pos[0] - h.cube.pos[0], 120)
    yield Motion(hands=right(pos, grip=grip), buttons=("save",))


def test_a_cube_picked_by_hand_is_recorded_and_replays_bit_for_bit(tmp_path):
    env = make("PickCube-v2", 1, autoreset="disabled", control="joint_pos", horizon=400)
    device = ScriptedDevice(())
    device.hands = HandOptions()
    loop = TeleopLoop(env, device, out=tmp_path / "hands.h5", seed=3)
    script = ScriptedDevice(picking(env))
    script.hands = device.hands
    loop.device = script
    loop.begin()
    while not script.over:
        loop.tick()
    assert loop.saved == 1 and env.control_hz == 20
    loop.close()
    with EpisodeFile(tmp_path / "hands.h5") as file:
        assert file[0].success.any() and file[0].flags["is_grasped"].any()
    report = replay(tmp_path / "hands.h5")
    assert report.exact, report.summary()
    env.close()
