"""Layouts are compiled when a row first needs one and dropped when none does: the results are the same ones."""

from __future__ import annotations

import dataclasses
import hashlib

import numpy as np
import pytest
import torch

from manikin.arenas.table import table
from manikin.env.env import Env
from manikin.env.layouts.env import LayoutEnv
from manikin.env.task import Quantity, Task
from manikin.errors import ClosedError, ConfigError, DataError, SceneError
from manikin.spec.budget import Budget

COUNT = 100


class Blocks(Task):
    """Layout k has a block of its own size, and up to three more beside it."""

    id = "Blocks-v1"
    horizon_s = 2.0
    instruction = "push the blocks"
    layouts = tuple(f"blocks_{k}" for k in range(COUNT))
    observations = {"block_pos": Quantity("m", "world"), "heights": Quantity("m", "world", padded_to=(4,))}
    reward_terms = {"up": "height of the first block"}

    @property
    def number(self):
        return self.layouts.index(self.layout)

    def scene(self, b):
        table(b)
        size = 0.015 + 0.0001 * self.number
        handles = {"robot": b.robot(), "push": b.variable("push")}
        for k in range(1 + self.number % 4):
            handles[f"block{k}"] = b.box(f"block{k}", half_size=(size, size, size))
        return handles

    def start(self, h, ep):
        h.robot.set_qpos(h.robot.keyframe())
        spot = ep.rng.uniform("spot", -0.05, 0.05, (2,))
        for k in range(1 + self.number % 4):
            at = torch.cat([spot + torch.tensor([0.0, 0.1 * k]), torch.full((h.n, 1), 0.05)], 1)
            getattr(h, f"block{k}").set_pose(at)

    def advance(self, h):
        h.push.set(h.push.value + 1.0)

    def evaluate(self, h):
        return {"success": h.block0.pos[:, 2] > 1.0}

    def observe(self, h):
        heights = torch.stack([getattr(h, f"block{k}").pos[:, 2] for k in range(1 + self.number % 4)], 1)
        return {"policy": {"block_pos": h.block0.pos}, "privileged": {"heights": heights}}

    def reward(self, h, ev, action):
        return {"up": h.block0.pos[:, 2]}


def compiled(env):
    return sorted(env.compiled)


def make(n=8, **options):
    return LayoutEnv(Blocks, num_envs=n, **{"autoreset": "disabled", "observe": "state_dict", **options})


def moves(n, steps):
    return torch.rand(steps, n, 8, generator=torch.Generator().manual_seed(1)) * 2 - 1


def course(env, seeds, steps=3):
    """Observations, rewards and state hashes of some steps."""
    seen, _ = env.reset(seed=seeds)
    out = [seen["privileged"]["heights"], env.state_hash()]
    for action in moves(len(seeds), steps):
        seen, reward, *_ = env.step(action)
        out += [seen["policy"]["block_pos"], seen["privileged"]["heights"], reward, env.state_hash()]
    return out


def test_eight_rows_of_a_hundred_layouts_compile_eight():
    env = make()
    assert compiled(env) == [0]  # which says what the spaces are
    assert env.single_observation_space["privileged"]["heights"].shape == (4,)
    seen, info = env.reset(seed=0)
    assert compiled(env) == list(range(8)) == info["layout"].tolist()
    widths = [1 + k % 4 for k in range(8)]
    assert seen["privileged"]["heights_mask"].sum(1).tolist() == widths
    assert (seen["privileged"]["heights"] != 0).sum(1).tolist() == widths
    env.reset(seed=[100, 201, 302, 403, 504, 605, 706, 807])  # the same layouts: nothing more
    assert compiled(env) == list(range(8))
    env.close()


def test_dropped_and_compiled_again_layouts_give_the_same_bits():
    seeds = [[0, 1, 2], [3, 4, 5], [1, 0, 2], [7, 101, 1]]
    kept, tight = make(3), make(3, layout_memory=0)
    for each in seeds:
        for a, b in zip(course(kept, each), course(tight, each), strict=True):
            assert torch.equal(a, b)
        assert {*compiled(tight)} == {0, *(seed % COUNT for seed in each)}  # the first one stays
    assert {*compiled(kept)} == {0, 1, 2, 3, 4, 5, 7}
    alone = Env(Blocks(layout="blocks_7"), autoreset="disabled", observe="state_dict")
    assert torch.equal(kept.state_hash([0])[:0], alone.state_hash([])[:0])
    kept.reset(seed=[7, 101, 1])
    alone.reset(seed=[7])
    assert torch.equal(kept.state_hash([0]), alone.state_hash())


def test_the_layout_used_longest_ago_is_dropped_first():
    env = make(1)
    one = make(1).compiled[0]
    env = make(1, layout_memory=int(3.5 * one))
    for seed, there in ((1, [0, 1]), (2, [0, 1, 2]), (1, [0, 1, 2]), (3, [0, 1, 3]), (0, [0, 1, 3])):
        env.reset(seed=[seed])
        assert compiled(env) == there
    many = make(4, layout_memory=int(1.5 * one))
    many.reset(seed=0)
    assert compiled(many) == [0, 1, 2, 3]  # what rows have stays, whatever it takes


def test_a_snapshot_of_a_dropped_layout_continues_bit_for_bit():
    env = make(2, layout_memory=0)
    env.reset(seed=[5, 6])
    for action in moves(2, 2):
        env.step(action)
    saved, hashes = env.save(), env.state_hash()
    further = [env.step(action)[1] for action in moves(2, 2)]
    env.reset(seed=[8, 9])
    assert compiled(env) == [0, 8, 9]
    env.load(saved)
    assert compiled(env) == [0, 5, 6] and torch.equal(env.state_hash(), hashes)
    assert all(torch.equal(env.step(a)[1], reward) for a, reward in zip(moves(2, 2), further, strict=True))


