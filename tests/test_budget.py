"""Room for contacts and constraints on Warp devices: counted on the CPU, kept on disk, flagged where too small."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import manikin
from manikin.env import budget as probing
from manikin.env.observe import Vision
from manikin.env.registry import task_class
from manikin.errors import ConfigError, DivergedError
from manikin.eval.evaluation import Evaluation, TaskResult
from manikin.eval.runner import run_episodes
from manikin.sim.cpu import CpuWorld
from manikin.sim.health import Health
from manikin.spec.camera import CameraSpec
from manikin.spec.looks import ExtraLights, Looks, Surface
from test_world import build

pytest.importorskip("mujoco_warp", reason="MuJoCo Warp is not installed: pip install 'manikin[gpu]'")
pytestmark = pytest.mark.xdist_group("warp")  # one worker compiles the kernels

from manikin.sim.budget import Meter, _room  # noqa: E402
from manikin.sim.warp import WarpWorld  # noqa: E402

ROBOT = {"robot": "panda", "control": "joint_delta_pos", "control_hz": 20.0, "physics_hz": 100.0}


def lying(kind, n=3):
    """Row 0 has nothing on the ground but the robot, row 1 one cube, row 2 all three things."""
    b, arm, *parts = build()
    world = kind(b.compile(), n)
    b.bind(world)
    arm.set_qpos(arm.keyframe())
    for k, part in enumerate(parts[:3]):
        z = np.full(n, 2.0 + k)
        z[1 + min(k, 1) :] = 0.029 if k == 1 else 0.049 if k == 2 else 0.019
        part.set_pose(np.stack([np.full(n, 0.05), np.full(n, 0.15 * k - 0.15), z], 1).astype(np.float32))
    world.forward()
    return world


def test_the_cpu_counts_what_warp_needs():
    cpu, warp = lying(CpuWorld), lying(WarpWorld)
    meter = Meter(cpu)
    meter.look()
    of = warp._d.contact.worldid.numpy()[: int(warp._d.nacon.numpy()[0])]
    in_rows = np.bincount(of, minlength=3)
    assert in_rows[2] > in_rows[1] > in_rows[0]
    assert np.array_equal(in_rows, cpu.read("ncon").numpy().ravel())
    assert meter.contacts == in_rows.max() and meter.constraints == int(warp._d.nefc.numpy().max())
    pairs = int(warp._d.ncollision.numpy()[0])  # of all rows
    assert pairs <= meter._near().sum() + 3 * meter._always <= 3 * pairs


def test_room_is_more_than_was_seen_in_few_sizes():
    sizes = [_room(seen) for seen in range(1000)]
    assert all(size >= 1.5 * seen + 8 for seen, size in enumerate(sizes))
    assert len(set(sizes)) <= 14 and sizes == sorted(sizes)


def test_a_budget_is_found_once_and_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("MANIKIN_CACHE", str(tmp_path))
    calls = []

    def counted(task, **options):
        calls.append(options)
        return manikin.Budget(nconmax=24, njmax=64)

    monkeypatch.setattr(probing, "probe", counted)
    kind = task_class("PickCube-v1")
    scene = manikin.make("PickCube-v1").scene
    found = [probing.task_budget(kind(), scene, **ROBOT) for _ in range(2)]
    assert found == [manikin.Budget(nconmax=24, njmax=64)] * 2 and calls == [ROBOT]
    vision = Vision(cameras=[CameraSpec(name="more", pos=(1, 0, 1), target=(0, 0, 0))], size=(32, 24))
    surfaces = {"cube": Surface(textures=("noise",))}
    looking = manikin.make(
        "PickCube-v1", vision=vision, looks=Looks(extra_lights=ExtraLights(), surfaces=surfaces)
    ).scene
    assert looking.hash != scene.hash and looking.model.nlight > scene.model.nlight  # which physics does not see
    assert probing.task_budget(kind(), looking, **ROBOT) == found[0] and len(calls) == 1
    (path,) = (tmp_path / "budgets").iterdir()
    path.write_text(path.read_text()[:20])  # damaged
    assert probing.task_budget(kind(), scene, **ROBOT) == found[0] and len(calls) == 2
    probing.task_budget(kind({"goal_height": 0.2}), scene, **ROBOT)
    probing.task_budget(kind(), scene, **{**ROBOT, "control": "ee_delta_pose"})
    assert len(calls) == 4 and len(list((tmp_path / "budgets").iterdir())) == 3
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MANIKIN_CACHE", str(tmp_path / "file"))  # cannot be written: no error
    assert probing.task_budget(kind(), scene, **ROBOT) == found[0]


def test_playing_finds_what_the_expert_needs(monkeypatch):
    """PickCube's expert makes 2 x 4 contacts of the cube: more than lying about does."""
    monkeypatch.setattr(probing, "_STEPS", 30)
    env = manikin.make("PickCube-v1", num_envs=1)
    env.reset(seed=0)
    lying = Meter(env.world)
    lying.look()
    found = probing.probe(task_class("PickCube-v1")(), **ROBOT)
    assert lying.contacts == 4 and found.nconmax > _room(lying.contacts)
    assert found.njmax < 256 and found.nccdmax <= found.nconmax


