"""The ten tasks in MuJoCo. References: the arm's own kinematics, the laws of rolling and sliding, weights, potential
energy, and the published row of PyBullet with the same controller."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np
import pytest
import torch

from manikin.cli import main
from manikin.errors import AssetError, ConfigError, DataError, DivergedError, UnknownNameError
from manikin.fidelity import TASKS, Score, published, read_reality, read_repeats, score_task
from manikin.fidelity.arm import wrist_pose
from manikin.fidelity.metrics.modes import subgroup_scores
from manikin.fidelity.page import render_page
from manikin.fidelity.recordings.recording import ARM, Recording
from manikin.fidelity.recordings.synthetic import averaged, synthetic_recording, write_synthetic
from manikin.fidelity.simulation.film import FidelityFilm
from manikin.fidelity.simulation.rollout import TaskSimulation, simulate
from manikin.fidelity.simulation.run import FidelityRun, run_tasks
from manikin.fidelity.simulation.settings import HANDS, Settings, read_settings
from manikin.fidelity.submission import pack

G = 9.81
HAND = 0.04 + 0.727 + 6 * 0.01
"""[kg] what the force sensor carries."""
needs_data = pytest.mark.skipif(not os.environ.get("MANIKIN_DATA"), reason="MANIKIN_DATA is not set")


def shortened(task: int, seconds: float, **options: object) -> TaskSimulation:
    """A simulation that ends early."""
    found = TaskSimulation(task, **options)  # type: ignore[arg-type]
    found.task = replace(found.task, seconds=seconds)
    return found


@pytest.fixture(scope="module")
def pushed() -> Recording:
    """Task 9 with two repeats, force as the sensor feels it."""
    return simulate(9, Settings(tare=False), repeats=2)


# ---- arm -------------------------------------------------------------------------------------------------------------


def test_the_wrist_goes_where_the_kinematics_say(pushed: Recording) -> None:
    home, turn = wrist_pose(np.zeros(6))
    np.testing.assert_allclose(pushed.arm[:, 0, ARM["pos"]], np.tile(home, (2, 1)), atol=1e-5)
    w, x, y, z = pushed.arm[0, 0, ARM["quat"]]
    out = (1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y))
    np.testing.assert_allclose(out, turn[:, 0], atol=1e-5)
    last = wrist_pose(np.radians(TASKS[9].segments[-1][1]))[0]
    assert np.linalg.norm(pushed.arm[:, -1, ARM["pos"]] - last, axis=1).max() < 1e-3


def test_the_arm_turns_no_faster_than_its_cap() -> None:
    """Task 1 begins with joint 2 alone: its wrist moves on a circle about that joint."""
    radius = 0.9418 - 0.055 - 0.2755  # [m] from joint 2 to the wrist, at home
    for cap, most in (("released", 30.0), (20.0, 20.0), ("paper", 10.0), ("fitted", 57.3)):
        sim = shortened(1, 1.5, repeats=1)
        (found,) = sim.run([Settings(cap=cap, spread=0)])
        speed = np.linalg.norm(np.diff(found.arm[0, :, :3], axis=0), axis=1) * 10
        reach = np.hypot(radius, 0.0671)
        assert np.radians(most) * reach == pytest.approx(speed[4:].max(), rel=0.02), cap


def test_a_delay_and_late_targets_shift_the_motion() -> None:
    early, late = (simulate(9, Settings(delay=d, spread=0), repeats=1).arm[0, :, :3] for d in (0.0, 0.5))
    np.testing.assert_allclose(late[5:], early[:-5], atol=1e-5)
    usual, recorded = Settings(), Settings(times="recorded")
    assert [end for end, _ in recorded.segments_of(5)] == [2 * end for end, _ in usual.segments_of(5)]
    assert recorded.segments_of(3) == usual.segments_of(3)


def test_the_force_sensor_feels_the_weight_of_the_hand(pushed: Recording) -> None:
    """The hand points up at the start: all of its weight is along the sensor's z, pressing on it."""
    force = pushed.arm[:, 0, ARM["force"]]
    np.testing.assert_allclose(force, np.tile([0, 0, HAND * G], (2, 1)), atol=1e-3)
    assert np.linalg.norm(pushed.arm[:, -1, ARM["force"]], axis=1) == pytest.approx(HAND * G, rel=1e-3)
    heavy = shortened(1, 0.3, repeats=1).run([Settings(hand_mass=1.5, tare=False)])[0]
    assert heavy.arm[0, 0, 18] == pytest.approx(1.5 * HAND * G, rel=1e-3)
    tared = shortened(1, 0.3, repeats=1).run([Settings()])[0]
    assert (tared.arm[0, 0, 16:22] == 0).all()


