"""InsertNISTPeg: sizes, what counts as inserted, that pegs fit their holes and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

import mujoco
import numpy as np
import pytest
import torch

import manikin
from manikin.errors import AssetError, UnknownNameError
from manikin.math import quat_mul
from manikin.props.insertion.nist import HOLE_HEIGHT, PEGS, hole, nist_peg

ALL = len(PEGS)


def _placed(
    which: torch.Tensor, offsets: torch.Tensor, tilt: torch.Tensor | None = None, **config: str | bool
) -> manikin.Env:
    """Rows with these pegs, so far (n, 3) [m] from their place in the hole, in its frame, tilted [rad] about its x."""
    env = manikin.make("InsertNISTPeg-v1", len(which), autoreset="disabled", terminate=False, config=config)
    env.reset(seed=0)
    for part in (env.h.peg, env.h.hole):
        part.set_choice(which)
    env.h.hole.set_pose(env.h.goal.value[:, :3])  # unturned
    tilt = torch.zeros(len(which)) if tilt is None else tilt
    turn = torch.stack([(tilt / 2).cos(), (tilt / 2).sin(), *[torch.zeros(len(which))] * 2], 1)
    env.h.peg.set_pose(env.h.goal.value[:, :3] + offsets, turn)
    env.world.forward()
    return env


def _touches_hole(env: manikin.Env) -> list[bool]:
    out = []
    for row in range(env.num_envs):
        model, data = env.world.data(row)
        both = {model.body("peg").id, model.body("hole").id}
        out.append(any({int(b) for b in model.geom_bodyid[[c.geom1, c.geom2]]} == both for c in data.contact))
    return out


@pytest.fixture(params=[False, True], ids=["primitives", "meshes"])
def meshes(request: pytest.FixtureRequest) -> bool:
    """Where pegs and holes come from; skips without the data that they need."""
    if request.param and not (request.getfixturevalue("data_root") / "nist_factory/mesh").is_dir():
        pytest.skip("MANIKIN_DATA has no nist_factory/mesh")
    return bool(request.param)


@pytest.mark.parametrize("fit", ["loose", "tight"])
@pytest.mark.parametrize("axis", [0, 1])
def test_pegs_have_the_published_clearance(fit: str, axis: int, meshes: bool) -> None:
    """A fifth less than it sideways, a peg is free; a fifth more, it touches."""
    pegs = [nist_peg(name) for name in PEGS]
    gaps = [(one.hole[axis] - one.size(fit)[axis]) / 2 for one in pegs]
    assert all(0.00004 < gap < 0.0003 for gap in gaps)
    for share, touching in ((0.8, False), (1.2, True)):
        offsets = torch.full((ALL, 3), 0.0005)
        offsets[:, :2] = 0.0
        offsets[:, axis] = share * torch.tensor(gaps)
        assert _touches_hole(_placed(torch.arange(ALL), offsets, fit=fit, meshes=meshes)) == [touching] * ALL


@pytest.mark.parametrize("meshes", [True], indirect=True)
def test_holes_of_meshes_are_as_wide_as_the_tables_say_all_around(meshes: bool) -> None:
    """Rays from the axis outward at half the height, every second degree, and down from above beside the rim."""
    env = _placed(torch.arange(ALL), torch.tensor([0.2, 0.0, 0.3]).repeat(ALL, 1), meshes=meshes)
    angles = np.deg2rad(np.arange(0, 360, 2))
    for row, name in enumerate(PEGS):
        model, data = env.world.data(row)
        body, (width, depth) = model.body("hole").id, nist_peg(name).hole
        middle, geom = data.body("hole").xpos.copy(), np.zeros(1, np.int32)
        for angle in angles:
            way = np.array([np.cos(angle), np.sin(angle), 0.0])
            edge = width / 2
            if not nist_peg(name).round:
                edge = min(width / 2 / max(abs(way[0]), 1e-9), depth / 2 / max(abs(way[1]), 1e-9))
            found = mujoco.mj_ray(model, data, middle + np.array([0, 0, HOLE_HEIGHT / 2]), way, None, 1, -1, geom, None)
            assert model.geom_bodyid[geom[0]] == body
            assert -2e-6 < found - edge < (0.004 * edge if nist_peg(name).round else 2e-6), (name, angle)
            for share, top in ((0.98, 0.0), (1.02, HOLE_HEIGHT)):
                above = middle + share * edge * way + np.array([0, 0, 0.02])
                down = mujoco.mj_ray(model, data, above, np.array([0.0, 0, -1]), None, 1, -1, geom, None)
                assert (model.geom_bodyid[geom[0]] == body) == (top > 0) and down == pytest.approx(0.02 - top, abs=1e-5)


@pytest.mark.parametrize("meshes", [True], indirect=True)
def test_pegs_of_meshes_weigh_what_steel_of_their_size_does(meshes: bool) -> None:
    """Less what is cut off their edges: at most 3 %."""
    env = _placed(torch.arange(ALL), torch.zeros(ALL, 3), meshes=meshes)
    for row, name in enumerate(PEGS):
        (width, depth), full = nist_peg(name).loose, np.pi / 4 if nist_peg(name).round else 1.0
        mass = 8000 * full * width * depth * 0.05
        assert 0.97 * mass < env.world.data(row)[0].body("peg").mass[0] < mass, name


def test_a_missing_mesh_is_named_and_so_is_the_way_without_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("MANIKIN_DATA", raising=False)
    with pytest.raises(AssetError, match=r"MANIKIN_DATA.*nist_factory.*meshes=False"):
        manikin.make("InsertNISTPeg-v1", config={"meshes": True})
    monkeypatch.setenv("MANIKIN_DATA", str(tmp_path))
    folder = tmp_path / "nist_factory/mesh"
    folder.mkdir(parents=True)
    with pytest.raises(AssetError, match="factory_round_peg_8mm_loose"):
        manikin.make("InsertNISTPeg-v1", config={"meshes": True, "pegs": ("round_8mm",)})
    (folder / "factory_round_hole_8mm_subdiv_3x.obj").write_text("v 0.01 0.01 0\nv -0.01 -0.01 0\nv 0.01 0 0.01\n")
    with pytest.raises(AssetError, match="no opening"):
        hole("round_8mm", meshes=True)
    (folder / "factory_round_hole_8mm_subdiv_3x.obj").write_text("v one two three\n")
    with pytest.raises(AssetError, match="not a mesh"):
        hole("round_8mm", meshes=True)


def test_sizes_are_those_of_the_published_tables(data_root: Path) -> None:
    """Read with a pattern, since the tables' indentation is all that a parser would add."""
    table = data_root / "nist_factory/factory_yaml/factory_asset_info_insertion.yaml"
    if not table.is_file():
        pytest.skip("MANIKIN_DATA has no nist_factory")
    text = table.read_text()
    found: dict[str, dict[str, float]] = {}
    for line in text.splitlines():
        if match := re.fullmatch(r"    (\w+):", line):
            part = found.setdefault(match[1], {})
        elif match := re.fullmatch(r"        (\w+): ([0-9.]+) *", line):
            part[match[1]] = float(match[2])
    for name in PEGS:
        form, size = name.split("_")
        keys = ("diameter", "diameter") if form == "round" else ("width", "depth")
        for fit in ("tight", "loose"):
            assert nist_peg(name).size(fit) == tuple(found[f"{form}_peg_{size}_{fit}"][key] for key in keys)
        block = found[f"{form}_hole_{size}"]
        assert nist_peg(name).hole == tuple(block[key] for key in keys)
        assert block["height"] == HOLE_HEIGHT
        assert found[f"{form}_peg_{size}_loose"]["length"] == 0.05


