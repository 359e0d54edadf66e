"""What other packages offer is found by its name, loaded when it is used, and blamed by name where it fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import manikin
from manikin import grippers, robots
from manikin.assets import packages
from manikin.cli import main
from manikin.env.registry import broken_tasks, task_class, task_families, task_ids
from manikin.errors import ConfigError, UnknownNameError
from manikin.policy.choices import policy_maker
from manikin.policy.random_policy import RandomPolicy

MODULE = """
from dataclasses import replace
from manikin.grippers import gripper
from manikin.policy.random_policy import RandomPolicy
from manikin.robots import arm
from manikin.tasks.tabletop.push_cube import PushCube

class PushFar(PushCube):
    "Further."
    id = "PushFar-v1"
    family = "far"

ARM = replace(arm("panda"), name="their_arm")
HAND = replace(gripper("panda_hand"), name="their_hand")
"""
POINTS = {
    "manikin.tasks": {"PushFar-v1": "their_module:PushFar", "PushWrong-v1": "their_module:PushFar"}
    | {"PushGone-v1": "their_module:PushGone", "PickCube-v2": "their_module:PushFar"},
    "manikin.robots": {"their_arm": "their_module:ARM", "their_number": "their_module:replace"},
    "manikin.grippers": {"their_hand": "their_module:HAND"},
    "manikin.policies": {"their_policy": "their_module:RandomPolicy", "their_text": "their_module:__name__"},
}


@pytest.fixture
def offer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Lays a package where Python finds it, as pip would install it."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def lay(name: str, points: dict[str, dict[str, str]], module: str = MODULE) -> None:
        about = tmp_path / f"{name}-1.2.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n")
        text = ""
        for group, named in points.items():
            text += f"[{group}]\n" + "".join(f"{key} = {value}\n" for key, value in named.items())
        (about / "entry_points.txt").write_text(text)
        (tmp_path / f"{name}_module.py").write_text(module)
        packages.forget()

    yield lay
    monkeypatch.undo()
    packages.forget()
    robots.forget()
    grippers.forget()


def test_a_package_s_task_robot_gripper_and_policy_are_known_by_name(offer, capsys) -> None:
    assert "PushFar-v1" not in task_ids()
    offer("their", POINTS)
    assert {"PushFar-v1", "PushWrong-v1"} <= set(task_ids())
    assert task_class("PushFar-v1").__name__ == "PushFar" and task_families()["far"] == ["PushFar-v1"]
    assert "their_arm" in robots.robots() and "their_hand" in grippers.grippers()
    assert robots.robot("their_arm+their_hand").gripper.name == "their_hand"
    env = manikin.make("PushFar-v1", 1, robot="their_arm", horizon=3)
    assert env.robot_word == "their_arm" and isinstance(policy_maker("their_policy")(env), RandomPolicy)
    env.close()
    assert main(["list"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "PushFar-v1" in out and "their_arm" in out and "policies of installed packages: their_policy" in out
    assert "PushWrong-v1', but what it has there is no task of this id" in out  # and the rest is listed


def test_a_built_in_name_wins(offer) -> None:
    offer("their", POINTS)
    assert task_class("PickCube-v2").__module__ == "manikin.tasks.tabletop.pick_cube"


@pytest.mark.parametrize(
    ("use", "said"),
    [
        (
            lambda: task_class("PushGone-v1"),
            r"'PushGone-v1' of the package their 1\.2 cannot be loaded: AttributeError",
        ),
        (lambda: task_class("PushWrong-v1"), "'PushWrong-v1', but what it has there is no task of this id"),
        (lambda: robots.robot("their_number"), "the robot 'their_number', but what it has there is <function"),
        (lambda: policy_maker("their_text"), "'their_text', but what it has there is no function"),
    ],
)
def test_what_a_package_has_wrong_is_said(offer, use, said: str) -> None:
    offer("their", POINTS)
    with pytest.raises(ConfigError, match=said):
        use()


def test_a_package_that_does_not_import_leaves_the_others_alone(offer) -> None:
    offer("bad", {"manikin.tasks": {"Bad-v1": "bad_module:Bad"}}, module="import nothing_of_this_name")
    assert list(broken_tasks()) == ["Bad-v1"] and "No module named 'nothing_of_this_name'" in broken_tasks()["Bad-v1"]
    assert "Bad-v1" not in [name for names in task_families().values() for name in names]
    assert "PickCube-v2" in task_ids() and "Bad-v1" in task_ids()


def test_a_name_that_two_packages_offer_is_refused(offer) -> None:
    for name in ("one", "two"):
        offer(name, {"manikin.policies": {"same": f"{name}_module:RandomPolicy"}})
    with pytest.raises(ConfigError, match=r"'same' is offered by one 1\.2 and two 1\.2: uninstall one"):
        policy_maker("same")


def test_an_unknown_policy_is_answered_with_those_of_packages(offer) -> None:
    offer("their", POINTS)
    with pytest.raises(UnknownNameError, match="their_policy"):
        policy_maker("there_policy")
