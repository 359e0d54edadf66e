"""The lamps of SIMPLER's scenes: how bright surfaces are shown, against the original's formula in linear light."""

from __future__ import annotations

import math

import numpy as np
import pytest

import manikin
from manikin.errors import UnknownNameError
from manikin.eval.protocol import load_protocol, task_of
from manikin.eval.variants import vary
from manikin.render import make_renderer
from manikin.tasks.simpler.lamps import CABINET_LIGHTS, TABLE_LIGHTS, as_shown


@pytest.fixture(autouse=True)
def stand_ins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MANIKIN_DATA", raising=False)


def shown(ambient: float, *lamps: tuple[float, tuple[float, float, float]]) -> float:
    """What a surface that faces up is multiplied with: the power 1 / 2.2 of ambient light plus c cos / pi."""
    light = ambient
    for strength, (x, y, z) in lamps:
        light += strength * max(0.0, -z / math.sqrt(x * x + y * y + z * z)) / math.pi
    return light ** (1 / 2.2)


UP = (0.0, 0.0, -1.0)
LAMPS = {  # the figures of SIMPLER's released code
    ("GooglePickCokeCan-v1", "default"): shown(0.3, (2.2, UP), (0.7, (-1, -0.5, -1)), (0.7, (1, 1, -1))),
    ("GooglePickCokeCan-v1", "brighter"): shown(0.3, (3.6, UP), (1.3, (-1, -0.5, -1)), (1.3, (1, 1, -1))),
    ("GoogleMoveNear-v1", "darker"): shown(0.3, (0.8, (1, 1, -1)), (0.8, UP)),
    ("WidowXStackCube-v2", "default"): shown(0.3, (2.2, UP), (0.7, (-1, -0.5, -1)), (0.7, (1, 1, -1))),
    ("WidowXEggplantInBasket-v2", "default"): shown(0.3, (0.3, UP)),
}


@pytest.mark.parametrize(("task", "light"), LAMPS)
def test_a_table_is_as_bright_as_in_linear_light(task: str, light: str) -> None:
    env = manikin.make(task, config={"light": light} if light != "default" else {})
    env.reset(seed=0)
    model, data = env.model_data(0)
    renderer = make_renderer("rays")
    picture = renderer.images(model, data, env.camera("human_camera").resized(64, 64))["rgb"].reshape(-1, 3)
    colour = model.geom_rgba[model.body("table").geomadr[0], :3] * 255 * LAMPS[task, light]
    renderer.close()
    env.close()
    near = (np.abs(picture.astype(float) - np.minimum(colour, 255)).max(1) <= 2).mean()
    assert near > 0.15, f"no table of {colour.round()}"  # the part of the picture that is the table


def test_the_cabinet_has_the_colours_that_its_file_has_in_linear_light() -> None:
    """Reference: mk_station_recolor's wood, (0.325, 0.187, 0.1166), which the power 1 / 2.2 makes a light brown."""
    env = manikin.make("GoogleOpenDrawer-v1")
    model = env.scene.model
    wood = [round(x ** (1 / 2.2), 3) for x in (0.325, 0.187, 0.1166)]
    found = {tuple(round(float(x), 3) for x in rgba[:3]) for rgba in model.geom_rgba}
    assert tuple(wood) in found and wood == [0.6, 0.467, 0.377]
    assert model.nlight == 1 and model.vis.headlight.diffuse.tolist() == [0, 0, 0]
    with pytest.raises(UnknownNameError, match=r"light of GoogleOpenDrawer-v1.*aggregated"):
        manikin.make("GoogleOpenDrawer-v1", config={"light": "dim"})
    env.close()


def test_a_front_that_faces_the_robot_is_shaded_by_the_lamps_directions() -> None:
    """Ratios of lamps stay, and so do directions: a lamp of twice the strength adds twice as much."""
    for lights in (*TABLE_LIGHTS.values(), *CABINET_LIGHTS.values()):
        _, strengths = lights.shown
        original = np.array([strength for _, strength in lights.lamps])
        assert np.allclose(np.array(strengths) / strengths[0], original / original[0])
    made = CABINET_LIGHTS["aggregated"]
    env = manikin.make("GoogleOpenDrawer-v1", config={"light": "aggregated", "poses": "even"})
    model = env.scene.model
    assert model.nlight == 3 and model.light_castshadow.tolist() == [1, 0, 0]
    towards = np.array([towards for towards, _ in made.lamps])
    assert np.allclose(model.light_dir, towards / np.linalg.norm(towards, axis=1)[:, None], atol=1e-6)
    env.close()


def test_variant_aggregation_has_the_papers_lamps() -> None:
    varied = vary(load_protocol("simpler_google_aggregated"), "simpler")
    for word in varied.tasks:
        light = varied.config[word].get("light", "default")
        at_cabinet = task_of(word) not in ("GooglePickCokeCan-v1", "GoogleMoveNear-v1")
        plain = "aggregated" if at_cabinet else "default"
        assert light == next((name for name in ("brighter", "darker") if word.endswith(name)), plain)
    other = vary(load_protocol("pick-cube"), "simpler")
    assert all("light" not in config for config in other.config.values())


def test_colours_of_linear_light_keep_their_opacity() -> None:
    import mujoco

    spec = mujoco.MjSpec()
    spec.worldbody.add_geom(size=(0.1, 0, 0), rgba=(0.25, 0.5, 1.0, 0.4))
    rgba = as_shown(spec).geoms[0].rgba
    assert np.allclose(rgba, [0.25 ** (1 / 2.2), 0.5 ** (1 / 2.2), 1.0, 0.4])
