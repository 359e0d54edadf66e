"""SIMPLER's suites of the Google Robot have the paper's numbers of trials (arXiv 2405.05941, Tables IV and V)."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import manikin
from manikin.assets.paths import data_root
from manikin.cli import main
from manikin.eval.evaluation import evaluate
from manikin.eval.pages.report import render_html
from manikin.eval.protocol import Protocol, load_protocol, setting_of, task_of
from manikin.eval.report import as_dict
from manikin.eval.variants import vary
from manikin.policy.expert import ExpertPolicy
from manikin.render import write_png

REAL = {"horizontal": 25, "vertical": 25, "standing": 25, "move near": 60, "open": 27, "close": 27, "apple": 27}
MATCHED = {
    "horizontal": 100,
    "vertical": 100,
    "standing": 100,
    "move near": 240,
    "open": 108,
    "close": 108,
    "apple": 108,
}
AGGREGATED = {"horizontal": 225, "vertical": 225, "standing": 225}
AGGREGATED |= {"move near": 480, "open": 189, "close": 189, "apple": 189}
NAMES = {
    "GoogleMoveNear-v1": "move near",
    "GoogleOpenDrawer-v1": "open",
    "GoogleCloseDrawer-v1": "close",
    "GooglePlaceAppleInDrawer-v1": "apple",
}


def counts(protocol: Protocol) -> dict[str, int]:
    found: Counter[str] = Counter()
    for word in protocol.tasks:
        found[NAMES.get(task_of(word)) or setting_of(word).split("-")[0]] += len(protocol.seeds_of(word))
    return dict(found)


def test_trials_are_those_of_the_paper() -> None:
    assert counts(load_protocol("simpler_google")) == REAL and load_protocol("simpler_google").trials == 216
    assert counts(load_protocol("simpler_google_matched")) == MATCHED
    aggregated = vary(load_protocol("simpler_google_aggregated"), "simpler")
    assert counts(aggregated) == AGGREGATED and aggregated.trials == 675 + 480 + 378 + 189


def test_every_setting_has_its_own_trials_and_colour() -> None:
    matched = load_protocol("simpler_google_matched")
    for word in matched.tasks:
        config = matched.config[word]
        assert config["trials"] == "grid" and config["look"] == "matched" and word.endswith(config["arm_colour"])
    colours = Counter(config["arm_colour"] for config in matched.config.values())
    assert colours == dict.fromkeys(("default", "tabletop_1", "tabletop_2", "cabinet_1"), 7)
    for name in ("simpler_google", "simpler_google_aggregated"):
        protocol = load_protocol(name)
        for word in protocol.tasks:
            at_cabinet = NAMES.get(task_of(word)) in ("open", "close", "apple")
            even = protocol.config[word].get("poses") == "even"
            assert even == (at_cabinet and name == "simpler_google_aggregated")


@pytest.mark.parametrize("word", load_protocol("simpler_google").tasks)
def test_the_last_trial_is_the_grids_last(word: str) -> None:
    """One more has no episode: the suite's count is the task's."""
    protocol = load_protocol("simpler_google")
    env = manikin.make(task_of(word), options=protocol.make_options(word))
    env.reset(seed=[protocol.seeds_of(word)[-1]])
    with pytest.raises(manikin.errors.SceneError, match=f"0 to {len(protocol.seeds_of(word)) - 1}"):
        env.reset(seed=[len(protocol.seeds_of(word))])


def test_the_report_has_the_intermediate_metrics_of_the_last_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MANIKIN_DATA", raising=False)
    protocol = Protocol(
        name="two", tasks=("GoogleCloseDrawer-v1", "GooglePickCokeCan-v1"), seeds=(3, 4), horizon=2, terminate=False
    )
    report = as_dict(evaluate(protocol, ExpertPolicy, num_envs=2))
    drawer, can = (task["per_episode"] for task in report["per_task"])
    for episode in drawer:
        assert episode["at_end"] == {"q": pytest.approx(0.2, abs=1e-3)} and episode["reached"] == {}
    flags = {"is_grasped", "consecutive_grasp", "lifted", "lifted_significantly"}
    for episode in can:
        assert set(episode["reached"]) == flags and set(episode["at_end"]) == flags | {"n_lift_significant"}
        assert episode["at_end"]["n_lift_significant"] == 0 and episode["at_end"]["is_grasped"] is False


def test_the_report_says_what_stands_in(monkeypatch: pytest.MonkeyPatch) -> None:
    def report() -> tuple[dict[str, dict[str, str]], str]:
        tasks = ("WidowXStackCube-v2", "GooglePickCokeCan-v1")
        protocol = Protocol(name="two", tasks=tasks, seeds=(0,), horizon=1, terminate=False)
        made = as_dict(evaluate(protocol, ExpertPolicy, num_envs=1))
        return {task["task"]: task["made_of"] for task in made["per_task"]}, render_html(made)

    data = data_root()
    monkeypatch.delenv("MANIKIN_DATA", raising=False)
    found, page = report()
    assert found["WidowXStackCube-v2"]["green"] == "primitive stand-in"
    assert found["GooglePickCokeCan-v1"]["object: opened_coke_can"] == "primitive stand-in"
    assert {one["robot"] for one in found.values()} == {"stand-in: primitives"}
    assert "Simulated with" in page and "<b>primitive stand-in</b> (object: opened_coke_can)" in page
    if data is None or not (data / "simpler" / "custom").is_dir():
        return
    monkeypatch.setenv("MANIKIN_DATA", str(data))
    found, page = report()
    assert found["WidowXStackCube-v2"]["green"] == "mesh, MANIKIN_DATA/simpler"
    assert "<b>mesh, MANIKIN_DATA/simpler</b> (object: opened_coke_can)" in page


def test_a_server_is_shown_the_matched_pictures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The suite, cut to two trials of one task and small pictures, by the command line against a policy server. A
    made-up photograph stands for the real one."""
    pytest.importorskip("msgpack")
    pytest.importorskip("websockets")
    from policy_server import Server

    folder = tmp_path / "data" / "simpler" / "real_inpainting"
    folder.mkdir(parents=True)
    photograph = np.zeros((480, 640, 3), np.uint8)
    photograph[..., 0], photograph[:240, :, 2] = 200, 90
    write_png(folder / "bridge_real_eval_1.png", photograph)
    monkeypatch.setenv("MANIKIN_DATA", str(tmp_path / "data"))
    suite, task = load_protocol("simpler_widowx_matched"), "WidowXStackCube-v2"
    small = dataclasses.replace(
        suite,
        tasks=(task,),
        seeds=(0, 7),
        config={task: suite.config[task]},
        robot="widowx_bridge",
        size=(64, 48),
        renderer="rays",
        horizon=3,
    )
    (tmp_path / "small.toml").write_text(small.to_toml())
    there = Server(lambda request: {"actions": np.zeros((1, 7), np.float32)})
    words = ["eval", str(tmp_path / "small.toml"), "--policy", there.url, "--pictures", "0"]
    assert main([*words, "--out", str(tmp_path / "out")]) == 0
    there.close()
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    (ran,) = report["per_task"]
    assert [episode["seed"] for episode in ran["per_episode"]] == [0, 7] and ran["task"] == task
    assert report["policy"].startswith("remote 127.0.0.1")
    assert len(there.seen) == 2 * 3  # every row in every step
    for request in there.seen:
        assert request["prompt"] == "stack the green block on the yellow block"
        picture = request["cameras/3rd_view_camera/rgb"]
        assert picture.shape == (48, 64, 3) and picture.dtype == np.uint8
        behind = (np.abs(picture.astype(int) - photograph[::10, ::10]).max(-1) <= 1).mean()
        assert 0.6 < behind < 0.99  # the rest is robot and cubes
        green = (picture[..., 1] > 60) & (picture[..., 0] < 60)
        assert 3 <= green.sum() < 200


def test_moving_near_is_varied_without_the_third_object() -> None:
    varied = vary(load_protocol("simpler_google_aggregated"), "simpler")
    alone = [word for word in varied.tasks if word.startswith("GoogleMoveNear-v1#no-distractor")]
    assert len(alone) == 1 and varied.config[alone[0]] == {"trials": "grid", "third": False}
    others = [word for word in varied.tasks if "distractor" in word and task_of(word) != "GoogleMoveNear-v1"]
    assert {task_of(word) for word in others} == {"GooglePickCokeCan-v1"}
