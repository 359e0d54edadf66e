"""What is wrong with a robot's file is said, with the line to change; its reach, its film and the command."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from manikin.author.robot.check import Reach, check_robot, reach
from manikin.author.robot.film import film_robot, portrait
from manikin.cli import main
from manikin.grippers import gripper
from manikin.robots import arm, from_file, register, robot, robots
from manikin.spec.robot import ArmSpec, Gains
from own_arm import OPTIONS, arm_text, joint, link

H = 0.5**0.5


@pytest.mark.parametrize("word", [w for w in robots() if w != "six"])
def test_built_in_robots_have_no_errors(word: str) -> None:
    assert not [f for f in check_robot(robot(word)) if f.error]


def test_a_good_file_has_no_findings(six: Path) -> None:
    spec = from_file(six, gripper="panda_hand", **OPTIONS)
    assert check_robot(robot("panda")) == []
    assert not [f for f in check_robot(robot("panda")._replace(arm=spec)) if f.error]


def findings(path: Path, text: str, **options: object) -> list:
    path.write_text(text)
    spec = from_file(path, **{**OPTIONS, **options})
    return check_robot(robot("panda")._replace(arm=spec, gripper=None))


def line_of(path: Path, needle: str) -> str:
    number = next(n for n, line in enumerate(path.read_text().splitlines(), 1) if needle in line)
    return f"{path.name}:{number}"


CROWDED = arm_text(link5=link("link5", 0.5, size=".5 .5 .5", at=0.0))
WEIGHTS = Gains(kp=(300,) * 6, kd=(30,) * 6, force=(60,) * 6, source="")


def test_lint_inertia(six: Path) -> None:
    found = check_robot(robot("panda")._replace(arm=_uninertial(six), gripper=None))
    assert [f.lint for f in found] == ["inertia"] and found[0].error
    assert "'link5' moves and has no inertia" in found[0].what and found[0].where == line_of(six, 'name="link5"')
    found = findings(six, arm_text(link6=link("link6", 1e-4, at=0.04)))
    assert found[0].error and found[0].lint == "inertia" and "'link6' moves with 0.1 g" in found[0].what
    text = arm_text(link2=link("link2").replace('ixx="0.01" iyy="0.01" izz="0.01"', 'ixx="9" iyy="9" izz="9"'))
    found = findings(six, text)
    assert any(f.lint == "inertia" and not f.error and "'link2' of 1 kg has the inertia" in f.what for f in found)


def _uninertial(path: Path) -> ArmSpec:
    """The spec of a file as it was before someone took an inertia out of it (with it, nothing can be made)."""
    spec = from_file(path, **OPTIONS)
    path.write_text(arm_text(link5=link("link5", inertia=False)))
    return replace(spec, links=tuple(replace(x, mass=0.0) if x.name == "link5" else x for x in spec.links))


def test_lint_limits(six: Path) -> None:
    text = arm_text(joint4=joint("joint4", "link3", "link4", 0.25, "0 0 1", kind="continuous"))
    found = findings(six, text, gains=WEIGHTS)
    assert [(f.lint, f.error) for f in found if "joint4" in f.what] == [("limits", False)]
    assert next(f for f in found if f.lint == "limits").where == line_of(six, 'joint name="joint4"')
    degrees = 'lower="-170" upper="170" effort="60" velocity="2"'
    found = findings(six, arm_text(joint4=joint("joint4", "link3", "link4", 0.25, "0 0 1", limit=degrees)))
    assert any(f.lint == "limits" and "are these degrees" in f.fix for f in found)


def test_lint_actuators(six: Path) -> None:
    bad = Gains(kp=(300, 0, 300, 300, 300, 300), kd=(30, 30, 30, 30, 0, 30), force=(60,) * 6, source="")
    found = findings(six, arm_text(), gains=bad)
    texts = [f.what for f in found if f.lint == "actuators" and f.error]
    assert texts == ["the servo of 'joint2' has kp = 0", "the servo of 'joint5' has no damping, kd = 0"]


def test_lint_collision(six: Path) -> None:
    found = findings(six, CROWDED, excludes=())
    first = next(f for f in found if f.lint == "collision" and f.error)
    assert (
        "at 'rest' 'link3' and 'link5' overlap by" in first.what and "excludes=(..., ('link3', 'link5'))" in first.fix
    )
    assert first.where == line_of(six, f'name="{re.search("link.", first.what)[0]}"')


def test_lint_keyframes(six: Path) -> None:
    found = findings(six, arm_text(), keyframes={"far": (0, 0, 9, 0, 0, 0), "short": (0, 0)})
    texts = [f.what for f in found if f.lint == "keyframe"]
    assert "keyframe 'far' has 'joint3' at 9, beyond its limits -2.5 to 2.5" in texts
    assert "keyframe 'short' has 2 numbers for 6 joints" in texts
    weak = Gains(kp=(300,) * 6, kd=(30,) * 6, force=(60, 1, 60, 60, 60, 60), source="")
    found = findings(six, arm_text(), gains=weak, gravcomp=False)
    assert any(f.error and f.lint == "keyframe" and "'joint2' is" in f.what and "not held" in f.what for f in found)


def test_lint_tcp(six: Path) -> None:
    found = findings(six, arm_text(), flange_quat=(0, 1, 0, 0))
    assert [f.what for f in found if f.lint == "tcp"] == ["z of the TCP points back into the arm"]
    hand = gripper("panda_hand")
    spec = from_file(six, **OPTIONS)
    for change, text in (
        ({"tcp_pos": (0, 0, 0.3)}, "along z of the TCP"),
        ({"tcp_quat": (H, 0, 0, H)}, "the fingers do not close along y of the TCP"),
    ):
        found = check_robot(robot("panda")._replace(arm=spec, gripper=replace(hand, **change)))
        assert any(f.error and f.lint == "tcp" and text in f.what for f in found)


def test_lint_gains(six: Path) -> None:
    # 58 Hz, hardly damped: more than a step of 5 ms can follow
    loose = Gains(kp=(300, 300, 30000, 300, 300, 300), kd=(30, 30, 0.05, 30, 30, 30), force=(60,) * 6, source="")
    found = findings(six, arm_text(), gains=loose)
    first = next(f for f in found if f.lint == "gains" and "'joint3'" in f.what)
    assert first.error and "a step of 'joint3' does not settle" in first.what
    assert re.search(r"kd = [\d.]+ is critical damping for kp = 30000", first.fix)
    wanted = float(re.search(r"kd = ([\d.]+)", first.fix)[1])
    better = replace(loose, kd=(30, 30, wanted, 30, 30, 30))
    assert not [f for f in findings(six, arm_text(), gains=better) if f.lint == "gains" and "joint3" in f.what]


def test_lint_gains_tells_slow_from_swinging(six: Path) -> None:
    slow = Gains(kp=(300,) * 6, kd=(30, 30, 2000, 30, 30, 30), force=(60,) * 6, source="")
    found = [f for f in findings(six, arm_text(), gains=slow) if f.lint == "gains"]
    assert len(found) == 1 and not found[0].error and "'joint3' has gone" in found[0].what
    assert "force / kd = 0.03 rad/s is the fastest it moves" in found[0].fix


def test_a_flange_that_is_not_there_is_a_finding(six: Path) -> None:
    found = findings(six, arm_text(), flange="tool0")
    assert [f.lint for f in found] == ["model"] and "the model has no body 'tool0'" in found[0].what


# -- reach, film, command ---------------------------------------------------------------------------------------------


def test_reach_of_a_stretched_arm(six: Path) -> None:
    """Nothing is reached beyond the links' length, and everything half as far from the shoulder is."""
    spec = from_file(six, **OPTIONS)
    found = reach(spec, None, count=5, radius=1.6)
    from_shoulder = np.linalg.norm(found.points - (0, 0, 0.4), axis=1)
    assert not found.anyhow[from_shoulder > 0.79].any()  # 0.25 + 0.25 + 0.1 + 0.1 + 0.08
    near = reach(spec, None, count=4, radius=0.6)
    inner = (near.points[:, 2] > 0.1) & (np.linalg.norm(near.points - (0, 0, 0.4), axis=1) < 0.6)
    assert near.anyhow[inner].mean() > 0.9 and (near.down <= near.anyhow).all()


