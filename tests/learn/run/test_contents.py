"""Files that a recipe names count by their content: a run is the same run wherever its demonstrations lie."""

from __future__ import annotations

import hashlib
import shutil

import h5py
import pytest

from manikin.cli import main
from manikin.data.formats.convert import to_robomimic
from manikin.data.recording.read import EpisodeFile
from manikin.errors import AssetError, ConfigError, DataError
from manikin.learn.run.contents import demonstrations_hash, with_contents
from manikin.learn.run.page import summary_of, write_comparison
from manikin.learn.run.recipe import Recipe, load_recipe
from manikin.learn.run.train import train
from manikin.policy.trained import load_trained, policy_hash, save_trained

SMALL = Recipe(
    algorithm="bc",
    task="PushCube-v2",
    env={"horizon": 6},
    settings={"hidden": [8], "updates": 2, "batch_size": 8},
    steps=4,
    minutes=0,
    validate_every=1,
    validation_episodes=2,
    test_episodes=2,
)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """The same two episodes, recorded side by side and one after the other; and others."""
    folder = tmp_path_factory.mktemp("demos")

    def collect(name, *words):
        out = folder / f"{name}.h5"
        assert main(["collect", "PushCube-v2", "--observations", "--episodes", "2", "--out", str(out), *words]) == 0
        return out

    two = collect("two", "--num-envs", "2")
    with h5py.File(two, "a") as file:  # made at another time, which would else be the same second
        file.attrs["created"] = "2020-01-01T00:00:00+00:00"
    return {
        "one": collect("one", "--num-envs", "1"),
        "two": two,
        "other": collect("other", "--seed", "7"),
    }


def of(path):
    return with_contents(SMALL.replace(settings={"demos": str(path)}))


def test_a_recording_has_the_hash_of_what_it_holds(recorded, tmp_path):
    one, two, other = (demonstrations_hash(recorded[name]) for name in ("one", "two", "other"))
    assert recorded["one"].read_bytes() != recorded["two"].read_bytes()  # it says when it was made
    assert one == two != other and len(one) == 64
    for name in ("steps/actions", "steps/success", "instants/observations/value", "instants/state_hash"):
        changed = tmp_path / "changed.h5"
        shutil.copy(recorded["one"], changed)
        with h5py.File(changed, "a") as file:
            values = file[f"block_0/{name}"][()]
            values.flat[3] = not values.flat[3] if values.dtype == bool else values.flat[3] + 1
            file[f"block_0/{name}"][...] = values
        assert demonstrations_hash(changed) != one, name
    with EpisodeFile(recorded["one"]) as file:
        assert file.content_hash() == one


def test_a_file_of_another_project_has_the_hash_of_its_bytes(recorded, tmp_path):
    out = to_robomimic(recorded["one"], tmp_path / "push.hdf5")
    assert demonstrations_hash(out) == hashlib.sha256(out.read_bytes()).hexdigest()
    with pytest.raises(DataError, match="no recording"):
        demonstrations_hash(tmp_path / "nowhere.h5")


def test_a_recipes_hash_is_that_of_the_content_and_not_of_the_place(recorded, tmp_path):
    copy = tmp_path / "elsewhere.h5"
    shutil.copy(recorded["one"], copy)
    here, there, other = of(recorded["one"]), of(copy), of(recorded["other"])
    assert here.hash == there.hash == of(recorded["two"]).hash != other.hash
    assert SMALL.hash == with_contents(SMALL).hash
    assert here.settings["demos"] == str(recorded["one"]) != there.settings["demos"]
    again = Recipe.from_toml(here.to_toml())
    assert again == here and again.hash == here.hash
    assert here.replace(settings={"demos": str(recorded["other"])}).sha256 == {}
    assert here.replace(settings={"hidden": [4]}).sha256 == here.sha256


def test_a_recipe_whose_file_holds_something_else_says_so(recorded):
    changed = Recipe.from_toml(of(recorded["one"]).to_toml().replace("one.h5", "other.h5"))
    with pytest.raises(ConfigError, match=r"demos: .*other\.h5 is not what the recipe names.*says"):
        with_contents(changed)
    for sha256, said in (({"hidden": "x"}, "has 'hidden'; valid"), ({"demos": "x"}, "has 'demos'; valid")):
        with pytest.raises(ConfigError, match=said):
            Recipe(algorithm="bc", task="PushCube-v2", sha256=sha256)
    with pytest.raises(ConfigError, match="must hold text"):
        SMALL.replace(settings={"demos": "x.h5"}, sha256={"demos": 3})
    with pytest.raises(ConfigError, match=r"\[sha256\] must be a table"):
        Recipe.from_toml("algorithm = 'bc'\ntask = 'PushCube-v2'\nsha256 = 3")


