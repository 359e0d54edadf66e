"""The suite of unseen variations: twenty settings that differ from the task and from what the student is trained in."""

from __future__ import annotations

import dataclasses

import manikin
from manikin.env.registry import task_class
from manikin.eval.protocol import load_protocol
from manikin.learn.run.recipe import recipe_for


def test_twenty_settings_that_training_does_not_show() -> None:
    suite, kind = load_protocol("sim-to-real"), task_class("GraspCube-v1")
    student = dict(recipe_for("distill", "GraspCube-v1")[0].env["config"])
    declared = dataclasses.asdict(kind.Config())
    assert len(suite.tasks) == 20 and suite.trials == 20 * 64
    for word in suite.tasks:
        assert suite.config[word], f"{word} is the task as it is"
        for name, value in suite.config[word].items():
            for known in (declared, student):
                assert name not in known or (tuple(value) if isinstance(value, list) else value) != known[name], word


def test_every_setting_can_be_played() -> None:
    suite = load_protocol("sim-to-real")
    for word in suite.tasks[::4]:
        options = suite.make_options(word, num_envs=1)
        drawn = dataclasses.replace(options.vision, renderer="rays")
        env = manikin.make("GraspCube-v1", options=dataclasses.replace(options, vision=drawn))
        seen, _ = env.reset(seed=1_000_000)
        assert seen["cameras"]["base_camera"]["rgb"].shape == (1, 96, 96, 3)
        env.close()
