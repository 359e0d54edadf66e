"""Pages and pictures that are made from the code say what the code says."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from manikin.assets.pictures import read_picture
from manikin.author.scaffold import write_task
from manikin.author.sheet import task_sheet
from manikin.env.registry import task_class, task_families, task_ids
from manikin.tasks.home.labels import subtask_labels
from script import script

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("task_id", task_ids())
def test_every_task_can_have_its_page(task_id: str) -> None:
    """A page is complete when the class says what it is about, in the form the pages expect."""
    kind = task_class(task_id)
    sheet = task_sheet(task_id, measure=False)
    page = sheet.markdown()
    for heading in ("**Randomization:**", "**Success:**", "## Observations", "## Actions", "## Reward"):
        assert heading in page, f"{task_id}'s docstring or class lacks {heading}"
    for name in (*kind.observations, *kind.reward_terms):
        assert f"| `{name}` |" in page
    for name, value, meaning in sheet.options:
        assert meaning, f"Config.{name} = {value} of {task_id} has no comment with its unit"


def test_a_page_says_what_the_configuration_asks_for() -> None:
    page = task_sheet("HomeOpen-v1", config={"mechanism": "fridge"}, measure=False).markdown()
    assert "“open the fridge”" in page


def test_columns_of_a_page_are_those_of_the_flat_observation() -> None:
    import manikin

    env = manikin.make("PickCube-v2")
    for seen in task_sheet("PickCube-v2", measure=False).observations:
        first = int(seen.columns.split(" ")[0])
        assert env.observation_names[first].removesuffix("[0]") == f"{seen.group}/{seen.name}"
    env.close()


@pytest.mark.parametrize("task_id", task_ids())
def test_every_task_has_a_picture(task_id: str) -> None:
    path = ROOT / "docs" / "images" / "tasks" / f"{task_id}.png"
    assert path.is_file(), f"python docs/pictures.py {task_id}"
    assert path.stat().st_size < 200_000


@pytest.mark.usefixtures("no_own_tasks")
def test_every_family_has_a_sheet_of_its_tasks() -> None:
    pictures, page = script("pictures", "docs"), (ROOT / "docs" / "families.md").read_text()
    folder = ROOT / "docs" / "images" / "families"
    assert {path.stem for path in folder.iterdir()} == set(task_families())
    for family, tasks in task_families().items():
        path = folder / f"{family}.png"
        made = pictures.family(tasks)  # of the pictures that are there, with every id
        assert np.array_equal(read_picture(path), made), "python docs/pictures.py families"
        assert path.stat().st_size < 300_000
        assert f"![{', '.join(tasks)}](images/families/{family}.png)" in page


@pytest.mark.usefixtures("no_own_tasks")
def test_the_page_of_families_names_every_task() -> None:
    families = script("families", "docs")
    page = families.PAGE.read_text()
    assert families.filled(page, task_families()) == page, "python docs/families.py"
    assert set(families.SUMMARIES) == set(task_families())
    assert "| `PickCube-v2` |" not in families.filled(page, {"drawing": task_families()["drawing"]})


@pytest.mark.usefixtures("no_own_tasks")
def test_the_overview_of_tasks_has_a_heading_per_family() -> None:
    pytest.importorskip("mkdocs", reason="mkdocs is not installed: pip install 'manikin[docs]'")
    made = script("hooks", "docs").tasks_table()
    parts = re.split(r"^## .* \{ #([a-z-]+) \}$", made, flags=re.MULTILINE)
    assert parts[1::2] == list(task_families())
    for family, part in zip(parts[1::2], parts[2::2], strict=True):
        assert re.findall(r"\| \[(\S+)\]\(", part) == task_families()[family]


def test_the_page_on_other_libraries_shows_its_results() -> None:
    found = json.loads((ROOT / "benchmarks" / "results" / "adapters.json").read_text())
    page = (ROOT / "docs" / "training-libraries.md").read_text()
    names = {"sb3": "Stable-Baselines3", "skrl": "skrl", "rsl_rl": "rsl_rl"}
    rows = {f"{names[library]} {{}}": run for library, runs in found["runs"].items() for run in runs.values()}
    for name, run in rows.items():
        version = next(iter(run["versions"].values()))
        rate = "{rate:.1%} [{low:.1%}, {high:.1%}]".format(**run["tested"])
        assert f"| {name.format(version)} | {run['steps']:,} | {run['cpu_seconds']:.0f} | {rate} |" in page
        assert run["tested"]["low"] > max(run["untrained"]["high"], found["chance"]["high"])
    assert "random actions | 0 | 0 | {rate:.1%} [{low:.1%}, {high:.1%}] |".format(**found["chance"]) in page


def test_the_walk_through_shows_the_scaffold_as_it_is(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "write-a-task.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    shown = [line for block in blocks for line in block.splitlines() if line.strip()]
    written = [line for line in write_task("LiftCube", tmp_path)[0].read_text().splitlines() if line.strip()]
    assert shown[: len(written)] == written


RESULT: dict[str, Any] = {
    "command": "python benchmarks/throughput.py",
    "task": "PickCube-v2",
    "machine": "x86_64, 2 cores",
    "rounds": 5,
    "manikin": {
        "5 ms x 10, N=1": {
            "env": {"median": 1500.4, "low": 1400.0, "high": 1600.6},
            "raw": {"median": 6000.0, "low": 5900.0, "high": 6100.0},
            "env_over_raw": {"median": 0.25, "low": 0.24, "high": 0.26},
        },
        "5 ms x 10, N=256": {k: {"median": v} for k, v in (("env", 6100.0), ("raw", 6600.0), ("env_over_raw", 0.924))},
    },
    "peers": {"ManiSkill3 PickCube": {"median": 220.1, "low": 210.0, "high": 230.0}},
    "times_maniskill3_at_one_env": {"5 ms x 10, N=1": {"median": 6.82, "low": 6.5, "high": 7.1}},
}


def test_the_speed_table_is_made_from_the_result() -> None:
    speed = script("speed", "docs")
    readme = "a\n<!-- speed: x -->\nold\n<!-- /speed -->\nb\n"
    made = speed.filled(readme, RESULT)
    assert made.startswith("a\n<!-- speed: x -->\n\n|") and made.endswith("<!-- /speed -->\nb\n")
    assert "| manikin, physics 5 ms x 10 | **1,500** [1,400–1,601] | **6,100** |" in made
    assert "| manikin's share of raw | 0.25 | 0.92 |" in made
    assert "| ManiSkill3 PickCube | 220 [210–230] | |" in made and "Median of 5 rounds" in made
    assert "6.8x [6.5–7.1] (5 ms x 10) as fast as ManiSkill3's" in made
    assert speed.filled(made, RESULT) == made  # again changes nothing
    assert "manikin bench" in speed.filled(made, None)
    with pytest.raises(SystemExit, match="no section"):
        speed.filled("nothing here", RESULT)


def test_the_readme_shows_the_committed_result() -> None:
    speed = script("speed", "docs")
    result = json.loads(speed.RESULT.read_text()) if speed.RESULT.exists() else None
    readme = (ROOT / "README.md").read_text()
    assert speed.filled(readme, result) == readme, "python docs/speed.py"


def test_the_speed_of_cameras_is_made_from_the_committed_result() -> None:
    cameras = script("cameras", "docs")
    split = {"draw": 4.0, "read back": 0.5}
    result = {
        "command": "python benchmarks/render.py",
        "machine": "x86_64, 2 cores",
        "manikin": {"panda, N=8, 64x64 rgb": {"images_per_s": 151.6, "split_ms": split}},
        "peers_images_per_s": {"ManiSkill3 PickCube, 64x64 rgb": 18.2},
        "crossover_ms": {"panda": {"gl rgb": {"32x32": 4.04, "64x64": 5.06}, "warp rgb": {"32x32": 1.5, "64x64": 6.0}}},
    }
    page = "a\n<!-- render-speed: x -->\nold\n<!-- /render-speed -->\nb\n"
    made = cameras.filled(page, result)
    for line in ("| manikin, panda, N=8 | **152** |", "| ManiSkill3 PickCube | 18 |", "| gl rgb | 4.0 | 5.1 |"):
        assert line in made
    assert "| panda, N=8, 64x64 rgb | 4.00 | 0.50 |" in made and cameras.filled(made, result) == made
    assert "Unmeasured." in cameras.filled(made, None)
    with pytest.raises(SystemExit, match="no section"):
        cameras.filled("nothing here", result)
    committed = json.loads(cameras.RESULT.read_text()) if cameras.RESULT.exists() else None
    shown = cameras.PAGE.read_text()
    assert cameras.filled(shown, committed) == shown, "python docs/cameras.py"


def test_the_tables_of_devices_are_made_from_the_results() -> None:
    devices = script("devices", "docs")
    rates = {"seeds": 256, "difference": [-0.01, 0.02]}
    rates |= {w: {"successes": k, "health": {"overflow": 0, "diverged": 1}} for w, k in (("cpu", 250), ("warp", 249))}
    still = {"one_step": 4.77e-7, "free": 1.2e-6, "share_free": 1.0}
    entry = {**still, "force": 3.3e-3, "jacobian": 3e-7}
    entry |= {"force_median": 2e-6, "force_largest": 0.07, "same_rows": 0.906}
    result = {
        "device": "warp:cpu",
        "processor": "a processor",
        "versions": {"mujoco": "4.0.0", "mujoco-warp": "4.0.1"},
        "entries": {
            "PickCube-v2 joint_pos": {**entry, "success": rates},
            "Other-v1/wide joint_pos": {**still, "share_free": 0.75},
            "Other-v1 joint_vel": {"one_step": 0, "free": 0, "share_free": 0.5},
        },
    }
    page = "a\n<!-- parity: x -->\nold\n<!-- /parity -->\n<!-- gpu: x -->\n<!-- /gpu -->\nb\n"
    made = devices.filled(page, {"parity": result, "gpu": None})
    assert "| `joint_pos` | Other-v1/wide, PickCube-v2 | 5e-07 | 1e-06 | 75 % |" in made
    assert "| `joint_vel` | Other-v1 | 0e+00 | 0e+00 | 50 % |" in made
    line = "| PickCube-v2 `joint_pos` | 91 % | 2e-06 3e-03 7e-02 | 3e-07 | 250, 249 of 256 | yes |"
    assert (
        line in made
        and made.count("Other-v1") == 2
        and "episodes whose health said: 0 overflow, 2 diverged." in made
        and "Unmeasured." in made
    )
    assert devices.filled(made, {"parity": result, "gpu": None}) == made
    result["entries"]["PickCube-v2 joint_pos"]["success"] = {**rates, "difference": [0.01, 0.05]}
    assert "| **no** |" in devices.filled(page, {"parity": result, "gpu": None})
    card = {"card": "H200", "command": "c", "targets": {"rate": {"wanted": "at least 1e+06", "measured": 1.5e6}}}
    card["manikin"] = {"one": {"env": 10.0, "raw": 20.0, "create_s": 1.0, "bytes_per_env": 7}, "two": {"failed": "why"}}
    card["manikin"]["one"] |= {"scratch_per_env": 12345, "card_bytes": 2_500_000_000}
    run = {"to_target_s": 25.04, "process_s": 61.0, "steps": 2_000_000, "validated": 0.953}
    card["training"] = {"by state": run, "pictures": {**run, "to_target_s": None}, "lost": {"failed": "no memory"}}
    card["manikin"]["three"] = {**card["manikin"]["one"], "renderer_per_env": 262144}
    made = devices.filled(page, {"parity": None, "gpu": card})
    assert "| rate | at least 1e+06 | 1.5e+06 |" in made and "| two | why | | | | | | |" in made
    assert "| by state | 25.0 s | 61.0 s | 2,000,000 | 95.3 % |" in made and "| pictures | not reached |" in made
    assert "| lost | no memory | | | |" in made
    assert "| 1.0 s | 7 | 12,345 |  | 2,500 |" in made and "| 12,345 | 262,144 | 2,500 |" in made
    with pytest.raises(SystemExit, match="no section"):
        devices.filled("nothing here", {})


def test_the_page_of_devices_shows_the_committed_results() -> None:
    devices = script("devices", "docs")
    page = devices.PAGE.read_text()
    assert devices.filled(page, devices.results()) == page, "python docs/devices.py"


def test_the_tables_of_training_say_what_is_reached_and_what_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    training = script("training", "docs")

    def one(low: float, seconds: float | None, **more: Any) -> dict[str, Any]:
        tested = {"rate": low + 0.02, "low": low, "high": 1.0, "at_end": low}
        curve = [[500, 50.0, 0.5, 400.0], [1000, 100.0, 1.0, 430.0]]
        return {"seconds": seconds, "cpu_seconds": 200.0, "steps": 1000, "tested": tested, "curve": curve, **more}

    loop = {"seconds": 80.0, "spent": {"environment": 40.0, "update": 20.0, "policy": 4.0, "validation": 8.0}}
    seeds = {"1": one(0.96, 150.0, loop=loop), "2": one(0.97, None), "3": one(0.90, None)}
    lift = {seed: one(0.0, 7000.0) for seed in ("1", "2", "3")}
    result = {"runs": {"ppo:PushCube-v2": seeds, "sac:Lift-v2": lift, "rlpd:PickCube-v2": {"1": one(0.99, 60.0)}}}
    made = training.table(result)
    assert "| | median | lower end 96.0 % | target: lower end above 95 % in 8 min: **met** | | 1.7 | |" in made
    assert "| final return 430 | target: final return of 425 or more in 120 min: **met** |" in made
    assert "in 20 min: **1 of 3 seeds measured** |" in made
    assert "| `ppo StackCube-v2` | | not measured | target: lower end above 80 % in 60 min |" in made
    lost = {"runs": {"ppo:PushCube-v2": {**seeds, "1": one(0.95, 150.0)}, "sac:Lift-v2": {**lift, "1": one(0, 8000.0)}}}
    assert training.table(lost).count("**not met**") == 1  # not above; two of three returns in time
    here = training.reported({"runs": {**result["runs"], "sac:Lift-v2": lift}}).splitlines()
    assert any(line.endswith("| 92.0 to 99.0 % | 0.00 M | 1.7 |") for line in here if "`ppo PushCube-v2`" in line)
    assert any("425 ± 25" in line and line.endswith("| return 430 | 0.00 M | 1.7 |") for line in here)
    assert any("`ppo StackCube-v2`" in line and "| not measured | | |" in line for line in here)
    stopped = {"1": one(0.9, 60.0), "2": {**one(0.0, None), "tested": None, "validated": 0.516}}
    made = training.table({"runs": {"ppo:StackCube-v2": stopped}})
    assert "| `ppo StackCube-v2` | 2 | not yet; 51.6 % in validation | - | 1,000 | - | 1.7 |" in made
    assert "| lower end 90.0 % | target: lower end above 80 % in 60 min: **1 of 3 seeds measured** |" in made
    only = training.table({"runs": {"ppo:StackCube-v2": {"2": stopped["2"]}}})
    assert "| `ppo StackCube-v2` | | not measured | target: lower end above 80 % in 60 min |" in only
    rates = {"rate": 0.865, "low": 0.833, "high": 0.892}
    aims = training.aims({"cells": {"StackCube-v2": {"diffusion": {"100": {"1": {"tested": rates}}}}}})
    assert "| 85 % | 86.5 % [83.3, 89.2] | by the estimate, not by the lower end of the interval |" in aims
    assert aims.count("not measured") == 5
    lines = training.throughput(result).splitlines()
    assert lines[2] == "| `ppo PushCube-v2` | 1 | 10 | 0 | 50 % | 25 % | 5 % | 10 % |"  # 1000 in 80 s, to ten
    assert lines[3] == "| `ppo PushCube-v2` | 2 | - | 0 | - | - | - | - |"


def test_a_students_time_has_that_of_its_teacher_and_a_run_its_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import learning

    student, teacher = {"seconds": 600.0, "cpu_seconds": 900.0}, {"seconds": 120.5, "cpu_seconds": 200.0, "steps": 3}
    times = {"seconds": 120.5, "cpu_seconds": 200.0}
    assert learning.with_first(student, teacher, "teacher") == {
        "seconds": 720.5,
        "cpu_seconds": 1100.0,
        "teacher": times,
    }
    assert learning.with_first(student, {**teacher, "seconds": None}, "begin_from")["seconds"] is None
    assert learning.needed_first("distill:PickCube-v2") == ("teacher", "ppo:PickCube-v2", 9351)
    assert learning.needed_first("ppo:TrackVelocityRough-v1") == ("begin_from", "ppo:TrackVelocity-v1", 9351)
    assert learning.needed_first("ppo:PickCube-v2") is learning.needed_first("rlpd:PickCube-v2") is None
    assert learning.limits("rfcl:PegInsertionSide-v2", loaded=False) == ["--minutes", "90"]
    assert learning.limits("rfcl:PegInsertionSide-v2", loaded=True) == ["--minutes", "360"]
    for run in ("ppo:StackCube-v2", "ppo:PickCube-v2"):
        assert learning.limits(run, loaded=False) == []  # its recipe says
    assert learning.limits("ppo:PickCube-v2", loaded=True) == ["--minutes", "240"]


def test_the_table_of_robosuites_benchmark_says_what_is_measured(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import robosuite

    curve = [[100, 1.0, 0.0, 10.0], [950, 9.0, 1.0, 300.0], [1000, 10.0, 1.0, 400.0]]
    assert robosuite.final_return(curve) == 350.0 and robosuite.final_return([]) is None
    whole, part = {"final": 431.4, "steps": 1_250_048}, {"final": 200.0, "steps": 500_000}
    lines = robosuite.table({"cells": {"Lift-v2": {"panda": {"osc_pose": {"1": whole, "2": part}}}}}).splitlines()
    assert len(lines) == 2 + 9 and lines[0].count("|") == 10
    assert lines[2].startswith("| Lift-v2 | 431<br>200 after 0.50 M | 425 ± 25 | not measured | 291 ± 42 |")
    assert sum(line.count("not measured") for line in lines) == 9 * 4 - 1
    recipe = robosuite.recipe("TwoArmPegInHole-v2", "sawyer", "joint_vel_pid", 1000)
    assert (recipe.env["robot"], recipe.env["control"], recipe.steps) == ("sawyer,sawyer", "joint_vel_pid", 1000)
    assert recipe.settings == robosuite.recipe("Lift-v2", "panda", "osc_pose", 1000).settings
    # what benchmarks/learning.py has measured with the same recipe is not trained again
    file, one = tmp_path / "learning.json", {"steps": robosuite.STEPS, "curve": curve}
    assert robosuite.known("Lift-v2", "panda", "osc_pose", robosuite.STEPS, 7, file) is None
    file.write_text(json.dumps({"runs": {"sac:Lift-v2": {"7": one}, "sac:Stack-v2": {"7": one}}}))
    asked = [
        ("Lift-v2", "panda", "osc_pose", robosuite.STEPS, 7),
        ("Stack-v2", "panda", "osc_pose", robosuite.STEPS, 7),
    ]
    asked += [("Lift-v2", "panda", "osc_pose", 64, 7), ("Lift-v2", "panda", "osc_pose", robosuite.STEPS, 8)]
    asked += [("Lift-v2", robot, control, robosuite.STEPS, 7) for robot, control in robosuite.CELLS[1:]]
    assert [robosuite.known(*words, file) for words in asked] == [one, *[None] * 6]


def test_the_tables_of_homes_stand_beside_the_published_ones() -> None:
    homes = script("homes_tables", "docs")
    published = json.loads(homes.PUBLISHED.read_text())
    pick = published["tables"]["6"]
    won, late = ["straightforward_success", 140, True], ["too_slow_failure", None, False]
    over = ["success_then_excessive_collisions", 150, False]
    episodes = [
        {"published": one, "calibrated": one, "none": won, "force_at_success": 10.0, "force": sum_, "largest": 5.0}
        for one, sum_ in ((won, 0.0), (won, 0.0), (over, 6000.0), (late, 40.0))
    ]
    for one in episodes:
        one["object"] = "003_cracker_box"
    entries = {"objects/pick/nine": {"episodes": dict(enumerate(episodes))}}
    found = homes.Found({"entries": entries})
    lines = homes.beside(pick, found).splitlines()
    at = lines.index(next(line for line in lines if "**expert here**" in line))
    assert lines[at - 3].startswith("| tidy house | 003 cracker box | RL-Per | 71.63 | 62.80 | 60.91 |")  # as printed
    ours = "| tidy house | 003 cracker box | **expert here**, 4 | 75.0 [30, 95] | 50.0 | 50.0 | 0.0 | 0.0 | 25.0 |"
    assert lines[at] == f"{ours} 0.0 | 0.0 | 0.0 | 0.0 | 25.0 |"
    assert sum("**expert here**" in line for line in lines) == 2 and len(lines) == 2 + 69 + 2  # and tidy house, all
    assert homes.ours("place", "set_table", "all") == ("objects/place/013_apple", "objects/place/nine:024_bowl")
    push = json.loads(homes.PUSH.read_text())
    assert "| Pick | 4 | 5,000 | 75.0 [30, 95] | 5,135 | 75.0 [30, 95] | 100.0 [51, 100] |" in homes.limits(push, found)
    assert "| Place | 0 | 7,500 | not measured |" in homes.limits(push, found)
    assert "| Pick, expert | 50 % | 20 | 1,530 | 4,212 | 5,106 | 6,000 | 5 | 5 |" in homes.forces(found)
    episodes[0]["published"] = ["lost", None, False]
    with pytest.raises(SystemExit, match="no column of the published table has the mode lost"):
        homes.beside(pick, found)


def test_the_published_tables_of_homes_add_up_and_have_our_modes() -> None:
    """Modes of a row come to 100 %, as printed to 1 %; those of success to SoR; names are those of our labels."""
    tables = json.loads(script("homes_tables", "docs").PUBLISHED.read_text())["tables"]
    assert {number: len(one["rows"]) for number, one in tables.items()} == {
        **dict.fromkeys(("6", "7", "8", "9"), 69),
        **dict.fromkeys(("10", "11", "12", "13"), 4),
    }
    for one in tables.values():
        labels = subtask_labels(one["subtask"])
        assert set(one["modes"].values()) == set(labels.modes)
        good = {mode.name for mode in labels.success}
        for _, _, _, once, _, *shares in one["rows"]:
            assert sum(shares) == pytest.approx(100, abs=1.0)
            won = [share for share, name in zip(shares, one["modes"].values(), strict=True) if name in good]
            assert sum(won) == pytest.approx(once, abs=0.5)
