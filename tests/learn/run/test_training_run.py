"""A run in its folder: killed, resumed, compared, evaluated, and what it refuses."""

from __future__ import annotations

import errno
import json
import os

import pytest
import torch

from manikin import make
from manikin.cli import main
from manikin.data.recording import durable
from manikin.env.state.packed import pack, unpack
from manikin.errors import AssetError, ConfigError, DataError, DivergedError, UnknownNameError
from manikin.learn.ppo import PPO
from manikin.learn.run import store
from manikin.learn.run.page import note_test, summary_of, write_comparison, write_page
from manikin.learn.run.recipe import ALGORITHMS, ROWS, Recipe, recipe_for, shipped_recipes, trainer_class
from manikin.learn.run.record import Progress, read_progress
from manikin.learn.run.train import begun_as, recipe_of, train
from manikin.learn.run.validate import Validation
from manikin.policy.choices import policy_maker
from manikin.policy.networks.mlp import TanhGaussianActor
from manikin.policy.shipped import shipped_policies
from manikin.policy.trained import PROGRAM, load_trained, read_about

SETTINGS = {"num_steps": 6, "epochs": 1, "minibatches": 2, "hidden": [8], "critic_hidden": [8]}
RECIPE = Recipe(
    algorithm="ppo",
    task="PushCube-v2",
    env={"num_envs": 4, "horizon": 8},
    settings=SETTINGS,
    steps=4 * 24,
    minutes=0,
    validate_every=2,
    validation_episodes=4,
    test_episodes=6,
)


def _log(folder):
    return [{k: v for k, v in row.items() if "seconds" not in k} for row in read_progress(folder / "progress.csv")]


def test_a_killed_run_goes_on_to_the_same_bits(tmp_path):
    whole = train(RECIPE, folder=tmp_path / "whole", seed=5)
    count = iter(range(10))
    part = train(RECIPE, folder=tmp_path / "part", seed=5, stop=lambda: next(count) == 2)
    assert (part.why, whole.why) == ("interrupted", "steps")
    # lines that were logged after the last checkpoint, as a kill leaves them: a whole one and one that was cut short
    log = tmp_path / "part/progress.csv"
    columns, *_, last = log.read_text().splitlines()
    log.write_text(f"{log.read_text()}3,{last.partition(',')[2]}\n4,9")
    assert len(log.read_text().splitlines()) == 5 and columns.startswith("iteration,steps")
    rest = train(RECIPE, folder=tmp_path / "part", seed=5, resume=True)
    assert rest.state.steps == whole.state.steps == 96
    assert _log(tmp_path / "part") == _log(tmp_path / "whole")
    ours, theirs = (store.read(tmp_path / name / "checkpoint.safetensors")[0] for name in ("part", "whole"))
    _equal(ours["trainer"], theirs["trainer"])
    ours, theirs = (load_trained(tmp_path / name)[0].state_dict() for name in ("part", "whole"))
    _equal(ours, theirs)


def test_a_prolonged_run_that_is_interrupted_goes_on_with_its_new_limits(tmp_path):
    """What Ctrl-C prints names no limits: the folder has those of the last command."""
    train(RECIPE, folder=tmp_path, seed=5)
    longer, count = RECIPE.replace(steps=8 * 24), iter(range(10))
    part = train(longer, folder=tmp_path, seed=5, resume=True, stop=lambda: next(count) == 2)
    assert (part.why, part.state.steps) == ("interrupted", 6 * 24)
    recipe, seed, device = recipe_of(tmp_path)
    assert recipe == longer
    assert train(recipe, folder=tmp_path, seed=seed, device=device, resume=True).state.steps == 8 * 24
    assert main(["train", "--resume", str(tmp_path), "--steps", "216", "--no-test"]) == 0
    assert recipe_of(tmp_path)[0].steps == 216 and read_about(tmp_path)["task"] == "PushCube-v2"


def test_the_program_is_never_that_of_an_earlier_network(tmp_path, monkeypatch):
    train(RECIPE, folder=tmp_path, seed=5)
    assert (tmp_path / PROGRAM).exists()
    better = {"success": 0.9, "return": 1e6, "length": 8.0}
    monkeypatch.setattr(Validation, "__call__", lambda *_, **__: better)
    count = iter(range(10))
    longer = RECIPE.replace(steps=8 * 24)
    part = train(longer, folder=tmp_path, seed=5, resume=True, stop=lambda: next(count) == 2)
    assert part.why == "interrupted" and read_about(tmp_path)["validated"] == better
    assert not (tmp_path / PROGRAM).exists()
    train(longer, folder=tmp_path, seed=5, resume=True)
    assert (tmp_path / PROGRAM).exists()