@pytest.mark.parametrize(("alone", "carried"), [("aloha_left", "aloha@planar"), ("panda", "panda@differential")])
def test_an_arm_reaches_as_much_of_the_space_around_it_on_a_base_that_drives(alone: str, carried: str) -> None:
    one, other = (reach(chosen.arm, chosen.gripper, count=5) for chosen in map(robot, (alone, carried)))
    assert np.ptp(other.points - one.points, 0).max() < 1e-6 and (other.points - one.points)[0, 2] > 0.9
    assert one.anyhow.mean() > 0.8 and abs(other.anyhow.mean() - one.anyhow.mean()) < 0.05
    assert abs(other.down.mean() - one.down.mean()) < 0.05


def test_film_shows_every_joint(six: Path, tmp_path: Path) -> None:
    av = pytest.importorskip("av")
    spec = from_file(six, gripper="rethink", **OPTIONS)
    chosen = robot("panda")._replace(arm=spec, gripper=gripper("rethink"))
    points = Reach(np.array([[0.3, 0, 0.3], [0.4, 0, 0.3]]), np.array([True, False]), np.array([True, False]))
    path = film_robot(tmp_path / "six.mp4", chosen, points, width=64, height=64)
    with av.open(str(path)) as film:
        frames = [frame.to_ndarray(format="rgb24") for frame in film.decode(video=0)]
    assert len(frames) == 12 * 7 + 24
    middle = np.array(frames[:72], float)[:, 20:].reshape(6, 12, -1)
    assert (np.ptp(middle, 1).max(1) > 40).all()  # in each joint's part something moves
    picture = portrait(chosen, width=64, height=64)
    assert picture.shape == (64, 64, 3) and np.ptp(picture) > 50


