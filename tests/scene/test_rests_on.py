"""Compounds that rest on simpler shapes: who touches whom, and that they lie as the compounds themselves would."""

from __future__ import annotations

import itertools
from typing import Any

import mujoco
import pytest
import torch

import manikin
from manikin.errors import SceneError
from manikin.props.nuts import nut_rests, round_nut, square_nut
from manikin.props.pot import pot, pot_rests
from manikin.scene.builder import SceneBuilder
from manikin.spec.physics import Physics
from manikin.spec.prop import Shape
from manikin.spec.vary import Uniform

BALL, PLATE = Shape(type="sphere", size=(0.05,)), Shape(type="box", size=(1.0, 1.0, 0.1), pos=(0, 0, -0.1))


def scene(**options: Any) -> mujoco.MjModel:
    """A surface, a wall, an ordinary part and two compounds, all in one place."""
    b = SceneBuilder([], Physics())
    b.fixture("surface", PLATE, surface=True)
    b.fixture("wall", PLATE)
    b.part("ball", [BALL])
    b.part("one", [BALL], rests_on=[BALL], **options)
    b.part("two", [BALL], rests_on=[BALL])
    return b.compile().model


def touching(model: mujoco.MjModel) -> set[tuple[str, str]]:
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    return {tuple(sorted(model.geom(g).name for g in pair)) for pair in data.contact.geom}


def test_compounds_touch_surfaces_with_what_they_rest_on_and_all_else_with_themselves() -> None:
    rest = {("one/rest0", "surface"), ("surface", "two/rest0")}
    solid = {"ball/0", "one/0", "two/0"}
    expected = rest | {tuple(sorted(pair)) for pair in itertools.combinations(solid, 2)}
    expected |= {tuple(sorted((name, "wall"))) for name in solid} | {("ball/0", "surface")}
    assert touching(scene()) == expected


def test_what_they_rest_on_weighs_nothing_and_is_not_seen() -> None:
    model = scene(density=500.0)
    assert model.body("one").mass[0] == pytest.approx(500 * 4 / 3 * torch.pi * 0.05**3)
    assert model.geom("one/rest0").group[0] != model.geom("one/0").group[0]


@pytest.mark.parametrize("options", [{"friction": Uniform(0.1, 0.2)}, {"resizable": True}, {"collide": False}])
def test_what_cannot_be_kept_equal_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(SceneError, match="one: a part with rests_on"):
        scene(**options)


def corners(shapes: list[Shape]) -> torch.Tensor:
    """(k, 3) corners of boxes."""
    signs = torch.tensor(list(itertools.product((-1.0, 1.0), repeat=3)))
    out = []
    for one in shapes:
        quat = torch.tensor(one.quat, dtype=torch.float32)
        turned = manikin.math.quat_rotate(quat.expand(8, 4), signs * torch.tensor(one.size))
        out.append(turned + torch.tensor(one.pos, dtype=torch.float32))
    return torch.cat(out)


@pytest.mark.parametrize(
    ("shapes", "rests"),
    [(square_nut(), nut_rests("square")), (round_nut(), nut_rests("round")), (pot(), pot_rests())],
    ids=["square nut", "round nut", "pot"],
)
def test_hulls_are_those_of_the_compounds(shapes: list[Shape], rests: list[Shape]) -> None:
    """They reach equally far in every direction, to 0.3 mm: the support functions of their hulls."""
    rng = torch.Generator().manual_seed(0)
    ways = torch.nn.functional.normalize(torch.randn(2000, 3, generator=rng), dim=1)
    far = [(corners(each) @ ways.T).amax(0) for each in (shapes, rests)]
    assert (far[0] - far[1]).abs().max() < 3e-4  # [m]


@pytest.mark.parametrize(
    ("task", "former", "contacts"), [("NutAssembly-v4", "NutAssembly-v3", 20), ("TwoArmLift-v3", "TwoArmLift-v2", 4)]
)
def test_things_lie_as_before_on_fewer_contacts(task: str, former: str, contacts: int) -> None:
    poses = []
    for name in (task, former):
        env = manikin.make(name, 4, autoreset="disabled", terminate=False, reward="none")
        env.reset(seed=3)
        for _ in range(20):
            env.step(torch.zeros(4, env.single_action_space.shape[0]))
        things = [env.thing(part) for part in (("square", "round") if "Nut" in task else ("pot",))]
        poses.append(torch.stack([thing.pose for thing in things]))
        if name == task:
            assert env.world.data(0)[1].ncon == contacts
        env.close()
    assert (poses[0] - poses[1]).abs().max() < 5e-4  # [m]
