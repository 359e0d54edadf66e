"""The suite of unseen variations: twenty settings, each with something that the student's training never draws."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

import manikin
from manikin.env.registry import task_class
from manikin.eval.protocol import load_protocol
from manikin.learn.run.recipe import recipe_for

SIGMAS = 3.0
FIXED = ("camera_turn", "table_textures", "distractors", "servo_gain")
RANGES = ("side", "mass", "light", "light_turn", "camera_fovy")
NORMAL = ("friction", "finger_friction")


def _support(name: str, config: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """Least and most that a configuration draws of something; of a normal law all but a thousandth."""
    value = config[name]
    if name in RANGES:
        return np.atleast_1d(value[0]), np.atleast_1d(value[1])
    if name in NORMAL:
        mean, std = value
        return np.atleast_1d(mean - SIGMAS * std), np.atleast_1d(mean + SIGMAS * std)
    if name in ("robot_tint", "camera_offset"):
        tint = config["robot_range"] or SIGMAS * config["robot_colour"]
        spread = tint if name == "robot_tint" else config["camera_shift"]
        return np.array(value) - spread, np.array(value) + spread
    return np.atleast_1d(value), np.atleast_1d(value)


def _drawn(config: dict[str, Any]) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    found = {name: _support(name, config) for name in (*RANGES, *NORMAL, "robot_tint", "camera_offset", "ambient")}
    found["table"] = np.array(config["table_low"]), np.array(config["table_high"])
    fixed = {name: np.atleast_1d(config[name]) for name in FIXED if name != "table_textures"}
    return found | {name: (value, value) for name, value in fixed.items()}


@pytest.mark.parametrize("algorithm", ["distill", "ppo"])
def test_every_setting_draws_something_that_training_never_does(algorithm: str) -> None:
    """Neither the student's nor the teacher's: in at least one quantity no value of the setting lies in the range from
    which training draws."""
    suite, kind = load_protocol("sim-to-real"), task_class("GraspCube-v1")
    declared = dataclasses.asdict(kind.Config())
    learned = declared | dict(recipe_for(algorithm, "GraspCube-v1")[0].env["config"])
    assert len(suite.tasks) == 20 and suite.trials == 20 * 64
    for word in suite.tasks:
        given = suite.config[word]
        setting, shown = _drawn(declared | dict(given)), _drawn(learned)
        apart = {
            name: bool(((setting[name][1] <= shown[name][0]) | (setting[name][0] >= shown[name][1])).any())
            and not all(np.array_equal(a, b) for a, b in zip(setting[name], shown[name], strict=True))
            for name in setting
        }
        new = [name for name, is_apart in apart.items() if is_apart and any(name in key for key in given)]
        textured = not set(given.get("table_textures", ("plain",))) & set(learned["table_textures"])
        assert new or textured, f"{word}: training draws it, too"


@pytest.mark.parametrize(
    ("name", "value", "seen"),
    [("mass", [0.01, 0.03], True), ("mass", [0.02, 0.03], False), ("friction", [0.35, 0.01], True)],
)
def test_what_counts_as_unseen(name: str, value: list[float], seen: bool) -> None:
    declared = dataclasses.asdict(task_class("GraspCube-v1").Config())
    (low, high), (least, most) = _support(name, {**declared, name: value}), _support(name, declared)
    assert bool((low < most).all() and (high > least).all()) == seen


def test_every_setting_can_be_played() -> None:
    suite = load_protocol("sim-to-real")
    for word in suite.tasks[::4]:
        options = suite.make_options(word, num_envs=1)
        drawn = dataclasses.replace(options.vision, renderer="rays")
        env = manikin.make("GraspCube-v1", options=dataclasses.replace(options, vision=drawn))
        seen, _ = env.reset(seed=1_000_000)
        assert seen["cameras"]["base_camera"]["rgb"].shape == (1, 64, 64, 3)
        env.close()
