"""Gymnasium's vector wrappers do over manikin's rows what they do over Gymnasium's vector of single environments."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import gymnasium.wrappers as single
import gymnasium.wrappers.vector as vector
import numpy as np
import pytest
import torch
from gymnasium.vector import AutoresetMode

import manikin
from manikin.env.observe import Vision
from manikin.errors import UnknownNameError

PAGE = Path(__file__).parents[3] / "docs" / "gymnasium.md"
N, TASK = 3, "manikin/PickCube-v2"
NAMED, PICTURES = {"observe": "state_dict"}, {"observe": "rgb", "vision": Vision(size=(16, 12), renderer="rays")}
FILMED = {"render_mode": "rgb_array"}


def one_picture(env: Any) -> Any:
    space = env.single_observation_space["cameras"]["base_camera"]["rgb"]
    return vector.TransformObservation(
        env, lambda seen: seen["cameras"]["base_camera"]["rgb"], single_observation_space=space
    )


def halved(env: Any, kind: str) -> Any:
    wrapper, inner = getattr(vector, f"Vectorize{kind}"), getattr(single, kind)
    space = {"TransformObservation": "observation", "TransformAction": "action"}.get(kind)
    given = {} if space is None else {f"{space}_space": getattr(env, f"single_{space}_space")}
    return wrapper(env, inner, func=lambda value: value * 0.5, **given)


# wrapper -> options of the environment, what is put round it, what must be installed
CASES: dict[str, tuple[dict[str, Any], Callable[[Any], Any], tuple[str, ...]]] = {
    "ArrayConversion": ({}, lambda e: vector.ArrayConversion(e, env_xp=np, target_xp=torch), ("array_api_compat",)),
    "ClipAction": ({}, vector.ClipAction, ()),
    "ClipReward": ({}, lambda e: vector.ClipReward(e, 0.0, 0.1), ()),
    "DictInfoToList": ({}, vector.DictInfoToList, ()),
    "DtypeObservation": ({}, lambda e: vector.DtypeObservation(e, np.float64), ()),
    "FilterObservation": (NAMED, lambda e: vector.FilterObservation(e, ["policy"]), ()),
    "FlattenObservation": (NAMED, vector.FlattenObservation, ()),
    "GrayscaleObservation": (PICTURES, lambda e: vector.GrayscaleObservation(one_picture(e)), ()),
    "HumanRendering": (FILMED, vector.HumanRendering, ("pygame", "cv2")),
    "NormalizeObservation": ({}, vector.NormalizeObservation, ()),
    "NormalizeReward": ({}, vector.NormalizeReward, ()),
    "NumpyToTorch": ({}, lambda e: vector.NumpyToTorch(e), ("array_api_compat",)),
    "RecordEpisodeStatistics": ({}, vector.RecordEpisodeStatistics, ()),
    "RecordVideo": (FILMED, lambda e: vector.RecordVideo(e, "films", video_length=3), ("moviepy",)),
    "RescaleAction": ({}, lambda e: vector.RescaleAction(e, -2.0, 2.0), ()),
    "RescaleObservation": (
        PICTURES,
        lambda e: vector.RescaleObservation(vector.DtypeObservation(one_picture(e), np.float32), 0.0, 1.0),
        (),
    ),
    "ReshapeObservation": ({}, lambda e: vector.ReshapeObservation(e, (1, *e.single_observation_space.shape)), ()),
    "ResizeObservation": (PICTURES, lambda e: vector.ResizeObservation(one_picture(e), (8, 8)), ("cv2",)),
    "TransformAction": ({}, lambda e: vector.TransformAction(e, lambda a: a * 0.5, action_space=e.action_space), ()),
    "TransformObservation": ({}, lambda e: vector.TransformObservation(e, lambda seen: seen * 0.5), ()),
    "TransformReward": ({}, lambda e: vector.TransformReward(e, lambda reward: reward * 0.5), ()),
    "VectorizeTransformAction": ({}, lambda e: halved(e, "TransformAction"), ()),
    "VectorizeTransformObservation": ({}, lambda e: halved(e, "TransformObservation"), ()),
    "VectorizeTransformReward": ({}, lambda e: halved(e, "TransformReward"), ()),
}
NOT_TRIED = {"JaxToNumpy", "JaxToTorch"}


def same(ours: Any, theirs: Any, where: str) -> None:
    """Equal to the bit, and of the same kind."""
    assert type(ours) is type(theirs), where
    if isinstance(ours, dict):
        assert ours.keys() == theirs.keys(), where
        for key in ours:
            same(ours[key], theirs[key], f"{where}/{key}")
    else:
        assert np.array_equal(np.asarray(ours), np.asarray(theirs)), where


def course(env: Any, tensors: bool) -> list[tuple[Any, ...]]:
    env.action_space.seed(0)
    given: list[tuple[Any, ...]] = [env.reset(seed=1)]
    for _ in range(10):  # of four steps an episode, and one to begin the next
        action = env.action_space.sample()
        given.append(env.step(torch.as_tensor(action) if tensors else action))
    env.close()
    return given


@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore")
def test_a_wrapper_gives_what_it_gives_over_gymnasiums_own(name: str, tmp_path: Path, monkeypatch: Any) -> None:
    options, wrap, needs = CASES[name]
    for package in needs:
        pytest.importorskip(package, reason=f"{name} needs {package}")
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    monkeypatch.chdir(tmp_path)
    made = [
        wrap(gymnasium.make_vec(TASK, num_envs=N, vectorization_mode=mode, horizon=4, **options))
        for mode in ("vector_entry_point", "sync")
    ]
    assert isinstance(made[0].unwrapped, manikin.Env)
    assert made[0].observation_space == made[1].observation_space and made[0].action_space == made[1].action_space
    ours, theirs = (course(env, name in ("ArrayConversion", "NumpyToTorch")) for env in made)
    ended = 0
    for k, (one, two) in enumerate(zip(ours, theirs, strict=True)):
        parts = ("observation", "reward", "terminated", "truncated") if len(one) == 5 else ("observation",)
        for part, x, y in zip(parts, one, two, strict=False):
            if part == "reward":  # Gymnasium's own counts in double precision
                assert np.allclose(np.asarray(x), np.asarray(y), rtol=1e-6, atol=1e-7), (k, part)
            else:
                same(x, y, f"{k}/{part}")
        if len(one) == 5:
            ended += int(np.asarray(one[3]).sum())
        infos = list(zip(one[-1], two[-1], strict=True)) if name == "DictInfoToList" else [(one[-1], two[-1])]
        for mine, other in infos:
            assert mine.keys() >= {key for key in other if not key.startswith("_")}
            for key in ("success", "elapsed", "episode_seed"):
                assert np.array_equal(np.asarray(mine[key]), np.asarray(other[key])), (k, key)
            if "episode" in mine:
                assert np.allclose(mine["episode"]["r"], other["episode"]["r"], rtol=1e-6)
                assert np.array_equal(mine["episode"]["l"], other["episode"]["l"])
    assert ended == 2 * N


def test_the_page_lists_every_wrapper_and_says_what_was_tested() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| (yes|no|not tried) \|", PAGE.read_text(), re.M))
    assert rows == {**dict.fromkeys(CASES, "yes"), **dict.fromkeys(NOT_TRIED, "not tried")}
    assert set(vector.__all__) <= set(rows)


def test_rows_that_restart_at_once_are_told_as_gymnasium_tells_them() -> None:
    """``final_obs`` and ``final_info``, beside Gymnasium's own vector; and of named observations."""
    ours = manikin.make("PickCube-v2", N, arrays="numpy", horizon=2, **NAMED)
    one = lambda: gymnasium.make(TASK, horizon=2, **NAMED)  # noqa: E731
    theirs = gymnasium.vector.SyncVectorEnv([one] * N, autoreset_mode=AutoresetMode.SAME_STEP)
    ours.reset(seed=1), theirs.reset(seed=1)
    mask = np.array([False, True, False])
    action = np.zeros((N, 8), np.float32)
    for k in range(4):
        x, y = ours.step(action), theirs.step(action)
        same(x[0], y[0], str(k))
        assert ("final_obs" in x[4]) == ("final_obs" in y[4])
        if "final_obs" in x[4]:
            assert x[4]["final_obs"].dtype == y[4]["final_obs"].dtype == object
            for row in range(N):
                last, other = x[4]["final_obs"][row], y[4]["final_obs"][row]
                assert (last is None) == (other is None)
                if last is not None:
                    same(last, other, f"{k}/{row}")
            ended = y[4]["_final_info"]
            assert np.array_equal(x[4]["_final_info"], ended)
            assert np.array_equal(x[4]["final_info"]["elapsed"][ended], y[4]["final_info"]["elapsed"][ended])
        if k == 0:
            same(ours.reset(options={"reset_mask": mask})[0], theirs.reset(options={"reset_mask": mask})[0], "reset")
    assert isinstance(x[1], np.ndarray) and x[2].dtype == x[3].dtype == bool


def test_tensors_stay_the_default_and_the_option_is_checked() -> None:
    env = manikin.make("OpenCabinetDrawer-v2", 2)
    assert isinstance(env.reset(seed=0)[0], torch.Tensor)
    view = manikin.make("OpenCabinetDrawer-v2", 2, arrays="numpy")
    seen, info = view.reset(seed=0)
    assert np.array_equal(seen, env.reset(seed=0)[0].numpy()) and info["layout"].tolist() == [0, 1]
    assert manikin.make("PickCube-v2", 2, arrays="numpy").reset()[1]["entropy"].shape == (2,)
    with pytest.raises(UnknownNameError, match="Valid: numpy, torch"):
        manikin.make("PickCube-v2", arrays="jax")
    assert gymnasium.make_vec(TASK, num_envs=1).metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    assert gymnasium.make_vec(TASK, num_envs=1, autoreset="same_step").reset(seed=0)[1]["success"].shape == (1,)
