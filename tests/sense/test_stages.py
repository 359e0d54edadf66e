"""Stages of pictures: against formulas written a second time in NumPy, per episode, remembered and described."""

from __future__ import annotations

import json
import struct
import sys
import textwrap
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch

import manikin
from manikin.assets.pictures import read_picture
from manikin.assets.python_file import run_file
from manikin.data.recorder import Recorder
from manikin.data.replay.environment import make_env
from manikin.data.replay.verify import replay
from manikin.env.observe import Vision
from manikin.errors import AssetError, ConfigError, DataError, UnknownNameError
from manikin.eval.runner import run_episodes
from manikin.policy.random_policy import RandomPolicy
from manikin.sense.imperfect import Delay, Dropout, Noise
from manikin.sense.pixels import Jitter, Photograph, Resize
from manikin.sense.stack import Stack
from manikin.sense.stages import On, Stage
from manikin.spec.camera import CameraSpec

TASK = "PickCube-v2"
CAMERA = CameraSpec(name="small", pos=(0.4, 0.1, 0.5), target=(0, 0, 0.05), fovy=0.9, width=24, height=16)
DEVICES = ["cpu", "warp:cpu"]


def make(stages=(), n=3, observe="rgb+depth+segmentation", cameras=(CAMERA,), renderer="rays", **options):
    vision = Vision(cameras=cameras, renderer=renderer, stages=stages)
    return manikin.make(TASK, n, observe=observe, vision=vision, **options)


