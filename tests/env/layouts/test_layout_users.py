"""What is built on environments works for tasks with layouts, and with other objects per row, as for any other."""

from __future__ import annotations

import h5py
import mujoco
import numpy as np
import pytest
import torch

import manikin
from manikin.cli import main
from manikin.data.formats.convert import to_lerobot, to_maniskill, to_robomimic
from manikin.data.formats.demonstrations import read_demos
from manikin.data.formats.playback import play_actions, play_states, write_seen
from manikin.data.recorder import Recorder
from manikin.data.recording.read import read_episodes
from manikin.data.replay.rerecord import rerecord
from manikin.data.replay.verify import replay
from manikin.data.retarget.conversion import retarget
from manikin.env.env import Env
from manikin.env.registry import task_class
from manikin.errors import ConfigError, UnknownNameError
from manikin.eval.runner import run_episodes
from manikin.math import pose_mul
from manikin.plan.planner import Planner
from manikin.policy.expert import ExpertPolicy
from manikin.props.cabinet import CABINETS
from manikin.teleop.device import Motion, ScriptedDevice
from manikin.teleop.loop import TeleopLoop
from manikin.teleop.pilot import Pilot
from manikin.view.hand import HandSession
from manikin.view.hold import HoldPolicy
from manikin.view.session import Session

CABINET, YCB = "OpenCabinetDrawer-v2", "PickSingleYCB-v2"
NAMES = tuple(CABINETS)


def record(path, task, seeds, **options):
    env = manikin.make(task, len(seeds), autoreset="disabled", **options)
    recorder = Recorder(env, path, policy="expert")
    run_episodes(env, ExpertPolicy(env), seeds, observers=[recorder])
    recorder.close()
    env.close()
    return path


# ---- planning ------------------------------------------------------------------------------------------------------


def reach(env):
    """(N, 7) 15 cm towards and above where the tools are."""
    move = torch.tensor([0.1, 0.05, 0.1])
    return torch.cat([env.tcp_poses[:, 0, :3] + move, env.tcp_poses[:, 0, 3:]], 1)


def test_a_plan_of_rows_with_layouts_is_each_layouts_own():
    """Bit for bit, also where rows of a layout are not beside one another and slots are in another order."""
    seeds = [2, 0, 9, 7, 2]  # of 7 layouts: 2, 0, 2, 0, 2
    env = manikin.make(CABINET, len(seeds), autoreset="disabled")
    env.reset(seed=[9, 1, 2, 3, 4])
    env.reset(seed=seeds)
    planner, rows = Planner(env), [0, 1, 2, 4]
    goal = reach(env)
    plan = planner.plan(pose=goal[rows], rows=rows, seed=torch.tensor([5, 6, 7, 8]))
    goals = planner.goals(goal[rows], rows=rows)
    assert plan.found.any() and plan.found.tolist() == [not reason for reason in plan.reasons]
    for k, row in enumerate(rows):
        own = Env(task_class(CABINET)(layout=NAMES[seeds[row] % 7]), autoreset="disabled")
        own.reset(seed=[seeds[row]])
        alone = Planner(own).plan(pose=goal[row : row + 1], seed=5 + k)
        assert alone.reasons == plan.reasons[k : k + 1] and torch.equal(alone.paths[0], plan.paths[k])
        assert torch.equal(alone.reach[0], plan.reach[k])
        assert torch.equal(Planner(own).goals(goal[row : row + 1]).q[0], goals.q[k])
    assert plan.timed().duration.shape == (4,)
    with pytest.raises(ConfigError, match="the goals of 4 rows"):
        planner.plan(pose=goal[:2], rows=rows)