def test_runs_with_the_same_demonstrations_in_two_places_are_one_curve(recorded, tmp_path):
    copy = tmp_path / "elsewhere.h5"
    shutil.copy(recorded["one"], copy)
    places = {"a": recorded["one"], "b": copy, "c": recorded["other"]}
    for seed, (name, place) in enumerate(places.items()):
        train(SMALL.replace(settings={"demos": str(place)}), folder=tmp_path / name, seed=seed)
    hashes = {name: summary_of(tmp_path / name)["recipe_hash"] for name in places}
    assert hashes["a"] == hashes["b"] == of(copy).hash != hashes["c"]
    page = write_comparison([tmp_path / name for name in places], tmp_path / "page.html").read_text()
    ours, theirs = (f"bc on PushCube-v2: demos={recorded[name]}" for name in ("one", "other"))
    assert page.count(f">{ours}</td>") == 2 and page.count(f">{theirs}</td>") == 1 and str(copy) not in page
    same = write_comparison([tmp_path / "a", tmp_path / "b"], tmp_path / "same.html").read_text()
    assert same.count(">bc on PushCube-v2</td>") == 2


def test_a_run_goes_on_with_its_demonstrations_elsewhere_and_with_no_others(recorded, tmp_path):
    place, folder = tmp_path / "demos.h5", tmp_path / "run"
    shutil.copy(recorded["one"], place)
    train(SMALL.replace(settings={"demos": str(place)}), folder=folder, seed=1)
    shutil.copy(recorded["other"], place)
    longer = load_recipe(folder / "recipe.toml").replace(steps=8)
    with pytest.raises(ConfigError, match=r"demos: .*demos\.h5 is not what the recipe names"):
        train(longer, folder=folder, seed=1, resume=True)
    assert main(["train", "--resume", str(folder), "--steps", "8", "--no-test"]) == 2
    with pytest.raises(ConfigError, match=r"begun with other settings: content of demos '\w{12}', now '\w{12}'"):
        train(SMALL.replace(settings={"demos": str(place)}, steps=8), folder=folder, seed=1, resume=True)
    place.unlink()
    moved = longer.replace(settings={"demos": str(recorded["two"])})
    assert train(moved, folder=folder, seed=1, resume=True).state.steps == 8


def test_a_finished_run_of_a_task_with_layouts_is_resumed(tmp_path):
    """Nothing is left to validate, so nothing was shown yet from which the program could be exported."""
    recipe = Recipe(
        algorithm="ppo",
        task="OpenCabinetDrawer-v2",
        env={"num_envs": 2, "horizon": 4},
        settings={"num_steps": 4, "hidden": [8], "critic_hidden": [8], "minibatches": 2},
        steps=8,
        minutes=0,
        validate_every=1,
        validation_episodes=2,
    )
    train(recipe, folder=tmp_path, seed=1)
    (tmp_path / "policy.pt2").unlink()
    assert train(recipe, folder=tmp_path, seed=1, resume=True).state.steps == 8
    assert (tmp_path / "policy.pt2").exists()


def test_a_teacher_that_comes_with_manikin_is_its_name_and_another_what_it_does(tmp_path):
    student = Recipe(algorithm="distill", task="PushCube-v2", env={"observe": "rgb"}, settings={"teacher": "none"})
    named = student.replace(settings={"teacher": "ppo-PushCube-v2"})
    assert with_contents(named) == named and with_contents(student) == student
    with pytest.raises(AssetError, match="no trained policy at none"):
        with_contents(student.replace(sha256={"teacher": "x"}))  # it was there
    settings = {"num_steps": 6, "hidden": [8], "critic_hidden": [8], "minibatches": 2}
    teacher = SMALL.replace(settings={}, env={"num_envs": 4})
    teacher = Recipe(algorithm="ppo", task="PushCube-v2", env=teacher.env, settings=settings, steps=24, minutes=0)
    teacher = teacher.replace(validation_episodes=2)
    for name, seed in (("one", 1), ("two", 2)):
        train(teacher, folder=tmp_path / name, seed=seed)
    shutil.copytree(tmp_path / "one", tmp_path / "copy")
    found = {
        name: with_contents(student.replace(settings={"teacher": str(tmp_path / name)}))
        for name in ("one", "two", "copy")
    }
    assert found["one"].hash == found["copy"].hash != found["two"].hash
    module, about = load_trained(tmp_path / "one")
    network = about.pop("network")
    other = {"seed": 9, "steps": 3}, {"control": "joint_pos"}  # the same weights, trained otherwise and for another arm
    for name, more in zip(("otherwise", "arm"), other, strict=True):
        save_trained(tmp_path / f"{name}.safetensors", module, network=network, about={**about, **more})
    same, arm = (policy_hash(tmp_path / f"{name}.safetensors") for name in ("otherwise", "arm"))
    assert same == policy_hash(tmp_path / "one") == found["one"].sha256["teacher"] != arm
