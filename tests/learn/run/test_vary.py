"""One training with several values of a setting: which recipes that makes, what is left as it is, and the page."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from manikin import make
from manikin.cli import main
from manikin.cli import train as command
from manikin.errors import ConfigError
from manikin.learn.run.page import summary_of
from manikin.learn.run.recipe import Recipe
from manikin.learn.run.sweep import variants

PAGE = Path(__file__).resolve().parents[3] / "docs" / "training.md"
SMALL = Recipe(
    algorithm="ppo",
    task="PushCube-v2",
    env={"num_envs": 4, "horizon": 6},
    settings={"num_steps": 6, "hidden": [8], "critic_hidden": [8], "minibatches": 2},
    steps=48,
    minutes=0,
    validate_every=1,
    validation_episodes=2,
    test_episodes=2,
)


def test_every_combination_is_a_recipe_that_differs_in_nothing_else():
    found = variants(SMALL, {"gamma": [0.8, 0.95]}, {"num_envs": [2, 4, 8]})
    assert [(one.recipe.settings["gamma"], one.recipe.env["num_envs"]) for one in found] == [
        (0.8, 2),
        (0.95, 2),
        (0.8, 4),
        (0.95, 4),
        (0.8, 8),
        (0.95, 8),
    ]
    same = {one.recipe.replace(settings={"gamma": 0.8}, env={"num_envs": 4}).hash for one in found}
    assert same == {SMALL.replace(settings={"gamma": 0.8}).hash}
    assert len({one.folder for one in found}) == 6 and found[0].name == "env.num_envs=2,gamma=0.8"
    assert [one.name for one in variants(SMALL, {}, {})] == [""]


def test_a_folders_name_holds_no_path():
    found = variants(SMALL, {"hidden": [[8, 8], [16]]}, {"robot": ["panda", "../../x"]})
    assert all(re.fullmatch(r"[\w.=,+-]+", one.folder) and "/" not in one.folder for one in found)


@pytest.mark.parametrize(
    "settings, said",
    [
        ({"gamma": 0.8}, r"give values in brackets: gamma=\[0.8, ...\]"),
        ({"gamma": []}, "in brackets"),
        ({"gamma": [0.8, 0.8]}, "gamma has a value twice"),
        ({"gama": [0.8]}, "gama"),
        ({"gamma": ["much"]}, "gamma"),
    ],
)
def test_what_a_recipe_does_not_take_is_refused_before_anything_is_trained(settings, said):
    with pytest.raises(ConfigError, match=said):
        variants(SMALL, settings, {})


def test_the_command_trains_each_and_leaves_what_is_finished(tmp_path, capsys):
    recipe = tmp_path / "small.toml"
    recipe.write_text(SMALL.to_toml())
    place = tmp_path / "runs"
    words = ["train", "--recipe", str(recipe), "--vary", "bootstrap_at_success=[true,false]", "--seeds", "1", "2"]
    words += ["--out", str(place), "--pictures", "0"]
    assert main(words) == 0
    folders = sorted(path for path in place.iterdir() if path.is_dir())
    assert [path.name for path in folders] == [
        f"bootstrap_at_success={value}-{seed}" for value in (False, True) for seed in (1, 2)
    ]
    found = [summary_of(path) for path in folders]
    assert [one["seed"] for one in found] == [1, 2, 1, 2]
    assert [one["settings"]["bootstrap_at_success"] for one in found] == [False, False, True, True]
    page = (place / "compared.html").read_text()
    assert "PushCube-v2: bootstrap_at_success=True" in page and "PushCube-v2: bootstrap_at_success=False" in page
    before = {path: (path / "checkpoint.safetensors").stat().st_mtime_ns for path in folders}
    (folders[2] / "report.json").unlink()  # interrupted before its test
    capsys.readouterr()
    assert main(words) == 0
    assert capsys.readouterr().out.count("finished before") == 3
    after = {path: (path / "checkpoint.safetensors").stat().st_mtime_ns for path in folders}
    assert [path for path in folders if after[path] != before[path]] == [folders[2]]
    assert (folders[2] / "report.json").exists()
    assert [summary_of(path)["steps"] for path in folders] == [48] * 4


def ablations():
    """The table of docs/training.md: question and command."""
    section = PAGE.read_text().partition("## What does a setting do?")[2].partition("\n## ")[0]
    return re.findall(r"^\| (.+\?) \| `(.*--vary.*)` \|$", section, re.MULTILINE)


@pytest.mark.parametrize("question, words", ablations())
def test_the_page_answers_each_question_with_a_command_that_trains_different_recipes(question, words, monkeypatch):
    found = []
    monkeypatch.setattr(command, "train_one", lambda out, options, recipe, *rest, **more: found.append(recipe) or 0)
    monkeypatch.setattr(command, "compare_runs", lambda *given: 0)
    whole = words if words.startswith("manikin ") else f"manikin train ppo PushCube-v2 {words}"
    assert main(shlex.split(whole)[1:]) == 0
    assert len(found) == len({recipe.hash for recipe in found}) > 1, question
    for recipe in found:
        make(recipe.task, options=recipe.env_options(num_envs=2)).close()  # its environment exists


def test_the_page_names_the_questions_that_users_ask():
    found = " ".join(words for _, words in ablations())
    for setting in (
        *("env.num_envs", "env.terminate", "stagger", "bootstrap_at_success", "env.reward", "env.control"),
        *("demonstrations", "pushes", "demos"),
    ):
        assert f"{setting}=" in found