def test_what_may_be_touched_is_found_by_name_in_every_layout():
    env = manikin.make(CABINET, 3, autoreset="disabled")
    env.reset(seed=[0, 1, 2])
    planner = Planner(env)
    pose = torch.stack([part.env.h.cabinet.places[part.rows[0], 0] for part in env.parts()])
    inside = torch.cat([pose, env.tcp_poses[:, 0, 3:]], 1)
    assert not planner.goals(inside).found.any()  # the fingers would stand in the cabinet's front
    marker = env.part(1)[0].thing("handle_marker")
    same = planner.goals(reach(env), ignore=[marker])
    assert [len(q) for q in same.q] == [len(q) for q in planner.goals(reach(env)).q]
    with pytest.raises(UnknownNameError, match="unknown part 'kettle'"):
        env.part(0)[0].thing("kettle")


def test_planning_with_another_object_in_every_row():
    env = manikin.make(YCB, 4, autoreset="disabled")
    env.reset(seed=0)
    planner = Planner(env)
    plan = planner.plan(pose=reach(env))
    assert plan.found.all()
    alone = manikin.make(YCB, 1, autoreset="disabled")
    alone.reset(seed=[2])
    assert torch.equal(Planner(alone).plan(pose=reach(alone)).paths[0], plan.paths[2])
    held = env.h.thing
    start = env.arm_qpos.double()
    assert planner.goals(reach(env), held=held, start=start).found.shape == (4,)


# ---- conversion ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("task", "seeds"), [(CABINET, [0, 5, 7]), (YCB, [0])])
def test_a_recording_comes_to_another_controller_and_replays(task, seeds, tmp_path):
    """Seed 7 is seed 0's cabinet in another place: two rows of one layout beside one of another."""
    old = record(tmp_path / "old.h5", task, seeds)
    report = retarget(old, tmp_path / "new.h5", control="ee_delta_pose", num_envs=3)
    then, now = report.success
    assert then == len(seeds) and now == then and not report.unhealthy
    assert report.quantiles("tool")[0] < 0.01  # [m] the median
    assert replay(tmp_path / "new.h5").exact
    (one,) = retarget(old, tmp_path / "one.h5", control="ee_delta_pose", numbers=[0], num_envs=1).episodes
    first = next(episode for episode in report.episodes if episode.number == 0)
    assert one.steps == first.steps
    assert all(np.array_equal(one.residual[name], first.residual[name]) for name in one.residual)


def test_a_held_object_is_brought_where_it_was_whatever_object_it_is(tmp_path):
    old = record(tmp_path / "old.h5", YCB, [1, 2])
    report = retarget(old, tmp_path / "new.h5", control="osc_pose", num_envs=2)
    assert report.success == (2, 2)
    assert all((episode.residual["part"] > 0).any() for episode in report.episodes)  # it is looked at


@pytest.mark.parametrize("task", [CABINET, YCB])
def test_recordings_become_other_formats(task, tmp_path):
    pytest.importorskip("av", reason="pip install 'manikin[data]'")
    pytest.importorskip("pyarrow", reason="pip install 'manikin[data]'")
    old = record(tmp_path / "old.h5", task, [0, 2], horizon=6)
    seen = tmp_path / "seen.h5"
    rerecord(old, seen, observe="state_dict")
    to_maniskill(seen, tmp_path / "theirs.h5")
    to_lerobot(seen, tmp_path / "lerobot")
    assert (tmp_path / "lerobot" / "meta" / "info.json").exists()
    with h5py.File(tmp_path / "theirs.h5") as file, read_episodes(old) as episodes:
        for k, seed in enumerate((0, 2)):
            states = file[f"traj_{k}/env_states"]
            assert len(states["articulations/panda"]) == len(episodes[k]) + 1
            if task == CABINET:
                joints = len(CABINETS[NAMES[seed]].build().joints)
                assert states["articulations/cabinet"].shape[1] == 13 + 2 * joints


