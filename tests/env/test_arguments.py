"""Whatever is passed where something else belongs is answered by an error of manikin's that says what is valid."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
import torch

import manikin
from manikin.env.registry import task_class, task_ids
from manikin.errors import ActionError, ClosedError, ConfigError, DataError, ManikinError, SceneError

TASK, BUCKETS = "PickCube-v2", "OpenCabinetDrawer-v2"
WRONG: dict[str, Any] = {
    "word": "x",
    "empty": "",
    "bytes": b"x",
    "half": 1.5,
    "nan": math.nan,
    "inf": math.inf,
    "negative": -1,
    "huge": 2**64,
    "complex": 1j,
    "list": [1.5],
    "words": ["a"],
    "ragged": [[1], [2, 3]],
    "dict": {"a": 1},
    "set": {1},
    "object": object(),
    "class": int,
    "array": np.ones(2),
    "tensor": torch.ones(2),
    "float32": np.float32(2.5),
    "true": True,
}
OPTIONS = (
    "num_envs robot control observe reward autoreset device budget deterministic graphs physics_hz control_hz horizon "
    "terminate config looks vision sensors out_of_range threads render_mode poison"
).split()


@pytest.fixture(scope="module")
def env() -> Any:
    made = manikin.make(TASK, 2)
    made.reset(seed=0)
    yield made
    made.close()


def refused(call: Callable[[], Any], what: str) -> None:
    """Raised is a ManikinError, with words."""
    with pytest.raises(ManikinError) as caught:
        pytest.fail(f"{what}: accepted as {call()}")
    assert len(str(caught.value)) > 20, what


@pytest.mark.parametrize("option", OPTIONS)
def test_options(option: str) -> None:
    for name, value in WRONG.items():
        if name == "true" and option in ("deterministic", "graphs", "terminate", "poison"):
            continue
        if (name, option) in (("float32", "control_hz"), ("huge", "device")):
            continue
        refused(lambda value=value: manikin.make(TASK, **{option: value}), f"{option}={name}")


@pytest.mark.parametrize("make", [manikin.make, manikin.Env, manikin.register])
def test_tasks(make: Any) -> None:
    for name, value in WRONG.items():
        refused(lambda value=value: make(value), f"a task that is {name}")


def test_resets(env: Any) -> None:
    for name, value in WRONG.items():
        calls: dict[str, dict[str, Any]] = {
            "seed": {"seed": value},
            "seed in a list": {"seed": [value, 1]},
            "options": {"options": value},
            "reset_mask": {"options": {"reset_mask": value}},
            "episode_index": {"seed": 0, "options": {"episode_index": value}},
            "episode_index in a list": {"seed": 0, "options": {"episode_index": [1, value]}},
        }
        for what, given in calls.items():
            if (name, what) in (("dict", "options"), ("true", "episode_index in a list")):
                continue
            refused(lambda given=given: env.reset(**given), f"{what}: {name}")
    largest = 2**63 - 1
    info = env.reset(seed=[largest, 0], options={"episode_index": [0, largest]})[1]
    assert info["episode_seed"].tolist() == [largest, 0] and info["episode_index"].tolist() == [0, largest]
    for seeds in (torch.tensor([3, 4]), np.array([3, 4], np.uint32), (3, np.int64(4)), range(3, 5), 3, np.int8(3)):
        assert env.reset(seed=seeds)[1]["episode_seed"].tolist() == [3, 4]
    with pytest.raises(ConfigError, match=r"each seed must be a non-negative integer or None, not 1\.5"):
        env.reset(seed=[1.5, 2])
    with pytest.raises(ConfigError, match="seed must be at most"):
        env.reset(seed=2**64)
    with pytest.raises(ConfigError, match=r"seed must be an ordinary array or tensor, got torch\.sparse_coo"):
        env.reset(seed=torch.tensor([3, 4]).to_sparse())


def odd_arrays() -> dict[str, Any]:
    """Of the right shape, (2, 8), but nothing to act with."""
    flat = torch.zeros(2, 8)
    return {
        "sparse": flat.to_sparse(),
        "compressed": flat.to_sparse_csr(),
        "without data": flat.to("meta"),
        "quantized": torch.quantize_per_tensor(flat, 0.1, 0, torch.qint8),
        "nested": torch.nested.nested_tensor([torch.zeros(8), torch.zeros(7)]),
        "complex": flat.to(torch.complex64),
        "float8": flat.to(torch.float8_e4m3fn),
        "bool": flat.bool(),
        "objects": np.zeros((2, 8), object),
        "text": np.zeros((2, 8), "U3"),
        "times": np.zeros((2, 8), "datetime64[s]"),
        "records": np.zeros(2, [("a", float, 8)]),
        "nan": flat * math.nan,
    }


@pytest.mark.filterwarnings("ignore::UserWarning")  # torch's, about kinds of tensors that are in the making
def test_actions(env: Any) -> None:
    env.reset(seed=0)
    before = env.state_hash()
    for name, value in {**WRONG, **odd_arrays()}.items():
        refused(lambda value=value: env.step(value), f"actions: {name}")
        refused(lambda value=value: env.step(torch.zeros(2, 8), active=value), f"active: {name}")
        refused(lambda value=value: env.towards(value), f"towards: {name}")
        if name not in ("half", "float32", "huge"):
            refused(lambda value=value: env.towards(env.arm_qpos, within=value), f"within: {name}")
        if name not in ("nan", "float8"):
            refused(lambda value=value: env.reward_of(value), f"reward_of: {name}")
    assert torch.equal(env.state_hash(), before)
    with pytest.raises(ActionError, match=r"ordinary array or tensor, got torch.sparse_coo torch.float32"):
        env.step(torch.zeros(2, 8).to_sparse())
    good = torch.full((2, 8), 0.25)
    rewards = [env.reward_of(given) for given in (good, good.numpy(), good.double(), good.tolist(), good.half())]
    assert all(torch.equal(reward, rewards[0]) for reward in rewards)
    turned = torch._neg_view(-good)
    assert torch.equal(turned, good)
    assert torch.isfinite(env.step(turned)[0]).all()


def test_states(env: Any) -> None:
    env.reset(seed=0)
    one, state = env.save([0]), env.physics_states([0])
    for name, value in WRONG.items():
        for call in (env.load, env.put, lambda v: env.put([v, v]), lambda v: env.put(state, v)):
            refused(lambda call=call, value=value: call(value), f"a state: {name}")
        for call in (env.save, env.state_hash, env.physics_states, lambda v: env.load(one, v)):
            refused(lambda call=call, value=value: call(value), f"rows: {name}")
        for call in (
            env.model_data,
            env.image,
            env.camera,
            lambda v: env.image(camera=v),
            lambda v: env.image(width=v),
        ):
            refused(lambda call=call, value=value: call(value), f"a picture: {name}")
    with pytest.raises(DataError, match=r"put takes 2 states .* one for each row"):
        env.put(state)
    with pytest.raises(DataError, match=r"states have \d+"):
        env.put([state[0][:-1]], [0])


# ---- numbers of a task ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", task_ids())
def test_numbers_of_every_task_are_of_the_kind_of_their_defaults(task: str) -> None:
    kind = task_class(task)
    for field in dataclasses.fields(kind.Config):
        wrong = [math.nan, object(), [math.nan] * 2, -math.inf, *([] if field.type == "str" else ["x"])]
        wrong += [] if field.default is None else [None]
        if isinstance(field.default, float) and ("half" in field.name or field.name.endswith(("radius", "tol"))):
            wrong.append(-1)
        for value in wrong:
            with pytest.raises(ConfigError, match=f"option '{field.name}' of {task} must be"):
                manikin.make(task, config={field.name: value})
            if not isinstance(value, list):
                with pytest.raises(ConfigError, match=f"option '{field.name}' of {task} must be"):
                    kind(dataclasses.replace(kind.Config(), **{field.name: value}))


def test_good_numbers_are_taken() -> None:
    given = {"cube_half_size": 0, "goal_height": np.float64(0.2), "still_speed": 1}
    assert task_class(TASK)(given).config.goal_height == 0.2
    assert task_class("Lift-v2")({"half_size": [0.02, 0.03]}).config.half_size == (0.02, 0.03)
    assert len(task_class("PickSingleYCB-v2")({"objects": ("005_tomato_soup_can",)}).config.objects) == 1


@pytest.mark.parametrize(
    ("task", "numbers"), [("CartpoleBalance-v1", {"cart_start": -1.0}), ("PegInsertionSide-v2", {"box_turn": -0.4})]
)
def test_a_range_that_cannot_be_drawn_from_is_named_at_the_start(task: str, numbers: dict[str, float]) -> None:
    env = manikin.make(task, config=numbers)
    with pytest.raises(SceneError, match=rf"{task} cannot start an episode: stream .* low .* exceeds high"):
        env.reset(seed=0)
    env.close()


# ---- after the end -------------------------------------------------------------------------------------------------

WARP = [
    pytest.mark.xdist_group("warp"),
    pytest.mark.skipif(find_spec("mujoco_warp") is None, reason="MuJoCo Warp is not installed"),
]


@pytest.mark.parametrize("device", ["cpu", pytest.param("warp:cpu", marks=WARP)])
@pytest.mark.parametrize("task", [TASK, BUCKETS])
def test_a_closed_environment_does_not_answer(task: str, device: str) -> None:
    env = manikin.make(task, 2, device=device, render_mode="rgb_array")
    env.reset(seed=0)
    action, snapshot, states, joints = torch.zeros(2, 8), env.save(), env.physics_states(), env.arm_qpos.clone()
    env.close()
    calls: dict[str, Callable[[], Any]] = {
        "load": lambda: env.load(snapshot),
        "put": lambda: env.put(states),
        "step": lambda: env.step(action),
        "reward_of": lambda: env.reward_of(action),
        "towards": lambda: env.towards(joints),
        **{
            n: getattr(env, n)
            for n in ("reset", "save", "state_hash", "physics_states", "image", "model_data", "render")
        },
        **{n: lambda n=n: getattr(env, n) for n in ("joints", "forces", "arm_qpos", "arm_command", "tcp_poses")},
    }
    for name, call in calls.items():
        with pytest.raises(ClosedError, match="closed"):
            pytest.fail(f"{name} answers: {call()}")
    env.close()  # again
    assert env.fingerprint()["task"] == task  # what it was can still be told