@pytest.mark.parametrize(
    ("room", "rows", "word"),
    [({"nconmax": 24, "njmax": 12}, [False, True, False], "njmax"), ({"nconmax": 1}, [True] * 3, "nconmax")],
)
def test_an_environment_takes_the_room_it_is_given_and_flags_what_does_not_fit(room, rows, word):
    """The cube lies in row 1 alone, with 4 contacts of 3 constraint rows; one is for the fingers. Constraint rows are
    each row's own, contacts are of all rows together."""
    budget = manikin.Budget(**room)
    env = manikin.make("PickCube-v1", num_envs=3, device="warp:cpu", budget=budget)
    assert env.budget is budget
    env.reset(seed=0)
    pos = env.h.cube.pos.clone()
    pos[[0, 2], 2] = 1.0
    env.h.cube.set_pose(pos)
    env.world.forward()
    info = env.step(np.zeros((3, 8), np.float32))[4]
    assert (info["health"] & int(Health.OVERFLOW)).bool().tolist() == rows
    assert f"{word} to at least" in env.world.budget_advice()
    env.close()


def together(n):
    """A can stands in a cube in rows 0 and 2, a pair of convex shapes; in row 1 they are apart."""
    b, arm, cube, ball, can, _ = build()
    world = WarpWorld(b.compile(), n)
    b.bind(world)
    arm.set_qpos(arm.keyframe())
    cube.set_pose((0.05, 0.0, 0.5))
    ball.set_pose((0.05, 0.15, 0.5))
    x = np.full(n, 0.095)
    x[1] = 0.3
    can.set_pose(np.stack([x, 0 * x, 0 * x + 0.5], 1).astype(np.float32))
    world.forward()
    return world


def contacts(world):
    """(rows,) how many each row has."""
    kept = world._d.contact.worldid.numpy()[: min(int(world._d.nacon.numpy()[0]), world._d.naconmax)]
    return np.bincount(kept, minlength=world.num_worlds).tolist()


def test_a_row_may_need_more_than_its_share_and_only_what_is_lost_is_flagged():
    """Contacts share their room, so that one row may fill more than its part; convex pairs too, and there the rows are
    flagged in which some were lost. (Constraint rows, each row's own: the test above.)"""
    roomy = lying(WarpWorld)
    needs, pairs = contacts(roomy), int(roomy._d.ncollision.numpy()[0])
    part = -(-max(sum(needs), pairs) // 3)
    assert max(needs) > part
    pooled = lying(lambda scene, n: WarpWorld(scene, n, nconmax=part))
    assert contacts(pooled) == needs
    pooled.step(1)
    assert not pooled.health().any()
    whole, tight = together(3), together(3)
    assert contacts(whole)[0] == contacts(whole)[2] > contacts(whole)[1] == 0
    tight._d.naccdmax = 1  # room for one of the two pairs
    tight.step(1)
    lost = [have < want for have, want in zip(contacts(tight), contacts(whole), strict=True)]
    assert sum(lost) == 1 and (tight.health() & int(Health.OVERFLOW)).astype(bool).tolist() == lost


def test_evaluation_refuses_rows_that_did_not_fit():
    class Still:
        chunk = 1

        def reset(self, rows):
            """Remembers nothing."""

        def act(self, observation, instruction):
            return torch.zeros(2, 1, 8)

    env = manikin.make(
        "PickCube-v1", 2, device="warp:cpu", autoreset="disabled", horizon=2, budget=manikin.Budget(njmax=12)
    )
    run = run_episodes(env, Still(), [0, 1])
    assert [r.seed for r in run.unhealthy] == [0, 1]
    assert all(r.health & int(Health.OVERFLOW) for r in run.results)
    done = TaskResult(
        task="PickCube-v1", results=run.results, fingerprint=env.fingerprint(), held_steps=1, confidence=0.95,
        seconds=1.0, env_steps=run.env_steps,
    )  # fmt: skip
    whole = Evaluation(protocol=None, policy="still", tasks=(done,), interrupted=False, created="")
    assert not whole.healthy
    with pytest.raises(DivergedError, match=r"2 unhealthy episodes: seed 0 \(.*overflow"):
        whole.raise_if_unhealthy()
    env.close()


@pytest.mark.parametrize("wrong", [{"nconmax": 0}, {"njmax": 1.5}, {"njmax": True}, {"nconmax": 8, "nccdmax": 9}])
def test_room_that_cannot_be_is_refused(wrong):
    with pytest.raises(ConfigError, match=r"nconmax|njmax"):
        manikin.Budget(**wrong)