@pytest.mark.parametrize(("task", "robot"), [(CABINET, None), ("TwoRobotPickCube-v2", "panda,panda")])
def test_exports_of_tasks_with_layouts_or_several_robots_are_played_again(task, robot, tmp_path, capsys):
    """Their states against the episodes played anew, and their actions, which manikin's own physics repeats."""
    old = record(tmp_path / "old.h5", task, [5, 0, 12], horizon=8, robot=robot)  # 5 and 12 are of one layout
    demos = read_demos(to_robomimic(old, tmp_path / "theirs.hdf5"))
    seen = list(play_states(demos, num_envs=5))
    with read_episodes(old) as episodes:
        for episode, one in zip(episodes, seen, strict=True):
            assert one.success[1:].tolist() == episode.success.tolist()
            assert one.states.shape == episode.states.shape
            env = manikin.make(task, 1, autoreset="disabled", robot=robot)
            env.reset(seed=[episode.seed])
            for t, action in enumerate([*episode.actions, None]):
                model, data = env.model_data(0)
                bodies = [model.body(b).name for b in range(1, model.nbody) if model.body_jntnum[b]]
                thing = next(name for name in bodies if not name.startswith(("robot", "panda")))
                assert one.thing[t] == pytest.approx(data.body(thing).xpos, abs=1e-5)
                assert one.tcp[t] == pytest.approx(env.tcp_poses[0, 0, :3].numpy(), abs=1e-5)
                if action is not None:
                    env.step(torch.from_numpy(action)[None])
            env.close()
    for one in play_actions(demos, seen):
        assert one.tcp.max() < 1e-4 and one.thing.max() < 1e-4
    write_seen(demos, play_states(demos, num_envs=2), tmp_path / "again.h5", to="maniskill")
    with h5py.File(tmp_path / "again.h5") as file:
        assert [len(file[f"traj_{k}/actions"]) for k in range(3)] == [8, 8, 8]
    assert main(["import", str(demos.path), "--play", "actions"]) in (0, 1)
    assert "states: " in capsys.readouterr().out


# ---- teleoperation -------------------------------------------------------------------------------------------------


def test_cabinets_are_opened_by_hand_and_the_episodes_replay(tmp_path):
    """Episode k has the seed k, so each is another cabinet; the tool goes where the hand points in every one."""
    env = manikin.make(CABINET, 1, autoreset="disabled", control="ee_delta_pose", horizon=60)
    up = [Motion(linear=(0, 0, 1))] * 12
    script = [*up, Motion(buttons=frozenset({"save"})), Motion(), *up, Motion(buttons=frozenset({"save"}))]
    loop = TeleopLoop(env, ScriptedDevice(script), out=tmp_path / "a.h5")
    heights, layouts = [], []
    loop.begin()
    while not loop.device.over:
        begun = loop.steps == 0
        if begun:
            heights.append(float(env.tcp_poses[0, 0, 2]))
        loop.tick()
        if loop.steps == 12:
            heights.append(float(env.tcp_poses[0, 0, 2]))
            layouts.append(int(env.layout[0]))
    loop.close()
    assert loop.saved == 2 and layouts[0] == 0 and layouts[-1] == 1
    assert max(heights) - min(heights) > 0.04
    assert replay(tmp_path / "a.h5").exact
    with read_episodes(tmp_path / "a.h5") as episodes:
        assert episodes[0].states.shape[1] != episodes[1].states.shape[1]


@pytest.mark.parametrize("task", [CABINET, YCB])
def test_a_hand_moves_the_tool_where_it_points(task):
    env = manikin.make(task, 1, autoreset="disabled", control="ee_delta_pose", horizon=100)
    env.reset(seed=[3])
    pilot = Pilot(env)
    before = env.tcp_poses[0, 0].clone()
    for _ in range(20):
        env.step(pilot.action(Motion(linear=(0, 0, 1))))
    moved = env.tcp_poses[0, 0, :3] - before[:3]
    assert moved[2] > 0.03 and moved[:2].abs().max() < 0.25 * moved[2]
    for _ in range(5):
        env.step(pilot.action(Motion()))
    rest = env.tcp_poses[0, 0, :3].clone()
    env.step(pilot.action(Motion()))
    assert (env.tcp_poses[0, 0, :3] - rest).norm() < 2e-3