def test_the_command(six: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    script = tmp_path / "my_arm.py"
    script.write_text(
        f"from manikin.robots import from_file\nARM = from_file({str(six)!r}, gripper='rethink', **{OPTIONS!r})\n"
    )
    assert main(["robot-check", str(script), "--no-reach"]) == 0
    assert "6 joints, Rethink electric parallel gripper" in capsys.readouterr().out
    six.write_text(CROWDED)
    assert main(["robot-check", str(six), "--no-reach"]) == 1
    said = capsys.readouterr().out
    assert "error" in said and "collision" in said and "six.urdf:" in said
    assert main(["robot-check", str(tmp_path / "none.urdf")]) == 2
    assert "there is no file" in capsys.readouterr().err
    script.write_text("ARM = 3\n")
    assert main(["robot-check", str(script)]) == 2
    assert "declares no ArmSpec called ARM" in capsys.readouterr().err


def test_the_command_checks_each_of_several_robots(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    assert main(["robot-check", "bi_so101", "--no-reach"]) == 0
    said = capsys.readouterr().out
    assert "Two SO-101, left arm" in said and "Two SO-101, right arm" in said
    assert said.count("nothing to fix") == 2
    register(replace(arm("ur5e"), name="wrong", title="Wrong arm", keyframes={"rest": (9.0,) * 6}))
    monkeypatch.setattr("manikin.author.robot.film.film_robot", lambda path, *_, **__: path)
    for word in ("panda,wrong", "wrong,panda"):  # an error in one of them is one of the whole
        assert main(["robot-check", word, "--no-reach", "--film", str(tmp_path / "both.mp4")]) == 1
        said = "".join(capsys.readouterr().out.split())  # lines are broken
        assert "Wrongarm" in said and "FrankaEmikaPanda" in said
        assert f"both_{1 + word.split(',').index('panda')}.mp4" in said and said.count("film:") == 1
    assert main(["robot-check", "panda,nope"]) == 2
    assert "bi_so101_left" in capsys.readouterr().err


TWO_ARMS = """<mujoco model="twin"><compiler angle="radian"/><worldbody><body name="chassis" pos="0 0 0.25">
  <geom type="box" size="0.25 0.3 0.2" mass="60"/>{}</body></worldbody><actuator>{}</actuator></mujoco>"""


def test_a_robot_of_two_arms_whose_tools_name_their_grippers(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    arms, servos = "", ""
    for side, y in (("left", 0.25), ("right", -0.25)):
        inside, shape = "", '<geom type="cylinder" size="0.03 0.04" pos="0 0 0.07" mass="1"/>'
        for k, axis in reversed(list(enumerate(("0 0 1", "0 1 0", "0 1 0", "0 0 1", "0 1 0", "0 0 1")))):
            place = f"0.3 {y} 0.4" if k == 0 else "0 0 0.15"
            hinge = f'<joint name="{side}_{k}" axis="{axis}" range="-2.8 2.8" damping="1" armature="0.1"/>'
            inside = f'<body name="{side}_link{k}" pos="{place}">{hinge}{shape}{inside}</body>'
            servos += f'<position joint="{side}_{k}" kp="800" kv="80" forcerange="-80 80"/>'
        arms += inside
    (tmp_path / "twin.xml").write_text(TWO_ARMS.format(arms, servos))
    script = tmp_path / "twin.py"
    script.write_text(
        "from manikin.robots import from_file\nfrom manikin.spec.robot import Tool\nSIDES = ('left', 'right')\n"
        f"ARM = from_file({str(tmp_path / 'twin.xml')!r}, base='planar',\n"
        "  groups={f'{s}_arm': tuple(f'{s}_{k}' for k in range(6)) for s in SIDES},\n"
        "  tools={s: Tool(body=f'{s}_link5', pos=(0, 0, 0.15), group=f'{s}_arm', gripper='rethink') for s in SIDES},\n"
        "  rest=(0.0, 0.5, 1.6, 0.0, 1.04, 0.0) * 2)\n"
    )
    main(["robot-check", str(script), "--no-reach"])
    said = capsys.readouterr().out
    assert "only a name" not in said
    assert "has no inertia" not in said  # every shape says its mass
    (tmp_path / "twin.xml").write_text(TWO_ARMS.format(arms.replace(' mass="1"', ""), servos))
    main(["robot-check", str(script), "--no-reach"])
    assert "'left_link5' moves and has no inertia" in capsys.readouterr().out


def test_a_file_of_a_gripper_alone_is_told_to_name_an_arm(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    script = tmp_path / "claw.py"
    script.write_text("GRIPPER = 'a gripper'\n")
    assert main(["robot-check", str(script)]) == 2
    assert "write ARM = manikin.robots.arm('panda') to try GRIPPER on that arm" in capsys.readouterr().err


def test_lint_base() -> None:
    """A base that is too weak for its own card, and one whose joints do not let it go where the arm needs it."""
    spec, hand, _ = robot("panda@planar")
    assert not [f for f in check_robot(robot("panda@planar")) if f.lint == "base"]
    group = spec.groups["base"]
    weak = replace(group, gains=replace(group.gains, force=(1000.0, 2500.0, 450.0)))
    found = check_robot(robot("panda")._replace(arm=replace(spec, groups={**spec.groups, "base": weak}), gripper=hand))
    (one,) = [f for f in found if f.lint == "base"]
    assert not one.error and "'base_x' is to move at 1 and its servo reaches force / kd = 0.4" in one.what
    assert one.fix.startswith("force = 2500")