def test_a_peg_that_is_led_straight_down_goes_in_over_its_hole_and_nowhere_else(meshes: bool) -> None:
    """Pressed with its weight and 0.1 N for 0.3 s from a tenth of a millimetre above the rim."""
    # the rim gives way by some tenths of a millimetre
    for beside, depth, soft in ((0.0, HOLE_HEIGHT, 2e-4), (0.001, 0.0, 5e-4)):
        env = _placed(torch.arange(ALL), torch.tensor([beside, 0.0, HOLE_HEIGHT + 1e-4]).repeat(ALL, 1), meshes=meshes)
        for row, name in enumerate(PEGS):
            model, data = env.world.data(row)
            first = int(model.body("peg").dofadr[0])
            for _ in range(round(0.3 / model.opt.timestep)):
                data.body("peg").xfrc_applied[2] = -0.1
                mujoco.mj_step(model, data)
                data.qvel[first : first + 6] *= [0, 0, 1, 0, 0, 0]
            assert data.body("peg").xpos[2] == pytest.approx(HOLE_HEIGHT - depth, abs=soft), (name, beside)


def test_place_depth_and_tilt_count_each() -> None:
    """2.5 mm, 1 mm, 0.1 rad."""
    cases = [
        ((0, 0, 0), 0.0, True),
        ((0.0024, 0, 0), 0.0, True),
        ((0.0018, 0.0018, 0), 0.0, False),
        ((0, 0, 0.0009), 0.0, True),
        ((0, 0, 0.0011), 0.0, False),
        ((0, 0, HOLE_HEIGHT), 0.0, False),
        ((0, 0, 0), 0.099, True),
        ((0, 0, 0), -0.101, False),
    ]
    offsets = torch.tensor([case[0] for case in cases], dtype=torch.float32)
    env = _placed(torch.ones(len(cases), dtype=torch.int64), offsets, torch.tensor([case[1] for case in cases]))
    assert env.task.evaluate(env.h)["success"].tolist() == [case[2] for case in cases]


def test_pegs_start_upright_in_stands_away_from_their_holes() -> None:
    env = manikin.make("InsertNISTPeg-v1", 256, observe="state_dict", autoreset="disabled")
    seen, _ = env.reset(seed=0)
    start = seen["privileged"]["peg_pose"].clone()
    goal = seen["privileged"]["goal_pose"]
    assert (start[:, :2] - goal[:, :2]).norm(dim=1).min() > 0.15
    assert env.h.peg.choice.unique().numel() == ALL
    sizes = {tuple(np.round(row, 6)) for row in seen["privileged"]["peg_size"].double().numpy().tolist()}
    assert sizes == {tuple(np.round(nist_peg(name).loose, 6)) for name in PEGS}
    torch.testing.assert_close(env.h.hole.choice, env.h.peg.choice)
    torch.testing.assert_close(env.h.stand.pose, start)
    hold = torch.zeros(256, *env.single_action_space.shape)
    for _ in range(4):
        env.step(hold)
    moved = (env.h.peg.pos - start[:, :3]).norm(dim=1)
    turned = quat_mul(env.h.peg.quat, start[:, 3:] * torch.tensor([1.0, -1, -1, -1]))[:, 1:].norm(dim=1)
    assert moved.max() < 1e-4 and turned.max() < 1e-3


def test_wrong_words_list_the_right_ones() -> None:
    with pytest.raises(UnknownNameError, match=r"fit.*loose, tight|fit.*tight, loose"):
        manikin.make("InsertNISTPeg-v1", config={"fit": "snug"})
    with pytest.raises(UnknownNameError, match="round_8mm"):
        manikin.make("InsertNISTPeg-v1", config={"pegs": ("round_9mm",)})
