"""YCB objects: scans and stand-ins, one API."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

import manikin
from manikin.errors import AssetError, UnknownNameError
from manikin.props.ycb import GRASPABLE, NAMES, ycb
from manikin.scene.candidates import Candidates

# of the set's own table: the three sides of the box around each [m]; a curved one is measured a few mm more or less
SIDES = {
    "003_cracker_box": (0.060, 0.158, 0.210),
    "004_sugar_box": (0.038, 0.089, 0.175),
    "005_tomato_soup_can": (0.066, 0.066, 0.101),
    "006_mustard_bottle": (0.058, 0.095, 0.190),
    "008_pudding_box": (0.035, 0.089, 0.110),
    "009_gelatin_box": (0.028, 0.073, 0.085),
    "010_potted_meat_can": (0.050, 0.082, 0.097),
}


@pytest.mark.parametrize("meshes", [False, True])
def test_objects_have_their_size_and_fit_the_gripper(meshes, request):
    if meshes:
        request.getfixturevalue("data_root")
    bank = Candidates("x", ycb(GRASPABLE, meshes=meshes))
    for name, half, centre in zip(GRASPABLE, bank.extents, bank.centres, strict=True):
        assert np.sort(2 * half) == pytest.approx(np.array(SIDES[name]), abs=0.009), name
        assert np.abs(centre).max() < 1e-6, name  # the origin is the middle
        assert 2 * min(half[:2]) < 0.08, name
    assert (bank.masses > 0.05).all() and (bank.masses < 1.0).all()


def test_without_data_there_are_stand_ins_and_the_fingerprint_says_so(monkeypatch, data_root):
    scans = manikin.make("PickSingleYCB-v2")
    monkeypatch.delenv("MANIKIN_DATA")
    plain = manikin.make("PickSingleYCB-v2")
    for env, word in ((scans, "scan"), (plain, "stand-in")):
        props = env.fingerprint()["props"]["object"]
        assert set(props) == set(GRASPABLE) and all(word in source for source in props.values())
        json.dumps(env.fingerprint())
    assert scans.scene.hash != plain.scene.hash
    assert scans.single_observation_space == plain.single_observation_space
    with pytest.raises(AssetError, match="MANIKIN_DATA"):
        ycb(meshes=True)


def test_wrong_names_list_the_right_ones(monkeypatch, tmp_path):
    with pytest.raises(UnknownNameError, match="003_cracker_box"):
        ycb(("cracker",))
    (tmp_path / "ycb").mkdir()
    monkeypatch.setenv("MANIKIN_DATA", str(tmp_path))
    with pytest.raises(AssetError, match="no objects"):
        ycb(NAMES)


def test_rows_have_different_objects_and_a_seed_has_its_own_in_any_batch():
    env = manikin.make("PickSingleYCB-v2", num_envs=12)
    env.reset(seed=0)
    choice = env.h.thing.choice
    assert len(set(choice.tolist())) >= 4
    few = manikin.make("PickSingleYCB-v2", num_envs=2)
    few.reset(seed=[7, 3])
    assert few.h.thing.choice.tolist() == choice[[7, 3]].tolist()
    height = env.h.thing.extents[:, 2]
    assert torch.allclose(env.h.thing.pos[:, 2], height)


def test_clutter_differs_in_number_stands_apart_and_the_absent_are_out_of_the_way():
    env = manikin.make("PickClutterYCB-v2", num_envs=24, observe="state_dict", autoreset="disabled", terminate=False)
    seen, _ = env.reset(seed=0)
    there = seen["privileged"]["others_present"].bool()
    assert set(there.sum(1).tolist()) == {2, 3, 4, 5}
    places = seen["privileged"]["others_pos"]
    assert (places[~there] == 0).all()
    assert (places[there][:, 2] > 0.01).all()
    parts = [env.h.thing, *env.h.others]
    choice = torch.stack([p.choice for p in parts], 1)
    assert all(len(set(row.tolist())) == 6 for row in choice)
    start = torch.stack([p.pos for p in parts], 1).clone()
    apart = (start[:, :1, :2] - start[:, 1:, :2]).norm(dim=2)[there]
    assert apart.min() > 0.12 + 0.02  # the gripper has room around the wanted one
    for _ in range(20):
        env.step(torch.zeros(24, 8))
    moved = (torch.stack([p.pos for p in parts], 1) - start).norm(dim=2)
    assert moved[:, 0].max() < 1e-3 and moved[:, 1:][there].max() < 1e-3  # nothing was put into another
    assert moved[:, 1:][~there].max() < 1e-4  # the absent float
