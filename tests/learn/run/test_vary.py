"""One training with several values of a setting: which recipes that makes, what is left as it is, and the page."""

from __future__ import annotations

import errno
import os
import re
import shlex
from pathlib import Path

import pytest

from manikin import make
from manikin.cli import main
from manikin.cli import train as command
from manikin.errors import ConfigError
from manikin.eval import evaluation
from manikin.eval import report as report_file
from manikin.learn.run.page import summary_of
from manikin.learn.run.recipe import Recipe
from manikin.learn.run.sweep import variants
from manikin.learn.run.train import train

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


def test_another_recipe_is_not_taken_for_finished_and_more_steps_go_on(tmp_path, capsys):
    recipe, place = tmp_path / "small.toml", tmp_path / "runs"
    recipe.write_text(SMALL.to_toml())
    words = ["train", "--recipe", str(recipe), "--seeds", "1", "--vary", "gamma=[0.8]", "--out", str(place)]
    words += ["--pictures", "0"]
    assert main(words) == 0
    folder = place / "gamma=0.8-1"
    before = (folder / "report.json").read_bytes()
    assert main([*words, "--set", "learning_rate=0.01"]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "gamma=0.8-1 was begun with other settings: settings.learning_rate " in said and "now 0.01" in said
    assert (folder / "report.json").read_bytes() == before
    assert main([*words, "--steps", str(2 * SMALL.steps)]) == 0
    assert summary_of(folder)["steps"] == 2 * SMALL.steps
    assert "finished before" not in capsys.readouterr().out


def test_resuming_refuses_what_it_would_not_do(tmp_path, capsys):
    train(SMALL, folder=tmp_path / "run", seed=3)
    resume = ["train", "--resume", str(tmp_path / "run"), "--no-test", "--pictures", "0"]
    for more in (["--seed", "4"], ["--seeds", "4"], ["--out", str(tmp_path / "other")]):
        assert main([*resume, *more]) == 2
        assert "with its seed 3 and its device cpu: leave out --out, --seed" in " ".join(
            capsys.readouterr().err.split()
        )
    assert main([*resume, "--seed", "3"]) == 0


def test_a_test_that_ends_early_keeps_the_network_and_leaves_no_rate(tmp_path, capsys, monkeypatch):
    recipe, run = tmp_path / "small.toml", tmp_path / "run"
    recipe.write_text(SMALL.to_toml())
    written = report_file.replace_file

    def full(path, content):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(report_file, "replace_file", full)
    assert main(["train", "--recipe", str(recipe), "--out", str(run), "--pictures", "0"]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "No space left on device; the network is kept. Test it with: manikin train --resume" in said
    monkeypatch.setattr(report_file, "replace_file", written)
    ended = evaluation.evaluate
    with monkeypatch.context() as patch:
        patch.setattr(evaluation, "evaluate", lambda *given, **more: ended(*given, **{**more, "stop": lambda: True}))
        assert main(["train", "--resume", str(run), "--pictures", "0"]) == 130
    assert "interrupted in the test" in capsys.readouterr().out
    assert not (run / "report.json").exists() and summary_of(run)["tested"] is None
    assert main(["train", "--resume", str(run), "--pictures", "0"]) == 0
    assert summary_of(run)["tested"]["episodes"] == SMALL.test_episodes


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
        *("demonstrations", "pushes", "demonstrations_of"),
    ):
        assert f"{setting}=" in found
