"""Saved rows: which fields a snapshot has, and into which rows it goes."""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np
import pytest
import torch
from mujoco import batch

import manikin
from manikin.compat.mujoco import DERIVED_FIELDS
from manikin.data.collect import initial_state
from manikin.data.recorder import Recorder
from manikin.data.replay.verify import replay
from manikin.errors import ConfigError
from manikin.eval.runner import run_episodes
from manikin.policy.random_policy import RandomPolicy

RICH = """<mujoco><worldbody>
<light mode="trackcom" pos="0 0 3"/><camera mode="trackcom" pos="1 0 1"/><geom type="plane" size="1 1 1"/>
<body name="a" pos="0 0 1" simple="false"><freejoint/><geom type="box" size=".1 .2 .3"/><site name="s"/>
  <body pos="0 0 .3"><joint name="j" axis="0 1 0" stiffness="1" springref=".1"/>
    <geom type="capsule" size=".02 .1" pos=".1 0 0"/><site name="s2" pos=".1 0 0"/><camera/><light/></body></body>
<body name="d" pos="1 0 1" simple="false"><joint name="k" type="slide"/><geom type="sphere" size=".1"/></body>
</worldbody>
<tendon><spatial name="t" springlength="-1"><site site="s"/><site site="s2"/></spatial>
  <fixed name="f"><joint joint="j" coef="1"/><joint joint="k" coef="2"/></fixed></tendon>
<actuator><motor joint="j"/><position tendon="t" kp="3"/></actuator>
<equality><weld body1="a" body2="d"/><joint joint1="j" joint2="k"/></equality></mujoco>"""


def test_constants_that_mujoco_derives_are_all_known():
    """Against MuJoCo: change every input by itself and see which fields it gives rows of their own."""
    model, found = mujoco.MjModel.from_xml_string(RICH), set()
    for field in sorted(batch.MODEL_FIELDS & set(mujoco.MjModel._setconst_inputs)):
        rows = batch.Batch(model, 2, 1, False)
        values = rows.expand(field)
        if values.dtype.kind != "f":
            continue
        values[1] = 1.3 * values[1] + 0.05
        before = {name for name in batch.MODEL_FIELDS if rows.expanded(name) is not None}
        rows.set_const()
        found |= {name for name in batch.MODEL_FIELDS if rows.expanded(name) is not None} - before
    assert {"body_subtreemass", "geom_sameframe", "cam_mat0", "eq_data"} <= found
    geometry = {"bvh_aabb", "geom_aabb", "geom_rbound"}  # written along with what changes them
    assert found - geometry <= set(DERIVED_FIELDS)


def test_fields_of_a_snapshot_depend_on_the_task_alone(monkeypatch):
    """Not on what was drawn, nor on what the environment held before."""
    monkeypatch.setenv("MANIKIN_DATA", "/nowhere")  # stand-ins, which differ in the frames of their geoms
    fields, alone = set(), []
    for seed in range(6):
        env = manikin.make("PickSingleYCB-v2", autoreset="disabled")
        env.reset(seed=[seed])
        alone.append(initial_state(env.save())[0])
        fields.add(tuple(alone[-1]))
        env.close()
    assert len(fields) == 1
    env = manikin.make("PickSingleYCB-v2", 3, autoreset="disabled")
    for seeds in ([0, 1, 2], [5, 4, 3]):
        env.reset(seed=seeds)
    for seed, one in zip([5, 4, 3], initial_state(env.save()), strict=True):
        assert one.keys() == alone[seed].keys()
        assert all(np.array_equal(value, alone[seed][name], equal_nan=True) for name, value in one.items())
    env.close()


def test_each_episode_of_drawn_objects_replays_by_itself(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("MANIKIN_DATA", "/nowhere")
    env = manikin.make("PickSingleYCB-v2", 3, autoreset="disabled", horizon=2)
    recorder = Recorder(env, tmp_path / "run.h5")
    run_episodes(env, RandomPolicy(env), range(6), observers=[recorder])
    recorder.close()
    env.close()
    for number in (1, 3, 5):
        report = replay(tmp_path / "run.h5", numbers=[number])
        assert report.exact, report.summary()


@pytest.mark.parametrize("task", ["PegInsertionSide-v2", "OpenCabinetDrawer-v2"])
def test_a_snapshot_goes_into_rows_in_any_order(task):
    env = manikin.make(task, 4, autoreset="disabled", observe="state_dict")
    env.reset(seed=0)
    env.step(torch.zeros(4, env.single_action_space.shape[0]))
    then = env.physics_states()
    saved = env.save([1, 2])
    env.load(saved, [3, 0])
    now = env.physics_states()
    for row, source in ((3, 1), (0, 2), (1, 1), (2, 2)):
        assert np.array_equal(now[row], then[source]), row
    again = initial_state(env.save([3, 0]))
    for one, other in zip(again, initial_state(saved), strict=True):
        assert all(np.array_equal(one[name], other[name], equal_nan=True) for name in other)
    with pytest.raises(ConfigError, match=r"a row is named twice: \[0, 0\]"):
        env.load(saved, [0, 0])
    with pytest.raises(ConfigError, match="whole numbers or a mask"):
        env.load(saved, [0.5, 1.0])
    with pytest.raises(ConfigError, match="whole numbers or a mask"):
        env.state_hash([[0, 1]])
    with pytest.raises(ConfigError, match=r"within 0\.\.3"):
        env.load(saved, [0, 4])
    env.close()