def png(path: Path, image: np.ndarray) -> str:
    """Write (h, w, 3) uint8, without a library."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    h, w, _ = image.shape
    rows = b"".join(b"\0" + row.tobytes() for row in image)
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", w, h, 8, 2, 0, 0, 0))
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
    return str(path)


def noise_image(shape, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (*shape, 3), dtype=np.uint8)


def small(observation):
    return {k: v.numpy() for k, v in observation["cameras"]["small"].items()}


@pytest.mark.parametrize("device", DEVICES)
def test_a_photograph_stands_where_nothing_or_nothing_kept_is_drawn(tmp_path: Path, device: str) -> None:
    image = noise_image((16, 24))
    file = png(tmp_path / "kitchen.png", image)
    renderer = "rays" if device == "cpu" else "auto"
    up = CameraSpec(name="small", pos=(-0.6, 0.0, 0.3), target=(0.2, 0, 0.4), width=24, height=16)  # sees the sky
    plain = small(make(cameras=(up,), device=device, renderer=renderer).reset(seed=0)[0])
    seen = small(make([Photograph(file)], cameras=(up,), device=device, renderer=renderer).reset(seed=0)[0])
    nothing = plain["segmentation"] == 0
    assert 20 < nothing.sum() < nothing.size - 20
    assert np.array_equal(seen["rgb"], np.where(nothing[..., None], image, plain["rgb"]))
    env = make([Photograph(file, keep=("robot", "cube"))], device=device, renderer=renderer)
    seen = small(env.reset(seed=0)[0])
    plain = small(make(device=device, renderer=renderer).reset(seed=0)[0])
    table = env.segmentation_table
    kept = np.isin(plain["segmentation"], [*table.ids(thing="robot"), *table.ids(thing="cube")])
    assert 20 < kept.sum() < kept.size - 20
    assert np.array_equal(seen["rgb"], np.where(kept[..., None], plain["rgb"], image))
    assert np.array_equal(seen["depth"], plain["depth"]) and np.array_equal(seen["segmentation"], plain["segmentation"])
    only_colour = make([Photograph(file)], observe="rgb").reset(seed=0)[0]["cameras"]["small"]
    assert set(only_colour) == {"rgb", "K", "T"}  # segmentation is drawn for the stage, and not shown


def test_of_several_photographs_an_episode_keeps_one_in_any_row(tmp_path: Path) -> None:
    files = [png(tmp_path / f"{k}.png", np.full((4, 6, 3), 40 * k, np.uint8)) for k in range(1, 5)]
    stages = [Photograph(tuple(files), keep=("cube",))]
    many, one = make(stages, 8, autoreset="disabled"), make(stages, 1)
    a, b = many.reset(seed=0)[0], one.reset(seed=5)[0]
    shade = small(a)["rgb"][:, 0, 0, 0]
    assert set(shade) <= {40, 80, 120, 160} and len(set(shade)) > 1
    assert np.array_equal(small(a)["rgb"][5], small(b)["rgb"][0])
    assert np.array_equal(small(many.step(torch.zeros(8, 8))[0])["rgb"][:, 0, 0, 0], shade)


@pytest.mark.parametrize("size, fits", [((48, 32), True), ((25, 17), True), ((64, 43), True), ((36, 32), False)])
def test_a_photograph_of_other_proportions_is_refused(tmp_path: Path, size: tuple[int, int], fits: bool) -> None:
    """The picture has 24 x 16 pixels: three to two, give or take a part of a pixel."""
    file = png(tmp_path / "table.png", noise_image((size[1], size[0])))
    if fits:
        assert small(make([Photograph(file, keep=("cube",))], 1).reset(seed=0)[0])["rgb"].shape == (1, 16, 24, 3)
        return
    with pytest.raises(ConfigError, match=r"table.png has 36 x 32 pixels.*picture of small, 24 x 16.*fit='cover'"):
        make([Photograph(file, keep=("cube",))], 1)


def test_a_photograph_covers_or_is_stretched(tmp_path: Path) -> None:
    wide = np.zeros((16, 48, 3), np.uint8)
    wide[:, :12], wide[:, 36:] = 255, 255  # cut away where proportions are kept
    file = png(tmp_path / "wide.png", wide)
    covered, stretched = (
        small(make([Photograph(file, keep=("cube",), fit=fit)], 1).reset(seed=0)[0])["rgb"][0]
        for fit in ("cover", "stretch")
    )
    assert not covered[:, 0].any() and (stretched[:, 0] == 255).all() and not stretched[:, 12].any()


def jittered(rgb: np.ndarray, brightness: float, contrast: float, saturation: float) -> np.ndarray:
    x = np.clip(rgb.astype(float) * brightness, 0, 255)
    mean = (x @ np.array([0.299, 0.587, 0.114])).mean()
    x = np.clip(mean + contrast * (x - mean), 0, 255)
    grey = (x @ np.array([0.299, 0.587, 0.114]))[..., None]
    return np.clip(grey + saturation * (x - grey), 0, 255)


@pytest.mark.parametrize("per", ["episode", "step"])
def test_jitter_follows_the_formula_with_the_episodes_own_factors(per: str) -> None:
    from manikin.rng import EpisodeRng

    stage = Jitter(brightness=0.3, contrast=0.4, saturation=0.5, per=per)
    env, plain = make([stage], 4), make((), 4)
    env.reset(seed=10), plain.reset(seed=10)
    action = torch.full((4, 8), 0.2)
    for k in range(1, 3):
        seen, truth = small(env.step(action)[0])["rgb"], small(plain.step(action)[0])["rgb"]
        rng = EpisodeRng(torch.arange(10, 14), torch.zeros(4, dtype=torch.int64))
        rng = rng if per == "episode" else rng.derive(torch.full((4,), k))
        drawn = [
            rng.uniform(f"stages/small/0/{name}", 1 - x, 1 + x).tolist()
            for name, x in (("brightness", 0.3), ("contrast", 0.4), ("saturation", 0.5))
        ]
        for row, factors in enumerate(zip(*drawn, strict=True)):
            assert np.abs(seen[row] - jittered(truth[row], *factors)).max() <= 0.51
    assert len({round(f, 3) for f in drawn[0]}) == 4


def test_resize_averages_colours_takes_nearest_labels_and_keeps_the_lens_right() -> None:
    env, plain = make([Resize(12, 8)]), make()
    seen, truth = small(env.reset(seed=0)[0]), small(plain.reset(seed=0)[0])
    assert seen["rgb"].shape == (3, 8, 12, 3) and env.single_observation_space["cameras"]["small"]["rgb"].shape == (
        8,
        12,
        3,
    )
    # halving by an antialiased triangle: weights 1 3 3 1 over four pixels, inside the picture
    weights = np.array([1, 3, 3, 1]) / 8
    x = truth["rgb"].astype(float)
    rows = sum(w * x[:, 1 + k : 1 + k + 12 : 2] for k, w in enumerate(weights))[:, :6]
    both = sum(w * rows[:, :, 1 + k : 1 + k + 20 : 2] for k, w in enumerate(weights))
    assert np.abs(seen["rgb"][:, 1:7, 1:11] - both).max() <= 1.0
    assert np.array_equal(seen["segmentation"], truth["segmentation"][:, 1::2, 1::2])
    assert np.array_equal(seen["depth"], truth["depth"][:, 1::2, 1::2])
    assert np.allclose(seen["K"][0], CAMERA.K(12, 8), atol=1e-4)


@pytest.mark.parametrize("device", DEVICES)
def test_latency_holds_back_the_whole_picture_and_survives_a_snapshot(device: str) -> None:
    renderer = "rays" if device == "cpu" else "auto"
    stages = [Delay(2), On(Noise(6.0), outputs=("rgb",)), Jitter(brightness=0.1, per="step")]
    options = {"cameras": ("hand_camera",), "device": device, "renderer": renderer, "autoreset": "disabled"}
    env = make(stages, 2, **options)
    late, plain = make([Delay(2)], 2, **options), make((), 2, **options)
    for one in (env, late, plain):
        one.reset(seed=0)
    truths, given = [], torch.rand(8, 2, 8, generator=torch.Generator().manual_seed(1)) * 2 - 1
    for k, action in enumerate(given[:4]):
        truths.append(plain.step(action)[0]["cameras"]["hand_camera"])
        seen, noisy = late.step(action)[0]["cameras"]["hand_camera"], env.step(action)[0]
        if k >= 2:
            assert all(torch.equal(seen[name], truths[k - 2][name]) for name in seen)  # T is as late as rgb
    kept = env.save()
    after = [env.step(action)[0]["cameras"]["hand_camera"] for action in given[4:]]
    loaded = env.load(kept)[0]
    assert torch.equal(loaded["cameras"]["hand_camera"]["rgb"], noisy["cameras"]["hand_camera"]["rgb"])
    for action, then in zip(given[4:], after, strict=True):
        now = env.step(action)[0]["cameras"]["hand_camera"]
        assert all(torch.equal(now[name], then[name]) for name in now)
    with pytest.raises(DataError, match="other sensor"):
        env.load(plain.save())


def test_clouds_are_made_of_the_pictures_that_come_out() -> None:
    plain, noisy = (
        make(stages, 1, observe="pointcloud").reset(seed=0)[0]["pointcloud"]["xyz"]
        for stages in ((), [On(Noise(0.02, keep_zero=True), outputs=("depth",))])
    )
    assert not torch.equal(plain, noisy) and (plain - noisy).norm(dim=-1).median() < 0.2


OWN = """
    from dataclasses import dataclass
    from manikin.sense.source import Source
    from manikin.sense.stages import Stage

    @dataclass(frozen=True, kw_only=True)
    class Darker(Stage):
        by: int = 2

        def apply(self, picture, shot):
            return {**picture, "rgb": picture["rgb"] // self.by}

    @dataclass(frozen=True, kw_only=True)
    class Height(Source):
        name: str = "height"

        def observe(self, sight):
            return sight.robots[0].tcp_pos[:, 2:]
"""


def test_another_default_of_ones_own_class_is_another_fingerprint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for folder, default in (("a", 2), ("b", 5)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "mine.py").write_text(textwrap.dedent(OWN).replace("by: int = 2", f"by: int = {default}"))
        monkeypatch.chdir(tmp_path / folder)
        mine = run_file("mine.py")
        found.append(make([mine.Darker()], 1, observe=["rgb", mine.Height()]).fingerprint())
        monkeypatch.delitem(sys.modules, mine.__name__)
    assert [one["vision"]["stages"][0]["by"] for one in found] == [2, 5]


def test_a_stage_and_a_source_of_ones_own_are_described_recorded_and_played_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.py").write_text(textwrap.dedent(OWN))
    monkeypatch.chdir(tmp_path)
    mine = run_file("mine.py")
    observe = ["rgb", mine.Height(), Stack(2, "height")]
    env = make([mine.Darker(by=3)], 2, observe=observe, horizon=3, terminate=False, autoreset="disabled")
    seen = env.reset(seed=0)[0]
    assert list(seen) == ["policy", "cameras", "height"] and seen["height"].shape == (2, 2, 1)
    assert torch.equal(seen["height"][:, 1], env.robot.tcp_pos[:, 2:])
    truth = make((), 2, observe="rgb").reset(seed=0)[0]
    assert np.array_equal(small(seen)["rgb"], small(truth)["rgb"] // 3)
    said = json.loads(json.dumps(env.fingerprint()))
    assert said["vision"]["stages"] == [{"kind": "mine.py:Darker", "cameras": None, "by": 3}]
    assert said["observe"][1] == {"kind": "mine.py:Height", "name": "height"}
    with Recorder(env, tmp_path / "run.h5", observations=True) as recorder:
        run_episodes(env, RandomPolicy(env), [0, 1], observers=[recorder])
    assert replay(tmp_path / "run.h5").exact
    monkeypatch.delitem(sys.modules, mine.__name__)  # as in a process that has not run the file
    with pytest.raises(DataError, match=r"runs mine\.py:Height.*--trust"):
        make_env(said, 1)
    assert make_env(said, 1, trust=True).fingerprint()["vision"] == said["vision"]
    assert make_env(said, 1, observe="state", vision=Vision(size=(8, 8))).observe == "state"


def test_a_photograph_is_said_with_its_hash_and_another_file_is_refused(tmp_path: Path) -> None:
    file = png(tmp_path / "a.png", noise_image((8, 12)))
    vision = Vision(cameras=(CAMERA,), stages=[Photograph(file), Delay(1), Resize(8, 8)])
    said = json.loads(json.dumps(vision.describe()))
    assert Vision.of(said) == vision and len(said["stages"][0]["sha256"][0]) == 64
    assert "stages" not in Vision().describe()  # as recorded fingerprints have it
    assert Vision(size=(8, 8)).over(vision).stages == vision.stages
    png(tmp_path / "a.png", noise_image((8, 12), 1))
    with pytest.raises(DataError, match=r"have changed since they were described: .*a\.png"):
        Vision.of(said)


@pytest.mark.parametrize(
    ("stages", "error", "message"),
    [
        ([3], ConfigError, "a stage must be a Stage or an imperfection, not 3"),
        ("Jitter", ConfigError, "a list"),
        ([Jitter], ConfigError, "not <class"),
        ([Noise(3.0)], ConfigError, r"On\(Noise\(\.\.\.\), outputs"),
        ([Jitter(brightness=0.1, cameras=("smal",))], UnknownNameError, "Did you mean 'small'"),
    ],
)
def test_wrong_stages_are_refused_in_words(stages: object, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        make(stages)


def test_wrong_numbers_and_files_are_refused_in_words(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="0 to 1, not 2"):
        Jitter(brightness=2)
    with pytest.raises(ConfigError, match="in whole pixels"):
        Resize(0, 8)
    with pytest.raises(AssetError, match="no such file"):
        Photograph(str(tmp_path / "nothing.png"))
    (tmp_path / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\n broken")
    with pytest.raises(DataError, match="does not decode"):
        read_picture(tmp_path / "broken.png")
    (tmp_path / "broken.jpg").write_bytes(b"\xff\xd8\xff broken")
    with pytest.raises(DataError, match="does not decode"):
        read_picture(tmp_path / "broken.jpg")
    file = png(tmp_path / "a.png", noise_image((8, 12)))
    with pytest.raises(UnknownNameError, match="Did you mean 'cube'"):
        make([Photograph(file, keep=("cub",))])


@dataclass(frozen=True, kw_only=True)
class Wrong(Stage):
    def apply(self, picture, shot):
        return {"rgb": picture["rgb"][:1]}


def test_a_stage_that_gives_no_picture_is_refused_in_words() -> None:
    with pytest.raises(ConfigError, match=r"Wrong\.apply must return a Picture of 3 rows with K and T"):
        make([Wrong()])


def test_other_formats_than_png_are_read(tmp_path: Path) -> None:
    av = pytest.importorskip("av")
    image = np.full((16, 24, 3), (200, 60, 30), np.uint8)
    with av.open(str(tmp_path / "a.jpg"), "w", format="image2") as container:
        stream = container.add_stream("mjpeg", rate=1)
        stream.width, stream.height, stream.pix_fmt = 24, 16, "yuvj444p"
        container.mux(stream.encode(av.VideoFrame.from_ndarray(image, format="rgb24")))
        container.mux(stream.encode())
    found = read_picture(tmp_path / "a.jpg")
    assert found.shape == image.shape and np.abs(found.astype(int) - image).max() <= 6


def test_a_lost_picture_is_lost_with_its_depth_and_pose() -> None:
    options = {"cameras": ("hand_camera",), "autoreset": "disabled", "observe": "rgb+depth"}
    env, plain = make([Dropout(0.5)], 4, **options), make((), 4, **options)
    env.reset(seed=0), plain.reset(seed=0)
    lost, before = 0, None
    for action in torch.rand(8, 4, 8, generator=torch.Generator().manual_seed(1)) * 2 - 1:
        seen, truth = (e.step(action)[0]["cameras"]["hand_camera"] for e in (env, plain))
        for row in range(4):
            same = [torch.equal(seen[name][row], truth[name][row]) for name in ("rgb", "depth", "T")]
            assert len(set(same)) == 1
            lost += not same[0]
            if not same[0] and before is not None:
                assert torch.equal(seen["T"][row], before["T"][row])
        before = seen
    assert 4 < lost < 28