def test_fingers_are_written_as_counts_of_their_encoders() -> None:
    """6400 counts are 1.4 rad (the paper); open is 0."""
    sim = TaskSimulation(9, repeats=1)
    sim.start([Settings(spread=0)])
    np.testing.assert_allclose(sim.read()[0][0, ARM["fingers"]], 0, atol=1e-6)
    angles = torch.tensor([[0.14, 0.7, 1.4]])
    sim.world.channel([("qpos", k, k + 1) for k in sim.scene.fingers]).write(angles)
    np.testing.assert_allclose(sim.read()[0][0, ARM["fingers"]], [640, 3200, 6400], rtol=1e-5)


def test_joint_torques_at_rest_carry_the_weight_of_the_arm(pushed: Recording) -> None:
    """They are the derivative of the potential energy by the joints' angles."""
    sim = TaskSimulation(9, repeats=1)
    model, data = sim.scene.compiled.model, mujoco.MjData(sim.scene.compiled.model)
    bodies = [*sim.scene.arm, *sim.scene.hand]

    def energy(q: np.ndarray) -> float:
        data.qpos[[model.jnt_qposadr[model.dof_jntid[d]] for d in sim.scene.dofs]] = q
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        return float(G * (model.body_mass[bodies] * data.xipos[bodies, 2]).sum())

    rest, step = np.radians(TASKS[9].segments[-1][1]), 1e-4 * np.eye(6)
    expected = [(energy(rest + one) - energy(rest - one)) / 2e-4 for one in step]
    np.testing.assert_allclose(pushed.arm[0, -1, ARM["torque"]], expected, atol=0.02)
    assert abs(expected[1]) > 5


def test_the_calibration_of_the_torque_sensors_scales_what_is_written_and_nothing_else() -> None:
    """One factor for the tasks that were recorded first, one for tasks 5 to 8."""
    settings = Settings(spread=0, torque_scale=0.5, torque_scale_rolling=2.0)
    for task, factor in ((9, 0.5), (5, 2.0)):
        usual, scaled = (shortened(task, 1.5, repeats=1).run([one])[0] for one in (Settings(spread=0), settings))
        np.testing.assert_allclose(scaled.arm[..., ARM["torque"]], factor * usual.arm[..., ARM["torque"]])
        rest = np.delete(np.arange(22), np.r_[ARM["torque"]])
        assert (scaled.arm[..., rest] == usual.arm[..., rest]).all() and (scaled.objects == usual.objects).all()


# ---- objects ---------------------------------------------------------------------------------------------------------


def thrown(task: int, settings: Settings, velocity: tuple[float, ...], steps: int, axis: int = 0) -> np.ndarray:
    """(steps + 1,) [m] way of the object along an axis at 10 Hz, which begins with a velocity (6,) while the arm
    waits."""
    sim = TaskSimulation(task, repeats=1)
    world, model = sim.world, sim.scene.compiled.model
    sim.start([replace(settings, spread=0.0)])
    world.step(20)  # it settles
    dof = int(model.body_dofadr[sim.scene.object_body])
    world.channel([("qvel", dof, dof + 6)]).write(torch.tensor([velocity]))
    found = []
    for _ in range(steps + 1):
        found.append(float(sim.read()[1][0, axis]))
        world.step(sim.substeps)
    return np.array(found) - found[0]


@pytest.mark.parametrize("friction", [0.2, 0.4])
def test_a_sliding_cube_brakes_by_its_friction(friction: float) -> None:
    way = thrown(3, Settings(table_friction=friction), (0.6, 0, 0, 0, 0, 0), 6)
    assert way[-1] == pytest.approx(0.6**2 / (2 * friction * G), rel=0.03)


