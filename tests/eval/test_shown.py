"""Protocols that show pictures: run, hashed by all that decides what is seen, and refused in words where it is open."""

from __future__ import annotations

import dataclasses
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import manikin
from manikin.assets.python_file import run_file
from manikin.cli import main
from manikin.env.observe import Vision
from manikin.errors import AssetError, ConfigError, UnknownNameError
from manikin.eval.evaluation import evaluate
from manikin.eval.protocol import Protocol, load_protocol
from manikin.eval.report import read_report
from manikin.policy.random_policy import RandomPolicy
from manikin.render import write_png
from manikin.sense.imu import Imu
from manikin.sense.pixels import Jitter, Photograph, Resize
from manikin.sense.stack import Stack
from manikin.spec.camera import CameraSpec
from manikin.spec.looks import LightLook, Looks
from manikin.spec.vary import Uniform

SHOWN: dict[str, Any] = {
    "observe": "rgb+state",
    "cameras": ("base_camera", "hand_camera"),
    "size": (24, 16),
    "renderer": "rays",
    "stages": (Jitter(brightness=0.2),),
}


def protocol(**changes: Any) -> Protocol:
    base = {"name": "seen", "tasks": ("PickCube-v2",), "seeds": (5, 6, 7), "horizon": 3, "control": "joint_delta_pos"}
    return Protocol(**{**base, **SHOWN, **changes})


class Watcher(RandomPolicy):
    """Acts at random, and remembers what it saw at the start of each episode."""

    seen: list[torch.Tensor] = []

    def act(self, observation: Any, instruction: Any) -> torch.Tensor:
        self.seen.append(observation["cameras"]["base_camera"]["rgb"].clone())
        return super().act(observation, instruction)


def test_a_policy_is_shown_what_the_protocol_says_in_any_batch() -> None:
    first = []
    for n in (3, 1):
        Watcher.seen = []
        evaluation = evaluate(protocol(), Watcher, num_envs=n)
        assert evaluation.healthy and len(evaluation.tasks[0].results) == 3
        first.append(Watcher.seen[0] if n == 3 else torch.cat(Watcher.seen[::3]))
    assert torch.equal(*first) and first[0].shape == (3, 16, 24, 3)
    vision = Vision(cameras=["base_camera"], size=(24, 16), renderer="rays", stages=[Jitter(brightness=0.2)])
    env = manikin.make("PickCube-v2", 3, observe="rgb", vision=vision)
    assert torch.equal(env.reset(seed=[5, 6, 7])[0]["cameras"]["base_camera"]["rgb"], first[0])
    made_of = evaluation.tasks[0].fingerprint
    assert made_of["vision"]["renderer"] == "rays" and made_of["vision"]["stages"] == [
        {"kind": "Jitter", "brightness": 0.2}
    ]


def test_everything_that_decides_what_is_seen_is_hashed(tmp_path: Path) -> None:
    write_png(tmp_path / "a.png", np.full((8, 8, 3), 90, np.uint8))
    write_png(tmp_path / "b.png", np.full((8, 8, 3), 91, np.uint8))
    (tmp_path / "moved.png").write_bytes((tmp_path / "a.png").read_bytes())
    base = protocol(stages=(Photograph(str(tmp_path / "a.png")),))
    changes: list[dict[str, Any]] = [
        {"observe": "rgb"},
        {"observe": ["rgb+state", Stack(2)]},
        {"observe": ["rgb+state", Imu()]},
        {"cameras": ("base_camera",)},
        {"size": (32, 16)},
        {"size": None},
        {"renderer": "gl"},
        {"stages": (*base.stages, Resize(8, 8))},
        {"stages": (Photograph(str(tmp_path / "b.png")),)},
        {"stages": (Photograph(str(tmp_path / "a.png"), keep=("robot",)),)},
        {"looks": Looks(lights={"0": LightLook(intensity=Uniform(0.5, 1.0))})},
    ]
    hashes = [dataclasses.replace(base, **change).hash for change in changes]
    assert len({base.hash, *hashes}) == len(changes) + 1
    moved = dataclasses.replace(base, stages=(Photograph(str(tmp_path / "moved.png")),), name="other")
    assert moved.hash == base.hash  # where a file lies does not count
    for one in (base, *(dataclasses.replace(base, **change) for change in changes)):
        again = Protocol.from_toml(one.to_toml())
        assert again.hash == one.hash and again.make_options("PickCube-v2") == one.make_options("PickCube-v2")
    (tmp_path / "a.png").unlink()
    with pytest.raises(AssetError, match="no such file"):
        _ = base.hash


TOP = CameraSpec(name="top", pos=(0.3, 0.0, 0.8), target=(0.0, 0.0, 0.05), fovy=1.0, width=20, height=12)


