"""The options of an environment: one dataclass, whose every field is checked when it is made."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import pytest
import torch
from gymnasium.vector import AutoresetMode

import manikin
from manikin.cli import main
from manikin.cli.common.documented import option_docs
from manikin.env.env import Env
from manikin.env.options import RECORDED, EnvKeywords, EnvOptions
from manikin.env.registry import task_class
from manikin.errors import ConfigError, UnknownNameError
from manikin.sense.imperfect import Noise
from manikin.spec.looks import Looks

PICK = task_class("PickCube-v2")

WRONG: list[tuple[str, Any, type[Exception], str]] = [
    ("num_envs", 0, ConfigError, "num_envs must be a positive integer"),
    ("num_envs", True, ConfigError, "num_envs must be a positive integer"),
    ("robot", 3, ConfigError, "robot must be a word, like 'panda'"),
    ("robot", ("panda", 3), ConfigError, "robot must be a word, like 'panda'"),
    ("control", 3, ConfigError, "control must be a word like 'joint_pos'"),
    ("control", "osc_pos", UnknownNameError, "unknown controller 'osc_pos'"),
    ("observe", "everything", UnknownNameError, "unknown observation 'everything'"),
    ("reward", "shaped", UnknownNameError, "unknown reward mode 'shaped'"),
    ("autoreset", "never", UnknownNameError, "unknown autoreset mode 'never'"),
    ("device", "gpu", UnknownNameError, "unknown device 'gpu'"),
    ("budget", 64, ConfigError, "budget must be None or a manikin.Budget"),
    ("least_budget", 64, ConfigError, "least_budget must be None or a manikin.Budget"),
    ("deterministic", "no", ConfigError, "deterministic must be True or False"),
    ("graphs", 1, ConfigError, "graphs must be True or False"),
    ("physics_hz", 0, ConfigError, "physics_hz must be a positive number"),
    ("control_hz", "20", ConfigError, "control_hz must be a positive number"),
    ("horizon", 1.5, ConfigError, r"horizon \(control steps\) must be a positive integer"),
    ("max_episode_steps", 0, ConfigError, r"horizon \(control steps\) must be a positive integer"),
    ("terminate", "no", ConfigError, "terminate must be True or False"),
    ("looks", 3, ConfigError, "looks must be a Looks"),
    ("looks", {"lights": 3}, ConfigError, "does not describe a Looks"),
    ("vision", "base_camera", ConfigError, "vision must be a Vision"),
    ("renderer", "vulkan", UnknownNameError, "unknown renderer 'vulkan'"),
    ("sensors", [3], ConfigError, "sensors must map paths to lists of imperfections"),
    ("out_of_range", "wrap", UnknownNameError, "unknown out_of_range 'wrap'"),
    ("threads", -1, ConfigError, "threads must be an integer"),
    ("render_mode", "human", UnknownNameError, "unknown render mode 'human'"),
    ("layout_memory", 0.5, ConfigError, "layout_memory must be an integer"),
    ("poison", 1, ConfigError, "poison must be True or False"),
    ("config", 3, ConfigError, "config must be a mapping or the task's Config"),
]


@pytest.mark.parametrize(("name", "value", "error", "message"), WRONG)
def test_a_wrong_value_is_refused_before_any_task_is_looked_at(name, value, error, message):
    with pytest.raises(error, match=message):
        EnvOptions(**{name: value})


def test_every_option_has_a_wrong_value_above():
    assert {field.name for field in dataclasses.fields(EnvOptions)} == {name for name, *_ in WRONG}


def test_the_keywords_for_type_checkers_are_the_fields():
    types = {field.name: field.type for field in dataclasses.fields(EnvOptions) if field.name != "num_envs"}
    assert types == {name: hint.__forward_arg__ for name, hint in EnvKeywords.__annotations__.items()}
    assert set(RECORDED) < set(types)


def test_values_become_what_they_mean_and_stay_so():
    options = EnvOptions(
        robot=["panda", "ur5e"], autoreset=AutoresetMode.NEXT_STEP, max_episode_steps=7, looks=Looks().describe()
    )
    assert (options.robot, options.autoreset, options.horizon) == ("panda,ur5e", "next_step", 7)
    assert options.looks == Looks()
    with pytest.raises(dataclasses.FrozenInstanceError):
        options.num_envs = 2
    assert dataclasses.replace(options, num_envs=3).horizon == 7


def test_an_unknown_option_lists_those_there_are():
    for make in (lambda: Env(PICK, observation="state"), lambda: manikin.make("PickCube-v2", observation="state")):
        with pytest.raises(UnknownNameError, match=r"unknown option of an environment 'observation'.*observe") as error:
            make()
        assert "task" not in error.value.valid


def test_options_make_the_environment_that_keywords_make_and_keywords_win():
    options = EnvOptions(num_envs=2, control="ee_delta_pose", horizon=9)
    env = Env(PICK, options=options)
    assert (env.num_envs, env.controller.name, env.horizon) == (2, "ee_delta_pose", 9) and env.options == options
    other = Env(PICK, options=options, num_envs=3, horizon=4)
    assert (other.num_envs, other.controller.name, other.horizon) == (3, "ee_delta_pose", 4)
    assert env.fingerprint() == Env(PICK, num_envs=5, control="ee_delta_pose", horizon=9).fingerprint()


def test_the_recorded_options_of_a_fingerprint_make_its_environment_again():
    given = {
        "observe": "state_dict",
        "reward": "sparse",
        "control": "osc_pose:frame=tcp",
        "config": {"goal_radius": 0.04},
        "sensors": {"policy/qpos": [Noise(0.01)]},
        "terminate": False,
        "physics_hz": 400,
        "control_hz": 40,
    }
    env = Env(PICK, **given)
    then = env.fingerprint()
    again = Env(PICK, options=EnvOptions(**{name: then[name] for name in RECORDED if then[name] is not None}))
    assert again.fingerprint() == then
    both = [one.reset(seed=3)[0] for one in (env, again)]
    assert torch.equal(both[0]["policy"]["qpos"], both[1]["policy"]["qpos"])


def commands() -> list[type]:
    """The options of every command that makes an environment of a task."""
    from manikin.cli import collect, demo, info, teleop, view
    from manikin.cli.common.options import TaskOptions

    found = (vars(module).values() for module in (collect, demo, info, teleop, view))
    return sorted(
        {
            one
            for each in found
            for one in each
            if isinstance(one, type) and issubclass(one, TaskOptions) and one is not TaskOptions
        },
        key=lambda one: one.__name__,
    )


@pytest.mark.parametrize("command", commands(), ids=lambda one: one.__name__)
def test_what_a_command_is_given_reaches_the_options_of_the_environment(command):
    names = {field.name for field in dataclasses.fields(EnvOptions)} - command.otherwise
    given = {"control": "ee_delta_pose", "observe": "policy", "reward": "sparse", "horizon": 7, "physics_hz": 400.0}
    shared = names & {field.name for field in dataclasses.fields(command)}
    assert shared <= {*given, "device", "control_hz", "physics_hz"}
    chosen = {name: given[name] for name in shared & given.keys()}
    task = {} if not any(f.name == "task" for f in dataclasses.fields(command)) else {"task": "PickCube-v2"}
    options = command(**task, **chosen, robot="ur5e+panda_hand", config=("goal_radius=0.03",))
    made = options.env_options(PICK, autoreset="disabled")
    assert {name: getattr(made, name) for name in chosen} == chosen
    assert (made.robot, made.config, made.autoreset) == ("ur5e+panda_hand", {"goal_radius": 0.03}, "disabled")
    plain = EnvOptions(autoreset="disabled")
    assert command(**task).env_options(PICK, autoreset="disabled") == plain  # what is not given is left to the task


def test_a_protocol_s_options_are_checked_like_any_others():
    from manikin.eval.protocol import Protocol

    protocol = Protocol(name="p", tasks=("PickCube-v2",), seeds=(1,), control="osc_pose", horizon=9, reward="sparse")
    made = protocol.make_options("PickCube-v2")
    assert made == EnvOptions(
        control="osc_pose", horizon=9, reward="sparse", terminate=False, autoreset="disabled", observe="state"
    )
    with pytest.raises(UnknownNameError, match="unknown controller 'osc_pos'"):
        dataclasses.replace(protocol, control="osc_pos").make_options("PickCube-v2")


def test_flags_that_are_options_say_what_the_one_documentation_says(capsys) -> None:
    """Every flag that a command passes on as an option has its first sentence from :class:`EnvOptions`."""
    docs = option_docs()
    assert {*docs} == {field.name for field in dataclasses.fields(EnvOptions)}
    assert not any("``" in said or ":class:" in said for said in docs.values())
    told = {"bench": ("control", "physics_hz", "device", "robot"), "view": ("control", "observe", "renderer")}
    told |= {
        "collect": ("control", "observe", "reward", "control_hz", "physics_hz", "horizon", "budget", "deterministic")
    }
    for command, names in {**told, "eval": ("device", "renderer", "budget"), "info": ("control", "renderer")}.items():
        with pytest.raises(SystemExit):
            main([command, "--help"])
        page = re.sub(r"[\s\u2500-\u257f]+", "", capsys.readouterr().out)
        for name in names:
            first = re.split(r"(?<=[.])\s", docs[name])[0]
            assert re.sub(r"\s+", "", first) in page, (command, name)


def test_the_bench_measures_what_the_options_say(monkeypatch) -> None:
    """It passes one EnvOptions on: no option of the command is left out on the way."""
    seen = []

    def measured(task, num_envs, *, seconds, options, **given):
        seen.append((num_envs, options))
        raise ConfigError("seen")

    monkeypatch.setattr("manikin.author.speed.measure_speed", measured)
    words = ["--control", "joint_pos", "--physics-hz", "200", "--robot", "ur5e", "--config", "goal_radius=0.03"]
    assert main(["bench", "PickCube-v2", *words, "--num-envs", "2"]) == 2
    wanted = EnvOptions(control="joint_pos", physics_hz=200.0, robot="ur5e", config={"goal_radius": 0.03})
    assert seen == [(2, wanted)]