def _equal(a, b):
    assert type(a) is type(b)
    if isinstance(a, dict):
        assert a.keys() == b.keys()
        for key in a:
            _equal(a[key], b[key])
    elif isinstance(a, list | tuple):
        assert len(a) == len(b)
        for one, other in zip(a, b, strict=True):
            _equal(one, other)
    elif isinstance(a, torch.Tensor):
        assert torch.equal(a, b)
    elif hasattr(a, "shape"):
        assert (a == b).all()
    elif hasattr(a, "__dict__"):
        _equal(vars(a), vars(b))
    else:
        assert a == b


def test_the_command_trains_tests_and_its_policy_is_one_like_any_other(tmp_path, capsys):
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(RECIPE.to_toml())
    folder = tmp_path / "run"
    assert main(["train", "--recipe", str(recipe), "--out", str(folder), "--seed", "5", "--pictures", "0"]) == 0
    said = capsys.readouterr().out
    assert RECIPE.hash[:12] in said and "validated" in said
    report = json.loads((folder / "report.json").read_text())
    assert report["per_task"][0]["success"]["once"]["episodes"] == 6
    assert [e["seed"] for e in report["per_task"][0]["per_episode"]] == list(range(1_000_000, 1_000_006))
    assert "success in validation" in (folder / "run.html").read_text()
    # the same number from the command that the report names
    again = ["eval", str(folder / "protocol.toml"), "--policy", str(folder), "--out", str(tmp_path / "again")]
    assert main([*again, "--pictures", "0"]) == 0
    other = json.loads((tmp_path / "again/report.json").read_text())
    assert other["per_task"][0]["per_episode"] == report["per_task"][0]["per_episode"]
    # the program is the same policy
    observation, _ = make("PushCube-v2", num_envs=5, horizon=8).reset(seed=3)
    acted = [
        policy_maker(str(place))(make("PushCube-v2")).act(observation, [""] * 5)
        for place in (folder, folder / "policy.safetensors", folder / "policy.pt2")
    ]
    assert torch.equal(acted[0], acted[1])
    torch.testing.assert_close(acted[0], acted[2], atol=1e-6, rtol=1e-5)  # its batches have another width
    # and collected with
    out = str(tmp_path / "a.h5")
    words = ["collect", "PushCube-v2", "--policy", str(folder), "--episodes", "2", "--out", out, "--horizon", "8"]
    assert main(words) == 0
    about = read_about(folder)
    assert about["task"] == "PushCube-v2" and about["recipe_hash"] == RECIPE.hash and about["seed"] == 5
    tested = summary_of(folder)["tested"]
    episodes = json.loads((folder / "report.json").read_text())["per_task"][0]["per_episode"]
    assert tested["episodes"] == len(episodes) == 6
    assert tested["return"] == pytest.approx(sum(one["sum_reward"] for one in episodes) / 6)
    assert main(["train", "--compare", str(folder), str(folder), "--out", str(tmp_path / "both.html")]) == 0
    # the test episodes choose nothing; where another network of the run has played them, that is said
    assert note_test(folder) == 1 and "were played with" not in write_page(folder).read_text()
    (folder / "tested.txt").write_text("0" * 64 + "\n")
    capsys.readouterr()
    assert main(["train", "--resume", str(folder), "--pictures", "0"]) == 0
    assert "were played with 2 networks of this run" in " ".join(capsys.readouterr().out.split())
    assert "were played with 2 networks of this run" in (folder / "run.html").read_text()
    assert "PushCube-v2" in (tmp_path / "both.html").read_text()
    # the report is that of this network alone
    whole = (folder / "policy.safetensors").read_bytes()
    (folder / "policy.safetensors").write_bytes(whole[:-4] + bytes(4))  # as if the run had gone on
    assert summary_of(folder)["tested"] is None


def test_a_policy_for_another_task_controller_or_observation_is_refused(tmp_path):
    train(RECIPE, folder=tmp_path, seed=1)
    maker = policy_maker(str(tmp_path))
    maker(make("PushCube-v2", num_envs=2))
    with pytest.raises(ConfigError, match="trained for task 'PushCube-v2', here 'PullCube-v2'"):
        maker(make("PullCube-v2"))
    with pytest.raises(ConfigError, match=r"control .*joint_delta_pos.*, here .*ee_delta_pos"):
        maker(make("PushCube-v2", control="ee_delta_pos"))
    with pytest.raises(ConfigError, match="observe 'state', here 'policy'"):
        maker(make("PushCube-v2", observe="policy"))