@pytest.mark.parametrize("rolling", [5e-4, 1e-3])
def test_a_rolling_cylinder_brakes_by_its_rolling_friction(rolling: float) -> None:
    """(m r + I / r) a = mu m g, I = m r^2 / 2."""
    radius, speed = 0.0375, 0.3
    settings = Settings(rolling_friction=rolling)
    brakes = rolling * G / (1.5 * radius)
    # the cylinder's z lies along the world's -y, about which it turns backwards: rolling along +x
    way = thrown(5, settings, (speed, 0, 0, 0, 0, -speed / radius), 40)
    seconds = 2.0
    assert way[20] == pytest.approx(
        speed * min(seconds, speed / brakes) - brakes * min(seconds, speed / brakes) ** 2 / 2, rel=0.05
    )
    assert way[-1] == pytest.approx(speed**2 / (2 * brakes), rel=0.08)


@pytest.mark.parametrize("offset", [0.002, 0.005])
def test_a_cylinder_with_its_mass_off_the_axis_rocks_like_a_pendulum(offset: float) -> None:
    """w^2 = m g e / (I + m (r - e)^2), I = m r^2 / 2 about the centre of mass; small swings about where it lies."""
    radius = 0.0375
    settings = Settings(rolling_friction=0.0, torsional_friction=0.0, object_offset=offset)
    way = thrown(5, settings, (0.004, 0, 0, 0, 0, -0.004 / radius), 60)
    turns = np.flatnonzero(np.diff(np.sign(way - way.mean())))
    cross = [k + (way.mean() - way[k]) / (way[k + 1] - way[k]) for k in turns]
    period = 2 * np.pi / np.sqrt(G * offset / (radius**2 / 2 + (radius - offset) ** 2))
    assert 0.2 * np.diff(cross).mean() == pytest.approx(period, rel=0.03) and len(cross) > 4


def test_a_cone_with_its_mass_off_the_axis_rocks_about_its_apex() -> None:
    """Period 2 pi sqrt(I cos(a) / (m g e)), tan(a) = r / h: I about the line on which it lies, along which it turns.

    That of a uniform cone is 3/20 m r^2 (6 h^2 + r^2) / (h^2 + r^2); its centre of mass, 3/4 h sin(a) above the line,
    comes nearer by e cos(a).
    """
    radius, height, offset = 0.0375, 0.1, 0.002
    slant = np.hypot(radius, height)
    settings = Settings(rolling_friction=0.0, time_constant=0.02, object_offset=offset)
    turn = 1.5 * np.array([radius, 0, -height]) / slant  # [rad/s] in its own frame, whose x points down
    along = (0, 1.5 * radius * height / slant, 0)  # [m/s] of the middle of its base: the apex rests
    way = thrown(7, settings, (*along, *turn), 60, axis=1)
    turns = np.flatnonzero(np.diff(np.sign(way - way.mean())))
    cross = [k + (way.mean() - way[k]) / (way[k + 1] - way[k]) for k in turns]
    above = 0.75 * height * radius / slant
    inertia = 3 / 20 * radius**2 * (6 * height**2 + radius**2) / slant**2  # per mass
    inertia += (above - offset * height / slant) ** 2 - above**2
    period = 2 * np.pi * np.sqrt(inertia * (height / slant) / (G * offset))
    assert 0.2 * np.diff(cross).mean() == pytest.approx(period, rel=0.02) and len(cross) > 4


def test_recorded_offsets_are_those_of_the_periods_with_which_the_objects_rock() -> None:
    """In the median over repeats 3.6, 5.3, 2.4 and 5.5 s, by the laws that the two tests above hold."""
    radius, height = 0.0375, 0.1
    slant = np.hypot(radius, height)
    cone = 3 / 20 * radius**2 * (6 * height**2 + radius**2) / slant**2 * height / slant
    for task, period in ((5, 3.6), (6, 5.3), (7, 2.4), (8, 5.5)):
        offset = (2 * np.pi / period) ** 2 * (1.5 * radius**2 if task < 7 else cone) / G
        assert Settings(object_offset="recorded").offset_of(task) == pytest.approx(offset, rel=0.03)
    assert Settings(object_offset="recorded").offset_of(3) == 0
    assert Settings(object_offset="recorded", offset_factor=2.0).offset_of(5) == pytest.approx(1.3e-3)
    assert "object_offset" in Settings(object_offset="recorded").per_task


