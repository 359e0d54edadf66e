"""Every renderer can be chosen wherever pictures are made: in Python and by each command."""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
import typing
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch

import manikin
import manikin.cli
from manikin.cli import main
from manikin.cli.common.options import RendererWord
from manikin.env.observe import Vision
from manikin.errors import ConfigError
from manikin.render import write_png
from manikin.render.api import BACKENDS, make_renderer
from manikin.render.renderer import OUTPUTS

TASK = "PickCube-v2"


def usable(word: str) -> None:
    """Skip where a renderer's libraries are not installed."""
    try:
        make_renderer(word).close()
    except Exception as error:
        pytest.skip(f"{word}: {error}")


def test_words_of_the_commands_are_those_of_the_library() -> None:
    assert typing.get_args(RendererWord) == BACKENDS


def test_every_command_that_makes_pictures_takes_all_of_them() -> None:
    found = {}
    for one in pkgutil.walk_packages(manikin.cli.__path__, "manikin.cli."):
        module = importlib.import_module(one.name) if not one.name.endswith("__main__") else None
        for kind in vars(module).values() if module else ():
            if isinstance(kind, type) and dataclasses.is_dataclass(kind) and kind.__module__ == module.__name__:
                hints = typing.get_type_hints(kind) if "renderer" in kind.__annotations__ else {}
                if hints:
                    found[kind.__name__] = hints["renderer"]
    assert {*found} == {
        "AlignOptions",
        "DemoOptions",
        "EvalOptions",
        "InfoOptions",
        "ObjectOptions",
        "PictureOptions",
        "RobotCheckOptions",
        "TeleopOptions",
        "TrainOptions",
        "ViewOptions",
    }
    assert all(hint in (RendererWord, RendererWord | None) for hint in found.values())


@pytest.mark.parametrize("word", [word for word in BACKENDS if word != "auto"])
def test_make_takes_a_renderer_for_observations_and_for_people(word: str) -> None:
    usable(word)
    env = manikin.make(TASK, 2, observe="rgb", renderer=word, vision=Vision(size=(32, 24)))
    seen = env.reset(seed=0)[0]["cameras"]["base_camera"]["rgb"]
    assert env.rig.backend.startswith(word) and seen.float().std() > 10
    picture, renderer = env.image(0, width=32, height=24), make_renderer(word)
    assert picture.std() > 10 and renderer.name.startswith(word)
    assert np.array_equal(picture, renderer.rgb(*env.model_data(0), "human_camera", width=32, height=24))
    assert env.fingerprint()["vision"]["renderer"] == word
    direct = manikin.make(TASK, 2, observe="rgb", vision=Vision(size=(32, 24), renderer=word))
    assert torch.equal(direct.reset(seed=0)[0]["cameras"]["base_camera"]["rgb"], seen)
    env.close(), direct.close()


def test_two_renderers_for_one_environment_are_refused() -> None:
    with pytest.raises(ConfigError, match="renderer='rays', but the vision says 'gl'"):
        manikin.make(TASK, observe="rgb", renderer="rays", vision=Vision(renderer="gl"))
    assert "normals" in OUTPUTS


def test_commands_draw_with_the_renderer_that_is_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from manikin.data.recording.read import EpisodeFile

    usable("warp")
    monkeypatch.chdir(tmp_path)
    run = [
        "collect",
        TASK,
        "--episodes",
        "1",
        "--horizon",
        "3",
        "--observe",
        "rgb",
        "--size",
        "16",
        "12",
        "--policy",
        "random",
    ]
    pictures = {}
    for word in ("rays", "warp"):
        assert main([*run, "--renderer", word, "--out", f"{word}.h5", "--keep", "all"]) == 0
        with EpisodeFile(tmp_path / f"{word}.h5") as file:
            assert file.needed_header().fingerprint["vision"]["renderer"] == word
            pictures[word] = file[0].observations["cameras/base_camera/rgb"].astype(int)
    assert pictures["rays"].shape == pictures["warp"].shape
    assert 0 < np.abs(pictures["rays"] - pictures["warp"]).mean() < 25  # the same scene, lit a little differently
    assert main(["replay", "rays.h5", "--renderer", "warp", "--out", "anew.h5"]) == 0
    with EpisodeFile(tmp_path / "anew.h5") as file:
        anew = file[0].observations["cameras/base_camera/rgb"]
        assert file.needed_header().fingerprint["vision"]["renderer"] == "warp"
    assert np.array_equal(anew, pictures["warp"])


def test_a_page_and_an_import_draw_with_the_renderer_that_is_chosen(tmp_path: Path) -> None:
    from manikin.data.formats.convert import to_robomimic

    assert main(["info", TASK, "--picture", str(tmp_path / "rays.png"), "--renderer", "rays"]) == 0
    env = manikin.make(TASK, renderer="rays")
    env.reset(seed=0)
    same = write_png(tmp_path / "same.png", env.image(width=640, height=480))
    assert (tmp_path / "rays.png").read_bytes() == same.read_bytes()
    run = ["collect", TASK, "--episodes", "1", "--horizon", "3", "--policy", "random", "--keep", "all"]
    assert main([*run, "--out", str(tmp_path / "run.h5")]) == 0
    theirs = to_robomimic(tmp_path / "run.h5", tmp_path / "theirs.hdf5")
    chosen = ["--observe", "rgb", "--size", "16", "12", "--renderer", "rays", "--camera", "hand_camera"]
    assert main(["import", str(theirs), *chosen, "--out", str(tmp_path / "seen.hdf5")]) in (0, 1)
    with h5py.File(tmp_path / "seen.hdf5") as file:
        names: list[str] = []
        file.visit(names.append)
        found = [name for name in names if getattr(file[name], "shape", ())[1:] == (12, 16, 3)]
    assert found and all("hand_camera" in name for name in found)
