"""`manikin new package` and `new envhub`: what is written installs and runs where it is meant to."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import gymnasium
import numpy as np
import pytest
import yaml

import manikin
from alone import environment, install, said
from manikin.author.package import write_envhub, write_package
from manikin.cli import main
from manikin.errors import ConfigError, UnknownNameError

SOURCE = str(Path(manikin.__file__).parents[1])


@pytest.mark.slow
def test_a_package_installs_in_a_fresh_environment_and_passes_its_tests(tmp_path: Path) -> None:
    assert main(["new", "package", "KitchenBowls", "--dir", str(tmp_path)]) == 0
    root = tmp_path / "kitchen-bowls"
    python = environment(tmp_path / "env")
    install(python, root)
    listed = said(python, "-m", "manikin.cli", "list", "--family", "own", cwd=tmp_path, PYTHONPATH=SOURCE)
    assert "KitchenBowls-v1" in listed
    words = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "robot or policy", str(root)]  # all: CI of theirs
    assert "2 passed" in said(python, *words, cwd=tmp_path, PYTHONPATH=SOURCE)
    with pytest.raises(AssertionError, match="unknown family of tasks 'own'"):  # without the package there is none
        said(environment(tmp_path / "other"), "-m", "manikin.cli", "list", "--family", "own", PYTHONPATH=SOURCE)


def test_the_files_of_a_package_are_in_order(tmp_path: Path) -> None:
    root = write_package("stack_bowls", tmp_path)
    about = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    assert about["name"] == "stack-bowls" and about["dependencies"] == ["manikin"]
    for group, points in about["entry-points"].items():
        assert group in ("manikin.tasks", "manikin.robots", "manikin.policies")
        for value in points.values():
            module, _, name = value.partition(":")
            tree = ast.parse((root / "src" / f"{module.replace('.', '/')}.py").read_text())
            defined = [node.name for node in tree.body if isinstance(node, ast.ClassDef)]
            defined += [node.targets[0].id for node in tree.body if isinstance(node, ast.Assign)]
            assert name in defined
    steps = yaml.safe_load((root / ".github/workflows/test.yml").read_text())["jobs"]["test"]["steps"]
    assert [step["run"] for step in steps if "run" in step][-2:] == ["pytest", "manikin list"]
    assert not [path for path in root.rglob("*") if path.is_file() and re.search(r"\$\w", path.read_text())]
    with pytest.raises(ConfigError, match="stack-bowls is there already"):
        write_package("StackBowls", tmp_path)
    with pytest.raises(ConfigError, match="not a valid name"):
        write_package("1", tmp_path)


@pytest.mark.parametrize("observe", ["state_dict", "rgb+state"])
def test_the_envhub_folder_makes_what_lerobot_steps(tmp_path: Path, observe: str) -> None:
    assert main(["new", "envhub", "PickCube-v2", "--dir", str(tmp_path), "--observe", observe]) == 0
    root = tmp_path / "pick_cube"
    space: dict[str, object] = {}
    exec((root / "env.py").read_text(), space)
    env = space["make_env"](n_envs=2, use_async_envs=False)["manikin"][0]
    observation, _ = env.reset(seed=[1, 2], options={"lerobot_new_rollout": True})
    assert env.observation_space.contains(observation)
    plugin = (root / "lerobot_env_pick_cube.py").read_text()
    ast.parse(plugin)
    shapes = dict(re.findall(r'"([\w/]+)": PolicyFeature\(type=FeatureType\.\w+, shape=(\(.*?\))\)', plugin))
    seen = {"action": (8,), **{name: value.shape[1:] for name, value in observation.items() if name != "pixels"}}
    seen |= {f"pixels/{name}": value.shape[1:] for name, value in observation.get("pixels", {}).items()}
    assert {name: ast.literal_eval(shape) for name, shape in shapes.items()} == seen
    assert ("pixels/base_camera" in seen) == (observe == "rgb+state")
    assert tomllib.loads((root / "pyproject.toml").read_text())["project"]["name"] == "lerobot_env_pick_cube"
    env.close()
    with pytest.raises(ConfigError, match="pick_cube is there already"):
        write_envhub("PickCube-v2", tmp_path)


def test_an_envhub_folder_needs_a_task_that_others_have(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="unknown task"):
        write_envhub("PickCub-v2", tmp_path)
    with pytest.raises(ConfigError, match="needs the id of a task that is installed there"):
        write_envhub("manikin.tasks.tabletop.pick_cube:PickCube", tmp_path)


def test_an_episode_for_lerobot_is_that_of_gymnasium(tmp_path: Path) -> None:
    """The same seed and actions through Gymnasium's registry give the same rewards and numbers."""
    from manikin.env.adapters.lerobot_env import LeRobotEnv
    from manikin.env.make import lerobot_envs

    rows = lerobot_envs("PushCube-v2", 2)["manikin"][0]
    single = gymnasium.make("manikin/PushCube-v2", observe="state_dict")
    seen, _ = rows.reset(seed=[7, 8])
    alone, _ = single.reset(seed=8)
    actions = np.random.default_rng(0).uniform(-1, 1, (6, 8)).astype(np.float32)
    for action in actions:
        seen, reward, _, _, info = rows.step(np.stack([action, action]))
        alone, other, *_, told = single.step(action)
        assert reward[1] == np.float32(other) and info["is_success"][1] == told["success"]
        flat = np.concatenate([value.ravel() for value in alone["policy"].values()])
        assert np.array_equal(seen["agent_pos"][1], flat.astype(np.float32))
    assert rows.call("_max_episode_steps") == (rows.batched.horizon,) * 2 and rows.call("task") == ("PushCube-v2",) * 2
    assert rows.call("task_description")[0] == rows.batched.instruction[0] and rows.metadata["render_fps"] == 20
    rows.close()
    single.close()
    for options, message in ((dict(observe="state"), "observe='state_dict'"), (dict(), "autoreset='next_step'")):
        env = manikin.make("PushCube-v2", 1, **{"observe": "state_dict", **options})
        with pytest.raises(ConfigError, match=message):
            LeRobotEnv(env)
        env.close()