def test_objects_have_the_published_shapes_and_lie_still() -> None:
    for task, about in TASKS.items():
        if about.thing is None:
            continue
        sim = shortened(task, 0.6, repeats=1)
        model = sim.scene.compiled.model
        body = sim.scene.object_body
        assert model.body_mass[body] == pytest.approx(about.thing.mass)
        found = sim.run([Settings(spread=0)])[0].objects[0]
        assert np.linalg.norm(found[:, :3] - about.thing.start[:3], axis=1).max() < 3e-3, task
        diameter, length = about.thing.size[0], about.thing.size[-1]
        volume = {"cube": diameter**3, "cuboid": diameter**2 * length}.get(about.thing.shape)
        round_volume = np.pi * diameter**2 / 4 * length
        volume = volume or {"cylinder": round_volume, "cone": round_volume / 3}[about.thing.shape]
        turned = {"cylinder": (3 * diameter**2 / 4 + length**2) / 12, "cone": 3 / 80 * (diameter**2 + length**2)}
        inertia = about.thing.mass * turned.get(about.thing.shape, (diameter**2 + length**2) / 12)
        assert volume > 0 and max(model.body_inertia[body]) == pytest.approx(inertia, rel=0.01), task


def test_the_released_hand_has_the_shapes_of_the_released_meshes(data_root: Path) -> None:
    """Its hulls are as wide as the STL files, in the description's frames; masses stay."""
    built_in, released = (TaskSimulation(3, repeats=1, hand=hand).scene for hand in HANDS)
    models = [one.compiled.model for one in (built_in, released)]
    assert (models[0].body_mass == models[1].body_mass).all() and len(released.robot_geoms) < len(built_in.robot_geoms)
    model = models[1]
    wide = {}
    for geom in released.robot_geoms:
        body = model.body(int(model.geom_bodyid[geom])).name.removeprefix("robot/")
        if body not in ("hand", "b_finger_1", "b_finger_tip_1"):
            continue
        assert model.geom_type[geom] == mujoco.mjtGeom.mjGEOM_MESH
        mesh = int(model.geom_dataid[geom])
        first, count = model.mesh_vertadr[mesh], model.mesh_vertnum[mesh]
        turn = np.zeros(9)
        mujoco.mju_quat2Mat(turn, model.geom_quat[geom])
        wide[body] = model.mesh_vert[first : first + count] @ turn.reshape(3, 3).T + model.geom_pos[geom]
    for body, name in (
        ("hand", "hand_3finger"),
        ("b_finger_1", "finger_proximal"),
        ("b_finger_tip_1", "finger_distal"),
    ):
        content = (data_root / "collins2020" / "meshes" / f"{name}.STL").read_bytes()
        facets = np.frombuffer(content[84:], np.dtype([("normal", "<3f4"), ("points", "<9f4"), ("", "<u2")]))
        points = facets["points"].reshape(-1, 3)
        for end in (np.min, np.max):
            np.testing.assert_allclose(end(wide[body], axis=0), end(points, axis=0), atol=1e-4)
    sim = TaskSimulation(3, repeats=1)
    with pytest.raises(ConfigError, match="has the hand 'built_in', not 'released'"):
        sim.run([Settings(hand="released")])


def test_without_the_released_description_its_hand_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MANIKIN_DATA", raising=False)
    with pytest.raises(AssetError, match="MANIKIN_DATA is not set"):
        TaskSimulation(3, repeats=1, hand="released")


# ---- batches ---------------------------------------------------------------------------------------------------------