def test_a_layout_that_cannot_be_compiled_moves_no_row(monkeypatch):
    env = make(2)
    env.reset(seed=[1, 2])
    before, there, scene = env.state_hash(), compiled(env), Blocks.scene

    def broken(self, b):
        if self.number == 4:
            raise SceneError("no such block")
        return scene(self, b)

    monkeypatch.setattr(Blocks, "scene", broken)
    with pytest.raises(SceneError, match="no such block"):
        env.reset(seed=[3, 4])
    assert env.layout.tolist() == [1, 2] and torch.equal(env.state_hash(), before) and compiled(env) == there
    env.step(moves(2, 1)[0])


def test_shapes_that_differ_must_be_declared(monkeypatch):
    heights = Quantity("m", "world")
    monkeypatch.setattr(Blocks, "observations", {**Blocks.observations, "heights": heights})
    env = make(2)
    with pytest.raises(ConfigError, match=r"'heights'.*\(1,\) in layout 'blocks_0' and \(3,\).*padded_to=\(3,\)"):
        env.reset(seed=[2, 0])
    env.reset(seed=[4, 0])  # which have one block each
    monkeypatch.setattr(Blocks, "observations", {**Blocks.observations, "heights": Quantity("m", padded_to=(2,))})
    with pytest.raises(ConfigError, match=r"'heights'.*\(3,\) in layout 'blocks_2', which does not fit.*=\(2,\)"):
        make(2).reset(seed=[2, 0])


def test_the_fingerprint_names_every_layout_and_does_not_depend_on_what_is_compiled(monkeypatch):
    monkeypatch.setattr(Blocks, "layouts", Blocks.layouts[:6])
    env = make(2)
    before = env.fingerprint()
    assert compiled(env) == [0]
    env.reset(seed=[3, 4])
    assert env.fingerprint() == before and list(before["layouts"]) == list(Blocks.layouts)
    own = {name: Env(Blocks(layout=name)).scene.hash for name in ("blocks_3", "blocks_5")}
    assert own.items() <= before["layouts"].items() and len({*before["layouts"].values()}) == 6
    joined = hashlib.sha256("".join(before["layouts"].values()).encode()).hexdigest()[:16]
    assert before["model_hash"] == joined
    assert env.state_size == max(Env(Blocks(layout=name)).state_size for name in Blocks.layouts)


def test_parts_gather_and_single_rows():
    env = make(4)
    with pytest.raises(ClosedError, match="rows have no layout yet"):
        env.parts()
    assert env.part(3)[0].task.layout == "blocks_0"
    env.reset(seed=[2, 1, 2, 7])
    assert {part.env.task.layout: part.places.tolist() for part in env.parts()} == {
        "blocks_1": [1],
        "blocks_2": [0, 2],
        "blocks_7": [3],
    }
    assert [part.places.tolist() for part in env.parts([2, 3])] == [[0], [1]]
    doubled = env.gather(lambda one, v: one.h.block0.pos[:, :1] * 0 + v, torch.arange(4.0)[:, None])
    assert doubled[:, 0].tolist() == [0, 1, 2, 3]
    assert env.elapsed.tolist() == [0] * 4 and env.hold().shape == (4, 8)
    env.step(env.hold(), active=np.array([True, False, True, True]))
    assert env.elapsed.tolist() == [1, 0, 1, 1]
    assert env.tcp_poses.shape == (4, 1, 7) and env.arm_command.shape == (4, 7)
    assert env.reward_of(torch.zeros(4, 8)).shape == (4,)
    assert env.env_for(7) is env.part(3)[0]
    for name in ("h", "world", "scene"):
        with pytest.raises(AttributeError, match=rf"each has its own {name}: use env\.part\(row\)\[0\]\.{name}"):
            getattr(env, name)


def test_states_of_another_layout_are_refused_before_any_row_moves():
    env = make(2)
    env.reset(seed=[1, 2])
    a, b = env.physics_states()
    before = env.state_hash()
    with pytest.raises(DataError, match="cannot be put into a scene whose states have"):
        env.put([a, a])
    assert torch.equal(env.state_hash(), before)
    env.step(moves(2, 1)[0])
    env.put([a, b])
    assert torch.equal(env.state_hash(), before) and env.elapsed.tolist() == [2, 2]


def test_options_pass_to_every_layout():
    env = make(2, control="ee_delta_pose", horizon=3, config=None, reward="sparse")
    env.reset(seed=[5, 6])
    for part in env.parts():
        assert (part.env.controller.name, part.env.horizon) == ("ee_delta_pose", 3)
    wanted = dataclasses.replace(env.options, num_envs=1, robot="panda")
    assert dataclasses.replace(env.part(0)[0].options, num_envs=1) == wanted


@pytest.mark.xdist_group("warp")
def test_on_a_device_layouts_are_dropped_and_rows_are_told_apart_there():
    pytest.importorskip("mujoco_warp", reason="MuJoCo Warp is not installed: pip install 'manikin[gpu]'")
    options = {"device": "warp:cpu", "budget": Budget(), "horizon": 2, "autoreset": "same_step"}
    kept, tight = make(2, **options), make(2, layout_memory=0, **options)
    for each in ([0, 1], [1, 3], [1, 0]):
        for a, b in zip(course(kept, each, 3), course(tight, each, 3), strict=True):
            assert torch.equal(a, b)
        assert tight.layout.tolist() == each and compiled(tight) == sorted({0, *each})
    assert compiled(kept) == [0, 1, 3]
