"""`manikin train`: what it says and refuses, the page that it always writes, and comparisons of what it left."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import manikin
from manikin.cli import main
from manikin.learn.run import train as loop
from manikin.learn.run.page import shares, summary_of
from manikin.learn.run.recipe import Recipe
from manikin.learn.run.record import read_progress

SMALL = Recipe(
    algorithm="ppo",
    task="PushCube-v2",
    env={"num_envs": 4, "horizon": 8},
    settings={"num_steps": 4, "epochs": 1, "minibatches": 2, "hidden": [8], "critic_hidden": [8]},
    minutes=0,
    steps=48,
    validate_every=2,
    validation_episodes=2,
    test_episodes=4,
)


@pytest.fixture
def recipe(tmp_path: Path) -> str:
    file = tmp_path / "small.toml"
    file.write_text(SMALL.to_toml())
    return str(file)


def _refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["train", *words]) == 2
    said = capsys.readouterr()
    assert "[settings]" not in said.out, "what is refused is refused before the recipe is printed"
    return " ".join(said.err.split())


def test_every_run_has_its_page_and_says_where_it_is(recipe, tmp_path, capsys) -> None:
    run = tmp_path / "run"
    assert main(["train", "--recipe", recipe, "--out", str(run), "--no-test"]) == 0
    said = capsys.readouterr().out
    assert f"run: {run / 'run.html'}" in said and f"--policy {run}" in said
    assert "not tested" in (run / "run.html").read_text()
    # the last validation, of iteration 3, is logged and timed like any other
    rows = read_progress(run / "progress.csv")
    assert [row["iteration"] for row in rows if "validated_success" in row] == [2, 3]
    assert rows[-1]["validation_seconds"] > 0
    summary = summary_of(run)
    assert sum(summary["spent"].values()) <= summary["seconds"]
    percents = [int(one) for one in re.findall(r"(\d+) %", " ".join(said.split()).partition("time went:")[2])]
    assert percents and abs(sum(percents) - 100) <= len(percents) / 2


def test_shares_add_up_and_name_the_rest() -> None:
    assert shares({"update": 3.0, "environment": 6.0}, 10.0) == "environment 60 %, update 30 %, other 10 %"
    assert shares({"update": 5.0}, 5.0) == "update 100 %"
    assert shares({"update": 6.0, "environment": 6.0}, 10.0) == "update 50 %, environment 50 %"  # side by side
    assert shares({}, 0.0) == ""


def test_an_interrupted_run_has_its_page_too(recipe, tmp_path, capsys, monkeypatch) -> None:
    run, began = tmp_path / "run", loop.train
    monkeypatch.setattr(loop, "train", lambda *given, **more: began(*given, **{**more, "stop": lambda: True}))
    assert main(["train", "--recipe", recipe, "--out", str(run)]) == 130
    said = capsys.readouterr().out
    assert f"--resume {run}" in said and f"run: {run / 'run.html'}" in said
    assert "none yet" in (run / "run.html").read_text(), "it was not validated"
    monkeypatch.setattr(loop, "train", began)
    assert main(["train", "--resume", str(run), "--no-test"]) == 0
    assert "none yet" not in (run / "run.html").read_text()


def test_a_run_that_is_there_is_refused_before_anything_is_printed(recipe, tmp_path, capsys) -> None:
    run = tmp_path / "run"
    assert main(["train", "--recipe", recipe, "--out", str(run), "--no-test"]) == 0
    capsys.readouterr()
    said = _refused(capsys, "--recipe", recipe, "--out", str(run))
    assert f"go on with it by --resume {run}, or choose another folder by --out" in said
    small = ("ppo", "PushCube-v2", "--out", str(tmp_path / "other"), "--steps", "48", "--set")
    assert "unknown robot" in _refused(capsys, *small, "env.robot=pandaa")
    assert "unknown activation" in _refused(capsys, *small, "activation=best", "env.num_envs=2")
    assert "one holds a single step" in _refused(capsys, *small, "num_steps=5", "minibatches=4", "env.num_envs=1")
    assert "num_steps must be 1 or more, got 0" in _refused(capsys, *small, "num_steps=0")
    assert "none.h5" in _refused(capsys, "bc", "PushCube-v2", "--demos", str(tmp_path / "none.h5"))
    assert "demonstrations = 0 takes all of a recording" in _refused(
        capsys, "bc", "PushCube-v2", "--out", str(tmp_path / "none"), "--set", "demonstrations=0"
    )


def test_what_does_not_go_with_resume_is_named(recipe, tmp_path, capsys) -> None:
    run = tmp_path / "run"
    assert main(["train", "--recipe", recipe, "--out", str(run), "--no-test"]) == 0
    capsys.readouterr()
    said = _refused(capsys, "ppo", "PushCube-v2", "--resume", str(run), "--no-test")
    assert "leave out ALGORITHM, TASK, and give only --minutes" in said and "--no-test" in said
    assert "leave out --set, --config, --robot" in _refused(
        capsys, "--resume", str(run), "--set", "gamma=0.5", "--config", "a=1", "--robot", "panda"
    )


def test_comparing_takes_a_folder_of_runs_and_a_run_by_its_checkpoint(recipe, tmp_path, capsys) -> None:
    place = tmp_path / "boot"
    words = ["train", "--recipe", recipe, "--vary", "gamma=[0.8,0.9]", "--out", str(place), "--no-test"]
    assert main(words) == 0
    capsys.readouterr()
    page = tmp_path / "page.html"
    assert main(["train", "--compare", str(place), "--out", str(page)]) == 0
    said = capsys.readouterr().out
    assert "gamma=0.8-0" in said and "gamma=0.9-0" in said and "gamma: 0.8, 0.9" in said and page.is_file()
    one = place / "gamma=0.8-0/checkpoint.safetensors"
    assert main(["train", "--compare", str(one), str(place / "gamma=0.9-0"), "--out", str(page)]) == 0
    nope = tmp_path / "nope"
    assert f"no run in {nope}: the folder of a run" in _refused(
        capsys, "--compare", str(place), str(nope / "checkpoint.safetensors")
    )


def test_robot_and_config_are_shorthands_of_settings_of_the_environment(recipe, tmp_path, capsys) -> None:
    run = tmp_path / "run"
    words = ["train", "--recipe", recipe, "--out", str(run), "--no-test", "--robot", "so101"]
    assert main([*words, "--config", "cube_half_size=0.03", "--set", "env.config.goal_radius=0.2"]) == 0
    kept = Recipe.from_toml((run / "recipe.toml").read_text())
    assert kept.env["robot"] == "so101" and kept.env["config"] == {"goal_radius": 0.2, "cube_half_size": 0.03}
    capsys.readouterr()
    other = ("ppo", "PushCube-v2", "--out", str(tmp_path / "other"))
    assert "unknown option of PushCube-v2 'foo'" in _refused(capsys, *other, "--config", "foo=1")
    assert "'foo'" in _refused(capsys, *other, "--set", "env.config.foo=1")
    assert "unknown robot 'so10'" in _refused(capsys, *other, "--robot", "so10")


def test_one_number_of_the_task_changes_and_the_others_stay() -> None:
    first = SMALL.replace(env={"config": {"goal_radius": 0.2}})
    assert first.replace(env={"config.cube_half_size": 0.03}).env["config"] == {
        "goal_radius": 0.2,
        "cube_half_size": 0.03,
    }
    assert manikin.make("PushCube-v2", options=first.env_options()).task.config.goal_radius == 0.2


@pytest.mark.parametrize("words", [["eval", "pick-cube", "--episodes", "8"], ["train", "ppo", "--nope", "1"]])
def test_an_unknown_option_is_answered_with_the_help_of_its_command(words, capsys) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    assert f"manikin {words[0]} --help" in capsys.readouterr().err