def test_a_seed_gives_the_same_repeats_and_spread_differs_between_them() -> None:
    first, again, other = (simulate(3, Settings(), seed=s, repeats=3) for s in (0, 0, 1))
    assert (first.arm == again.arm).all() and (first.objects == again.objects).all()
    assert (first.objects != other.objects).any()
    assert len({tuple(one[0]) for one in first.objects}) == 3
    alike = simulate(3, Settings(spread=0), repeats=3)
    assert (alike.arm == alike.arm[:1]).all() and (alike.objects == alike.objects[:1]).all()
    sim = TaskSimulation(3, repeats=400)
    sim.start([Settings()])
    assert sim.read()[1][:, :2].std(0) == pytest.approx([0.0015, 0.0015], rel=0.1)


def test_settings_of_a_batch_give_what_they_give_alone() -> None:
    every = (Settings(), Settings(table_friction=0.2, arm_mass=1.2, damping=2.0, base_yaw=3.0, stiffness=900.0))
    sim = shortened(9, 4.0, repeats=2, candidates=2)
    together = sim.run(every)
    for settings, found in zip(every, together, strict=True):
        alone = shortened(9, 4.0, repeats=2).run([settings])[0]
        np.testing.assert_allclose(found.arm, alone.arm, atol=1e-6)
        np.testing.assert_allclose(found.objects, alone.objects, atol=1e-6)
    with pytest.raises(ConfigError, match="takes 2 settings at a time, not 1"):
        sim.run([Settings()])
    with pytest.raises(ConfigError, match="has 200 physics steps per second"):
        sim.run([Settings(physics_hz=500)] * 2)


def test_the_base_stands_where_settings_say() -> None:
    settings = Settings(base_yaw=90.0, base_x=0.1, base_y=-0.05, base_z=0.02, spread=0)
    found = shortened(1, 0.3, repeats=1).run([settings])[0].arm[0, 0, :3]
    x, y, z = wrist_pose(np.zeros(6))[0]
    np.testing.assert_allclose(found, (-y + 0.1, x - 0.05, z + 0.02), atol=1e-5)


def test_warp_simulates_the_same() -> None:
    pytest.importorskip("mujoco_warp", reason="MuJoCo Warp is not installed: pip install 'manikin[gpu]'")
    settings = Settings(cap="fitted", spread=0)
    cpu, warp = (shortened(9, 0.6, repeats=1, device=d).run([settings])[0] for d in ("cpu", "warp:cpu"))
    np.testing.assert_allclose(warp.arm[..., ARM["pos"]], cpu.arm[..., ARM["pos"]], atol=1e-3)
    np.testing.assert_allclose(warp.arm[..., ARM["torque"]], cpu.arm[..., ARM["torque"]], atol=0.1)
    np.testing.assert_allclose(warp.objects[..., :3], cpu.objects[..., :3], atol=1e-3)


def test_warp_simulates_a_whole_task_as_the_cpu_does() -> None:
    """In single precision: the wrist within 0.1 mm, torques within 0.01 N m, the pushed cuboid within 3 mm."""
    pytest.importorskip("mujoco_warp", reason="MuJoCo Warp is not installed: pip install 'manikin[gpu]'")
    settings = Settings(cap="fitted", spread=0, table_friction=0.25, physics_hz=100)
    cpu, warp = (simulate(9, settings, repeats=1, device=device) for device in ("cpu", "warp:cpu"))
    assert warp.rows == cpu.rows == 90
    for name, tolerance in (("pos", 1e-4), ("quat", 1e-4), ("torque", 0.01), ("force", 0.05), ("moment", 0.005)):
        np.testing.assert_allclose(warp.arm[..., ARM[name]], cpu.arm[..., ARM[name]], atol=tolerance, err_msg=name)
    np.testing.assert_allclose(warp.objects[..., :3], cpu.objects[..., :3], atol=3e-3)
    assert cpu.objects[0, :, 0].max() > 0.63  # it was pushed