def test_a_page_of_teleoperation_shows_the_cabinet_that_it_drives():
    env = manikin.make(CABINET, 1, autoreset="disabled", control="ee_delta_pose")
    session = HandSession(TeleopLoop(env, ScriptedDevice(()), seed=2))
    assert session.look()[0].njnt == 9 + len(CABINETS[NAMES[2]].build().joints)
    assert "cabinet/drawer1_0" in session.bodies or any(name.startswith("cabinet/drawer") for name in session.bodies)
    session.loop.number = 3
    session.ask("reset")
    session.obey()
    session.publish()
    assert session.look()[0].njnt == 9 + len(CABINETS[NAMES[3]].build().joints)
    session.close()


# ---- viewing -------------------------------------------------------------------------------------------------------


def test_a_drawer_of_the_row_in_view_is_pulled_by_its_name():
    """Against MuJoCo: the joint of that row's own model moves, those of the other rows stay."""
    env = manikin.make(CABINET, 3, autoreset="disabled")
    session = Session(env, HoldPolicy, playing=False, seed=0)
    drawers = {}
    for row in (0, 2):
        session.ask("row", value=row)
        session.advance()
        drawers[row] = [name for name in session.bodies if name.startswith("cabinet/drawer")]
        assert len(drawers[row]) == len(CABINETS[NAMES[row]].drawers)
    name = drawers[2][-1]
    with pytest.raises(UnknownNameError, match="body that moves"):
        session.ask("push", body="cabinet/drawer9", force=[0, 0, 1], seconds=0.1)
    before = [env.model_data(row)[1].qpos.copy() for row in range(3)]
    session.ask("push", body=name, force=[-20, 0, 0], seconds=0.5)
    session.advance()
    for _ in range(10):
        session.step()
    model, data = env.model_data(2)
    joint = model.body(name).jntadr[0]
    assert data.qpos[model.jnt_qposadr[joint]] > 0.01
    fronts = [j for j in range(model.njnt) if model.joint(j).name.startswith("cabinet/") and j != joint]
    assert np.abs(data.qpos[model.jnt_qposadr[fronts]]).max() < 5e-3
    assert np.abs(env.model_data(0)[1].qpos - before[0])[9:].max() < 1e-3
    assert [note["body"] for note in session.status["interventions"]] == [name]


def test_a_push_that_was_asked_for_before_another_row_came_into_view_is_left_out():
    env = manikin.make(CABINET, 2, autoreset="disabled")
    session = Session(env, HoldPolicy, playing=False, seed=0)  # one drawer, two drawers
    session.ask("row", value=1)
    session.advance()
    second = "cabinet/drawer1"
    assert second in session.bodies
    session.ask("row", value=0)
    session.ask("push", body=second, force=[1, 0, 0], seconds=0.1)
    session.advance()
    assert session.row == 0 and session.status["interventions"] == []


def test_rows_follow_their_own_models_in_pictures_and_segmentation():
    env = manikin.make(YCB, 2, autoreset="disabled")
    env.reset(seed=0)
    cabinets = manikin.make(CABINET, 2, autoreset="disabled")
    cabinets.reset(seed=[0, 3])
    models = [cabinets.model_data(row)[0] for row in range(2)]
    assert [m.njnt for m in models] == [9 + len(CABINETS[NAMES[k]].build().joints) for k in (0, 3)]
    assert all(isinstance(m, mujoco.MjModel) for m in models)
    tables = [cabinets.segmentation_of(row) for row in range(2)]
    assert tables[0] != tables[1] and env.segmentation_of(0) == env.segmentation_of(1)
    assert cabinets.image(1, width=32, height=24).shape == (24, 32, 3)
    tool = pose_mul(cabinets.tcp_poses[:, 0], torch.tensor([[0.0, 0, 0, 1, 0, 0, 0]]).expand(2, 7))
    assert torch.allclose(tool, cabinets.tcp_poses[:, 0], atol=1e-6)