def test_a_protocol_places_cameras_of_its_own(tmp_path: Path) -> None:
    """The same pictures as an environment with that camera; every number of it is hashed, its spelling is not."""
    text = """
        format = 1
        name = "from above"
        tasks = ["PickCube-v2"]
        horizon = 2
        observe = "rgb"
        renderer = "rays"
        cameras = ["hand_camera", {name = "top", pos = [0.3, 0, 0.8], target = [0, 0, 0.05], fovy = 1, LENS}]
        [episodes]
        seeds = [5, 6]
    """
    (tmp_path / "above.toml").write_text(
        textwrap.dedent(text).replace("LENS", "width = 20, height = 12"), encoding="utf-8"
    )
    read = load_protocol(tmp_path / "above.toml")
    assert read.cameras == ("hand_camera", TOP)
    env = manikin.make("PickCube-v2", 2, options=read.make_options("PickCube-v2"))
    cameras = env.reset(seed=[5, 6])[0]["cameras"]
    like = Vision(cameras=["hand_camera", TOP], renderer="rays")
    same = manikin.make("PickCube-v2", 2, observe="rgb", vision=like).reset(seed=[5, 6])[0]["cameras"]
    assert cameras["top"]["rgb"].shape == (2, 12, 20, 3) and {*cameras} == {"hand_camera", "top"}
    assert all(torch.equal(cameras[name]["rgb"], same[name]["rgb"]) for name in cameras)
    assert evaluate(read, RandomPolicy, num_envs=2).healthy
    again = Protocol.from_toml(read.to_toml())
    assert again == read and again.hash == read.hash
    quat = (0.0, 1.0, 0.0, 0.0)
    changes: list[dict[str, Any]] = [
        {"pos": (0.31, 0.0, 0.8)},
        {"target": (0.0, 0.0, 0.06)},
        {"target": None, "quat": quat},
        {"on": "robot"},
        {"fovy": 1.1},
        {"intrinsics": (20.0, 20.0, 10.0, 6.0)},
        {"width": 21},
        {"height": 13},
        {"name": "above"},
    ]
    others = [dataclasses.replace(read, cameras=("hand_camera", dataclasses.replace(TOP, **one))) for one in changes]
    assert len({read.hash, *(one.hash for one in others)}) == len(changes) + 1
    assert {name for change in changes for name in change} == {one.name for one in dataclasses.fields(CameraSpec)}


@pytest.mark.parametrize(
    ("cameras", "message"),
    [
        ([{"name": "top", "pos": [0, 0, 1]}], "camera 'top': give either target, which it looks at, or quat"),
        ([{"name": "top", "position": [0, 0, 1]}], "a camera's table has no 'position'; it has name, pos, target"),
        ([{"pos": [0, 0, 1], "target": [0, 0, 0]}], "needs a name"),
        ([{"name": "top", "pos": "up", "target": [0, 0, 0]}], "pos"),
        ([{"name": "top", "pos": [0, 0], "target": [0, 0, 0]}], "pos"),
        ([3], "a list of names and tables"),
    ],
)
def test_tables_that_are_no_cameras_are_refused(cameras: list[Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        protocol(cameras=cameras)


def test_without_pictures_a_protocol_has_the_hash_that_it_had() -> None:
    plain = Protocol(name="x", tasks=("PickCube-v2",), seeds=(1, 2), observe="rgb", cameras=("a",))
    assert plain.hash == "2d895f2d70ba338030e21fa2b10f540ccf35834f196357a03b466ab80e698ff3"
    assert "renderer" not in plain.to_toml() and "stages" not in plain.to_toml()


def test_code_of_a_stage_of_ones_own_is_hashed_and_its_place_is_not(tmp_path: Path, monkeypatch: Any) -> None:
    text = """
        from dataclasses import dataclass
        from manikin.sense.stages import Stage

        @dataclass(frozen=True, kw_only=True)
        class Darker(Stage):
            by: int = 2

            def apply(self, picture, shot):
                return {**picture, "rgb": picture["rgb"] // self.by}
    """
    monkeypatch.chdir(tmp_path)
    hashes = []
    for folder, code in (("a", text), ("b", text), ("c", text.replace("//", "%"))):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "mine.py").write_text(textwrap.dedent(code))
        hashes.append(protocol(stages=({"kind": f"{folder}/mine.py:Darker", "by": 3},)).hash)
    assert hashes[0] == hashes[1] != hashes[2]
    mine = run_file("a/mine.py")
    assert protocol(stages=(mine.Darker(by=3),)).hash == hashes[0]


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"observe": "state"}, ConfigError, "cameras and size and stages need pictures, but observe = 'state'"),
        ({"renderer": None}, ConfigError, "write renderer = one of gl, warp, rays, filament"),
        ({"renderer": "auto"}, UnknownNameError, "renderer of a protocol"),
        ({"renderer": "opengl"}, UnknownNameError, "renderer of a protocol"),
        ({"observe": "rgbb"}, UnknownNameError, "Did you mean 'rgb'"),
        ({"stages": ({"kind": "Jiter"},)}, UnknownNameError, "Did you mean 'Jitter'"),
        ({"stages": ({"kind": "Jitter", "bright": 1},)}, ConfigError, "does not describe a Jitter"),
        ({"size": (0, 16)}, ConfigError, "size must be width and height"),
        ({"stages": "Jitter"}, ConfigError, "stages must be a list of tables"),
        ({"looks": {"lihgts": {}}}, ConfigError, "does not describe a Looks"),
        ({"cameras": ("base_cam",)}, UnknownNameError, "Did you mean 'base_camera'"),
    ],
)
def test_what_cannot_be_shown_is_refused_before_anything_runs(changes: dict, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        evaluate(protocol(**changes), RandomPolicy)


def test_the_command_evaluates_a_file_with_pictures(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "seen.toml").write_text(
        textwrap.dedent("""
        format = 1
        name = "seen"
        tasks = ["PickCube-v2"]
        observe = ["rgb", { kind = "Stack", frames = 2 }]
        cameras = ["base_camera"]
        size = [24, 16]
        renderer = "rays"
        stages = [{ kind = "Jitter", brightness = 0.2 }, { kind = "Delay", steps = 1 }]
        horizon = 2

        [looks.lights.0]
        intensity = { Uniform = { low = 0.5, high = 1.0 } }

        [episodes]
        first_seed = 1
        count = 2
        """)
    )
    assert main(["eval", "seen.toml", "--policy", "random", "--pictures", "0", "--out", "out"]) == 0
    report = read_report(tmp_path / "out" / "report.json")
    assert Protocol.from_toml(report["protocol"]["toml"]).hash == report["protocol"]["hash"]