# ---- settings, files, scores -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        ("table_frictoin = 1", UnknownNameError, "'table_frictoin'. Did you mean 'table_friction'"),
        ('cap = "fastest"', UnknownNameError, "unknown cap in .*'fastest'.*fitted, paper, released. Or a number"),
        ("cap = -3", ConfigError, "cap must be at least 0"),
        ("times = 2", ConfigError, "times must be one of released, recorded"),
        ("damping = [1, 2]", ConfigError, "damping must be one number, or 6, one for each joint, not 2"),
        ("damping = [1, 2, 3, 4, 5, -1]", ConfigError, "damping must be at least 0, not -1"),
        ("force = 0", ConfigError, "force must be above 0"),
        ("table_friction = nan", ConfigError, "table_friction must be a number"),
        ("table_friction = true", ConfigError, "table_friction must be a number, not True"),
        ("tare = 1", ConfigError, "tare must be true or false"),
        ("base_yaw = 400", ConfigError, "base_yaw must be at least -180 and at most 180, not 400"),
        ("physics_hz = 205", ConfigError, "physics_hz = 205 must be a multiple of 10"),
        ("[contact]\nfriction = 1", UnknownNameError, "'contact'"),
        ("table_friction", DataError, "cannot be read"),
    ],
)
def test_bad_settings_are_named(tmp_path: Path, text: str, error: type[Exception], said: str) -> None:
    file = tmp_path / "physics.toml"
    file.write_text(text)
    with pytest.raises(error, match=said) as raised:
        read_settings(file)
    assert "physics.toml" in str(raised.value)


def test_settings_read_from_a_file_say_what_differs(tmp_path: Path) -> None:
    file = tmp_path / "physics.toml"
    file.write_text('cap = "fitted"\ndamping = 2\nhand_friction = 0.5\n')
    found = read_settings(file)
    assert found.damping == (2.0,) * 6 and found.changed == {"cap": "fitted", "damping": (2.0,) * 6}
    assert found.digest == Settings(cap="fitted", damping=2.0).digest != Settings().digest
    assert Settings().changed == {}


def test_a_simulation_that_breaks_down_says_with_what() -> None:
    sim = shortened(1, 1.0, repeats=1)
    with pytest.raises(DivergedError, match=r"task 1 breaks down with .*hand_mass"):
        sim.run([Settings(hand_mass=1e12)])