def test_a_folder_with_a_run_is_not_begun_anew_nor_gone_on_with_as_another(tmp_path):
    train(RECIPE, folder=tmp_path, seed=1)
    with pytest.raises(ConfigError, match=r"holds a run already: go on with it by --resume .* or choose another"):
        train(RECIPE, folder=tmp_path, seed=1)
    with pytest.raises(ConfigError, match="seed 1, now 2"):
        train(RECIPE, folder=tmp_path, seed=2, resume=True)
    with pytest.raises(ConfigError, match=r"begun with other settings: settings.gamma 0.\d+, now 0.5$"):
        train(RECIPE.replace(settings={"gamma": 0.5}), folder=tmp_path, seed=1, resume=True)
    with pytest.raises(AssetError, match="no file"):
        train(RECIPE, folder=tmp_path / "none", resume=True)


def test_a_damaged_checkpoint_is_named_and_a_foreign_policy_too(tmp_path):
    train(RECIPE, folder=tmp_path, seed=1)
    file = tmp_path / "checkpoint.safetensors"
    content = file.read_bytes()
    for damaged in (b"", content[: len(content) // 2], b"\x80\x04pickle" + content):
        file.write_bytes(damaged)
        with pytest.raises(DataError, match=r"checkpoint\.safetensors"):
            train(RECIPE, folder=tmp_path, seed=1, resume=True)
    (tmp_path / "policy.safetensors").write_bytes(content)
    with pytest.raises(DataError, match="no trained policy"):
        policy_maker(str(tmp_path))
    with pytest.raises(AssetError, match="no trained policy at"):
        policy_maker(str(tmp_path / "none.safetensors"))


@pytest.mark.parametrize(
    "text, said",
    [
        ("algorithm = 'ppo'\ntask = 'PushCube-v2'\nminuts = 3", "unknown key 'minuts'; valid: algorithm"),
        ("algorithm = 'ppo'\ntask = 'PushCube-v2'\n[settings]\nlr = 1", "ppo has no setting 'lr'; valid: num_steps"),
        ("algorithm = 'ppo'\ntask = 'PushCube-v2'\n[settings]\ngamma = 'x'", "gamma must be a number, got 'x'"),
        ("algorithm = 'ppo'\ntask = 'PushCube-v2'\n[settings]\nhidden = 3", "hidden must be a list of whole numbers"),
        ("algorithm = 'ppo'\ntask = 'PushCube-v2'\n[env]\nrows = 3", r"\[env\] has no key 'rows'; valid: num_envs"),
        ("algorithm = 'ppo'\ntask = 'PushCube-v2'\n[env]\nnum_envs = 0", "num_envs"),
        ("algorithm = 'ppo'\ntask = 'PushCube-v2'\nminutes = 0", "would never end"),
        ("task = 'PushCube-v2'", "algorithm is missing"),
        ("algorithm = ", "not valid TOML"),
    ],
)
def test_a_recipe_that_cannot_work_says_what_can(text, said):
    with pytest.raises(ConfigError, match=said):
        Recipe.from_toml(text)


def test_an_unknown_algorithm_is_named():
    with pytest.raises(UnknownNameError, match="ppo"):
        recipe_for("poo", "PushCube-v2")


def test_the_hash_does_not_depend_on_how_a_number_is_spelled():
    spelled = [
        "algorithm = 'ppo'\ntask = 'PushCube-v2'\nminutes = {m}\nstop_at = {s}\n[env]\nphysics_hz = {p}\n"
        "control_hz = {c}\n[settings]\nclip = {s}\n".format(**numbers)
        for numbers in ({"m": 40, "s": 1, "p": 200, "c": 20}, {"m": "40.0", "s": "1.0", "p": "2e2", "c": "20.0"})
    ]
    one, other = (Recipe.from_toml(text) for text in spelled)
    assert one == other and one.hash == other.hash and one.to_toml() == other.to_toml()
    assert RECIPE.replace(minutes=3).hash == RECIPE.replace(minutes=3.0).hash != RECIPE.replace(minutes=4).hash
    for name, file in shipped_policies().items():
        about = read_about(file)
        own = Recipe.from_toml(about["recipe"], source=name)
        assert own.hash == recipe_for(about["algorithm"], about["task"])[0].hash


def test_a_run_whose_numbers_were_spelled_otherwise_goes_on_and_is_the_same_recipe(tmp_path):
    """A run of a version that hashed ``minutes = 9`` as it was written."""
    timed, count = RECIPE.replace(minutes=9), iter(range(10))
    for name in ("new", "old"):
        train(timed, folder=tmp_path / name, seed=5, stop=lambda: next(count) % 3 == 2)
    tree, about = store.read(tmp_path / "old" / "checkpoint.safetensors")
    spelled = {"recipe": about["recipe"].replace("minutes = 9.0", "minutes = 9"), "recipe_hash": "0" * 64}
    store.write(tmp_path / "old" / "checkpoint.safetensors", tree, {**about, **spelled})
    (tmp_path / "old" / "recipe.toml").write_text(spelled["recipe"])
    new, old = (summary_of(tmp_path / name) for name in ("new", "old"))
    assert new["same_recipe"] == old["same_recipe"] and old["recipe_hash"] != new["recipe_hash"]
    write_comparison([tmp_path / "new", tmp_path / "old"], tmp_path / "both.html")
    assert "ppo on PushCube-v2: recipe" not in (tmp_path / "both.html").read_text()
    assert begun_as(tmp_path / "old", timed, 5, "cpu").hash == timed.hash
    assert main(["train", "--resume", str(tmp_path / "old"), "--no-test"]) == 0


def test_recipes_read_back_equal_and_their_hash_is_of_what_counts():
    again = Recipe.from_toml(RECIPE.to_toml())
    assert again == RECIPE and again.hash == RECIPE.hash
    assert RECIPE.replace(description="words").hash == RECIPE.hash
    assert RECIPE.replace(settings={"gamma": 0.9}).hash != RECIPE.hash
    for algorithm, task in shipped_recipes():
        recipe, own = recipe_for(algorithm, task)
        assert own and (recipe.algorithm, recipe.task) == (algorithm, task)
        anywhere = recipe.replace(env={"renderer": "rays"}) if recipe.pictures.renderer else recipe
        make(task, options=anywhere.env_options(num_envs=1)).close()


@pytest.mark.parametrize("algorithm", ["ppo", "sac", "tdmpc2"])
def test_a_task_without_a_recipe_trains_in_many_environments(algorithm):  # and so that another run is the same
    recipe, own = recipe_for(algorithm, "StackPyramid-v1")
    assert not own and recipe.env_options().num_envs == ROWS[algorithm] > 8
    env = make("StackPyramid-v1", options=recipe.env_options(autoreset="same_step"))
    trainer_class(algorithm)(env, recipe.config, seed=0)  # refuses an environment that it cannot learn in
    env.close()


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_where_the_learning_rate_falls_a_recipe_has_steps(algorithm):
    """By time, two runs of a seed would differ."""
    recipe, _ = recipe_for(algorithm, "StackPyramid-v1")
    assert recipe.steps or not getattr(recipe.config, "anneal", False)


def _full(*_):
    raise OSError(28, "No space left on device")


def test_a_log_keeps_what_was_before_and_takes_new_columns(tmp_path, monkeypatch):
    log = Progress(tmp_path / "log.csv")
    log.add({"iteration": 1, "steps": 10, "seconds": 0.5, "cpu_seconds": 1.0, "loss": 0.25})
    log.add({"iteration": 2, "steps": 20, "seconds": 1.0, "cpu_seconds": 2.0, "loss": 0.125, "validated": 1.0})
    rows = read_progress(tmp_path / "log.csv")
    assert [row.get("validated") for row in rows] == [None, 1.0]
    assert [row["loss"] for row in rows] == [0.25, 0.125]
    assert read_progress(Progress(tmp_path / "log.csv", keep=2).path) == rows  # whatever comes next
    before = (tmp_path / "log.csv").read_bytes()
    with monkeypatch.context() as patched:
        patched.setattr("os.replace", _full)
        with pytest.raises(DataError, match=r"log\.csv: No space left"):
            Progress(tmp_path / "log.csv", keep=2)
    assert (tmp_path / "log.csv").read_bytes() == before
    assert len(read_progress(Progress(tmp_path / "log.csv", keep=1).path)) == 1


def test_a_tree_reads_back_as_it_was_and_a_full_disk_keeps_the_file_before(tmp_path, monkeypatch):
    env = make("PushCube-v2", num_envs=3)
    env.reset(seed=4)
    tree = {
        "a": [1, 2.5, None, True, ("x",)],
        3: {"t": torch.arange(4), "n": torch.zeros(2).numpy()},
        "env": env.save(),
    }
    file = tmp_path / "tree.safetensors"
    store.write(file, tree, {"x": 1})
    found, about = store.read(file)
    assert about == {"x": 1}
    _equal(found, tree)
    before = file.read_bytes()
    views = {"whole": (whole := torch.arange(6.0).view(2, 3)), "turned": whole.T, "part": whole[1:], "none": whole[:0]}
    views |= {"yes": torch.tensor([True, False]), "half": whole.half(), "brief": whole.bfloat16(), "one": whole[0, 1]}
    store.write(file, views)
    _equal(store.read(file)[0], views)
    _equal(unpack(pack(views)), views)
    with pytest.raises(TypeError, match="complex64 cannot be packed"):
        store.write(file, {"a": torch.zeros(1, dtype=torch.complex64)})
    store.write(file, tree, {"x": 1})
    assert file.read_bytes() == before
    monkeypatch.setattr("os.replace", _full)
    with pytest.raises(DataError, match="No space left on device"):
        store.write(file, {"a": 2})
    assert file.read_bytes() == before
    with pytest.raises(TypeError, match="a set cannot be packed"):
        store.write(file, {"a": {1}})


def test_a_disk_that_fills_names_the_file_and_costs_nothing_that_was_written(tmp_path, monkeypatch):
    """Room runs out at the second checkpoint; the run goes on from what is there, to the same bits."""
    whole = train(RECIPE, folder=tmp_path / "whole", seed=5)
    count = iter(range(10))
    folder = tmp_path / "part"
    train(RECIPE, folder=folder, seed=5, stop=lambda: next(count) == 2)
    before = (folder / "checkpoint.safetensors").read_bytes()
    written = durable.replace_file

    def full(path, content):
        if path.name == "checkpoint.safetensors":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written(path, content)

    monkeypatch.setattr(durable, "replace_file", full)
    with pytest.raises(DataError, match=r"cannot write .*checkpoint\.safetensors: No space left on device"):
        train(RECIPE, folder=folder, seed=5, resume=True)
    monkeypatch.setattr(durable, "replace_file", written)
    assert (folder / "checkpoint.safetensors").read_bytes() == before
    rest = train(RECIPE, folder=folder, seed=5, resume=True)
    assert rest.state.steps == whole.state.steps and _log(folder) == _log(tmp_path / "whole")


def test_a_loss_that_is_not_finite_names_its_batch_and_keeps_the_last_good_checkpoint(tmp_path, monkeypatch):
    whole = train(RECIPE, folder=tmp_path / "whole", seed=5)
    folder, count = tmp_path / "part", iter(range(10))
    train(RECIPE, folder=folder, seed=5, stop=lambda: next(count) == 2)
    before = (folder / "checkpoint.safetensors").read_bytes()
    collect = PPO.collect

    def poisoned(trainer):
        batch = collect(trainer)
        batch[0]["returns"][0] = torch.nan
        return batch

    with monkeypatch.context() as patch:
        patch.setattr(PPO, "collect", poisoned)
        with pytest.raises(DivergedError, match=r"iteration 3, after 72 steps, batch [12] of 2: loss is nan, critic"):
            train(RECIPE, folder=folder, seed=5, resume=True)
    assert (folder / "checkpoint.safetensors").read_bytes() == before
    rest = train(RECIPE, folder=folder, seed=5, resume=True)
    assert rest.state.steps == whole.state.steps and _log(folder) == _log(tmp_path / "whole")


def test_validation_plays_episodes_as_the_task_ends_them_or_up_to_success():
    """Lift, won in its first step: robosuite's episodes go on, and each further step pays 1."""
    env = {"horizon": 5, "config": {"lift_height": -1.0}}
    recipe = Recipe(algorithm="sac", task="Lift-v2", env=env, validation_episodes=2)
    for whole, steps in ((True, 5), (False, 1)):
        validation = Validation(recipe, whole=whole)
        columns = validation.env.single_observation_space.shape[0]
        actor = TanhGaussianActor(observations=columns, actions=validation.env.single_action_space.shape[0])
        found = validation(actor)
        validation.close()
        assert found == {"success": 1.0, "return": pytest.approx(steps), "length": steps}