def test_files_of_a_run_are_read_back_and_scored(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    real = write_synthetic(tmp_path / "made", tasks=(9,)) / "real"
    file = tmp_path / "physics.toml"
    file.write_text('cap = "fitted"\n')
    out = tmp_path / "out"
    assert (
        main(["fidelity", "run", "--config", str(file), "--tasks", "9", "--reality", str(real), "--out", str(out)]) == 0
    )
    said = capsys.readouterr().out
    assert "settings " + Settings(cap="fitted").digest[:12] + ": cap = fitted" in said and "SYNTHETIC" in said
    read = read_repeats(out / "simulation", 9)
    made = run_tasks(Settings(cap="fitted"), (9,)).recordings[9]
    np.testing.assert_allclose(read.arm, made.arm, atol=1e-6)
    np.testing.assert_allclose(read.objects, made.objects, atol=1e-6)
    told = json.loads((out / "simulation" / "settings.json").read_text())
    assert told["settings"]["cap"] == "fitted" and told["digest"] == Settings(cap="fitted").digest
    (scored,) = json.loads((out / "score.json").read_text())["simulations"]
    assert scored["tasks"]["9"]["values"]["euclidean"] < 0.05  # the synthetic arm follows the same law
    assert scored["tasks"]["9"]["simulation_defects"] == []  # a fast push is no exchange of labels
    assert "The object moves: recorded" in (out / "index.html").read_text()
    assert main(["fidelity", "pack", str(out / "simulation"), "--out", str(tmp_path / "sent")]) == 0
    sent = json.loads((tmp_path / "sent" / "submission.json").read_text())
    assert sent["tuned"] == {"cap": "fitted"} and sent["simulator"].endswith(Settings(cap="fitted").digest[:8])


@pytest.mark.parametrize(
    ("settings", "task", "said"),
    [
        (Settings(base_z=-0.01), 9, "base_height_m is immutable: 0.055, not 0.045"),
        (Settings(base_y=0.02), 9, "base_xy_m is immutable"),
        (Settings(base_yaw=3.0), 9, "base_yaw_deg is immutable"),
        (Settings(times="recorded"), 5, "task5/targets_deg is immutable"),
        (Settings(object_mass=1.5), 9, "task9/object_mass_kg is immutable: 0.14, not 0.21"),
    ],
)
def test_a_run_says_what_it_changed_of_what_is_immutable(
    settings: Settings, task: int, said: str, tmp_path: Path
) -> None:
    made = {task: replace(synthetic_recording(task), synthetic=False, header={})}
    run = FidelityRun(settings=settings, seed=0, recordings=made, films={}, seconds=1.0, processor_seconds=1.0)
    run.write(tmp_path / "run")
    with pytest.raises(ConfigError, match=said):
        pack(tmp_path / "run", None, tmp_path / "sent")


def test_without_recordings_a_run_writes_its_files_and_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MANIKIN_DATA", raising=False)
    assert main(["fidelity", "run", "--tasks", "9", "--out", str(tmp_path)]) == 0
    assert "not scored: there are no recordings: MANIKIN_DATA is not set" in " ".join(capsys.readouterr().out.split())
    assert len(list((tmp_path / "simulation").glob("task09_*.csv"))) == 20
    assert main(["fidelity", "run", "--tasks", "11", "--out", str(tmp_path)]) == 2
    assert "unknown task of the benchmark '11'" in capsys.readouterr().err


def test_the_command_films_what_it_simulates(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    av = pytest.importorskip("av", reason="PyAV is not installed: pip install 'manikin[video]'")
    real = write_synthetic(tmp_path / "made", tasks=(9,)) / "real"
    words = ["fidelity", "run", "--tasks", "9", "--films", "--reality", str(real), "--out", str(tmp_path / "out")]
    assert main(words) == 0
    assert '<video src="films/task09.mp4"' in (tmp_path / "out" / "index.html").read_text()
    with av.open(str(tmp_path / "out" / "films" / "task09.mp4")) as film:
        frames = [frame.to_ndarray(format="rgb24").astype(int) for frame in film.decode(video=0)]
    assert len(frames) == 90 and frames[0].shape == (240, 320, 3)
    assert np.abs(frames[40] - frames[0]).max() > 50  # the arm has moved
    red = (frames[0][..., 0] - frames[0][..., 1] > 40).sum()
    assert red > 20  # spheres where wrist and object were recorded


def test_films_show_where_wrist_and_object_were_recorded(tmp_path: Path) -> None:
    real = averaged(synthetic_recording(9, noise=0))
    frames = {}
    for name, shown in (("spheres", real), ("plain", None), ("elsewhere", replace(real, objects=real.objects + 0.2))):
        sim = shortened(9, 0.3, repeats=1)
        film = FidelityFilm(sim, shown, width=80, height=60)
        found = sim.run([Settings()], on_row=film)[0]
        film.close()
        frames[name] = np.stack(film.frames).astype(int)
        assert len(film.frames) == found.rows == 3
    red = {name: (one[..., 0] - one[..., 1] > 40).sum() for name, one in frames.items()}
    assert red["spheres"] > 20 > red["plain"] and (frames["spheres"] != frames["elsewhere"]).any()
    task = score_task(real, synthetic_recording(9, seed=1))
    score = Score(name="mine", mode="paper", tasks={9: task}, about={})
    assert '<video src="films/task09.mp4"' in render_page([score], {9: "films/task09.mp4"})
    assert "<video" not in render_page([score])


@needs_data
def test_the_released_controller_is_as_far_from_reality_as_pybullet() -> None:
    """Tasks 1 and 2, whose published row PyBullet made with the same gain, cap and times."""
    folder = Path(os.environ["MANIKIN_DATA"]) / "collins2020" / "real_mean_10hz"
    if not folder.is_dir():
        pytest.skip("MANIKIN_DATA has no collins2020")
    run = run_tasks(Settings(), (1, 2), repeats=2)
    values = {
        task: score_task(read_reality(folder, task), one, mode="released").values
        for task, one in run.recordings.items()
    }
    row = published()[1]["PyBullet"]
    for name in ("euclidean", "velocity"):
        assert subgroup_scores(values)[1][name] == pytest.approx(row[name], rel=0.15)
