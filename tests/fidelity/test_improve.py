"""The search for settings. The reference is a reality that was simulated with known ones."""

from __future__ import annotations

import json
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest

import manikin
from manikin.cli import main
from manikin.errors import ConfigError, DataError, DivergedError, UnknownNameError
from manikin.fidelity import Recording, fidelity_metrics, read_reality, write_summary
from manikin.fidelity.recordings.recording import ARM
from manikin.fidelity.recordings.synthetic import averaged
from manikin.fidelity.simulation.improve import Improved, improve, parse_fidelity_parameter
from manikin.fidelity.simulation.rollout import simulate
from manikin.fidelity.simulation.run import run_tasks
from manikin.fidelity.simulation.settings import Settings, read_settings, settings_toml
from manikin.sysid.methods import Cma

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted((ROOT / "examples" / "fidelity").glob("*.toml"))
START = Settings(physics_hz=50)
TRUTH = replace(START, hand_mass=0.7)
SEARCH = {"start": START, "metrics": ("torque",), "mode": "paper", "repeats": 1, "batch": 4}
LONG = {**SEARCH, "method": Cma(candidates=28)}


@pytest.fixture(scope="module")
def reality() -> dict[int, Recording]:
    """Tasks 9 and 10 with a lighter hand, five repeats of another seed."""
    return {task: averaged(simulate(task, TRUTH, seed=5, repeats=5)) for task in (9, 10)}


@pytest.fixture(scope="module")
def found(reality: dict[int, Recording]) -> Improved:
    return improve(reality, ["hand_mass=0.4:1.2"], **LONG)


def test_a_mass_is_found_again_also_without_the_task_that_is_scored(
    reality: dict[int, Recording], found: Improved
) -> None:
    assert found.settings.hand_mass == pytest.approx(0.7, abs=0.03) and found.loss < 0.15
    assert set(found.held_out) == {9, 10} and found.subgroups == {}
    for task, one in found.held_out.items():
        assert one.settings.hand_mass == pytest.approx(0.7, abs=0.03)
        assert abs(one.after["torque"]) < 0.2 < 0.5 < abs(one.before["torque"])
        alone = fidelity_metrics(reality[task], simulate(task, one.settings), "paper")[0]
        assert one.after["torque"] == pytest.approx(alone["torque"], abs=1e-6)
    low, high = found.profile["hand_mass"]
    assert min(low, high) > 3 * found.loss  # the recordings determine it


def test_what_is_held_out_does_not_know_its_task(reality: dict[int, Recording], found: Improved) -> None:
    louder = reality[10].arm.copy()
    louder[..., ARM["torque"]] *= 1.5
    other = {**reality, 10: replace(reality[10], arm=louder)}
    again = improve(other, ["hand_mass=0.4:1.2"], **LONG)
    assert again.held_out[10].settings == found.held_out[10].settings
    assert again.held_out[9].settings != found.held_out[9].settings


def test_what_the_recordings_do_not_show_leaves_the_loss_as_it_is(reality: dict[int, Recording]) -> None:
    """The friction of the table says nothing about the arm before it touches the object."""
    search = {**SEARCH, "method": Cma(candidates=4)}
    early = reality[9].arm.copy()
    early[:, 40:] = np.nan
    still = {9: replace(reality[9], arm=early)}
    found = improve(still, ["torsional_friction=0.001:0.02:log"], **search)
    assert found.held_out == {} and found.profile["torsional_friction"] == pytest.approx(
        (found.loss, found.loss), rel=1e-3
    )


def test_a_value_is_driven_to_the_recorded_one_and_not_to_zero(reality: dict[int, Recording]) -> None:
    """The lightest hand of the range would have the least of it."""
    found = improve({9: reality[9]}, ["hand_mass=0.4:1.2"], **{**LONG, "metrics": ("max_torque",)})
    assert found.settings.hand_mass == pytest.approx(0.7, abs=0.03) and found.loss < 0.15


def test_recordings_are_refused_and_masked_as_for_a_score(reality: dict[int, Recording], tmp_path: Path) -> None:
    """Of the mode paper, rows of zeros do not count; the loss is then that of the recording without them."""
    search = {**SEARCH, "method": Cma(candidates=4)}
    zeros = reality[9].arm.copy()
    zeros[:, 60:] = 0
    spoilt = {9: replace(reality[9], arm=zeros)}
    hidden = improve(spoilt, ["hand_mass=0.4:1.2"], **search)
    early = reality[9].arm.copy()
    early[:, 60:] = np.nan
    expected = improve({9: replace(reality[9], arm=early)}, ["hand_mass=0.4:1.2"], **search)
    assert hidden.loss == expected.loss and "zero_rows" in hidden.masked
    shown = improve(spoilt, ["hand_mass=0.4:1.2"], **search, mask=())
    assert shown.loss != expected.loss and shown.masked == ()
    with pytest.raises(ConfigError, match="masks nothing"):
        improve(spoilt, ["hand_mass=0.4:1.2"], **{**search, "mode": "released", "mask": ("zero_rows",)})
    millimetres = reality[9].arm.copy()
    millimetres[..., ARM["pos"]] *= 1000
    with pytest.raises(DataError, match=r"units, arm .*millimetres"):
        improve({9: replace(reality[9], arm=millimetres)}, ["hand_mass=0.4:1.2"], **search)
    with pytest.raises(ConfigError, match="task 9: torque is not known of the recording"):
        improve({9: replace(reality[9], arm=early * np.nan)}, ["hand_mass=0.4:1.2"], **search)


def test_a_start_that_breaks_down_is_an_error(reality: dict[int, Recording]) -> None:
    with pytest.raises(DivergedError, match=r"task 9 breaks down with .*hand_mass"):
        improve({9: reality[9]}, ["damping=0:1"], **{**SEARCH, "start": replace(START, hand_mass=1e13)})


def test_words_of_single_tasks_are_scaled_and_not_replaced(reality: dict[int, Recording]) -> None:
    start = replace(START, cap="fitted", delay="fitted")
    for word, said in (("cap=20:60", "cap begins as 'fitted'.* Vary cap_factor"), ("delay=0:1", "Vary delay_factor")):
        with pytest.raises(ConfigError, match=said):
            improve(reality, [word], **{**SEARCH, "start": start})
    twice = replace(start, cap_factor=0.5, delay_factor=2.0)
    for task in (3, 5):
        assert twice.cap_of(task) == pytest.approx([0.5 * x for x in start.cap_of(task)])
        assert twice.delay_of(task) == 2 * start.delay_of(task)
    assert twice.cap_of(3) != twice.cap_of(5) and START.per_task == () and start.per_task == ("cap", "delay")
    assert parse_fidelity_parameter("cap_factor=0.5:1.5").unit(start) == 0.5


def test_candidates_that_break_down_lose(reality: dict[int, Recording]) -> None:
    search = {**SEARCH, "method": Cma(candidates=8)}
    found = improve({9: reality[9]}, ["hand_mass=0.1:1e13:log"], **search)
    assert np.isfinite(found.loss) and found.loss <= 1 and found.settings.hand_mass < 100


def test_a_search_that_was_killed_goes_on(reality: dict[int, Recording], tmp_path: Path) -> None:
    search: dict[str, Any] = {**SEARCH, "method": Cma(candidates=8), "folder": tmp_path}
    whole = improve({9: reality[9]}, ["hand_mass=0.4:1.2"], **{**search, "folder": None})

    def stop(candidates: int) -> None:
        nonlocal simulated
        simulated += candidates
        if simulated > 4:
            raise KeyboardInterrupt

    simulated = 0
    with pytest.raises(KeyboardInterrupt):
        improve({9: reality[9]}, ["hand_mass=0.4:1.2"], **search, on_candidates=stop)
    lines = (tmp_path / "candidates.jsonl").read_text().count("\n")
    begun = json.loads((tmp_path / "candidates.jsonl").read_text().splitlines()[0])["line"]["search"]
    assert begun["versions"] == {"manikin": manikin.__version__, "mujoco": mujoco.__version__}
    with pytest.raises(DataError, match="resume"):
        improve({9: reality[9]}, ["hand_mass=0.4:1.2"], **search)
    with pytest.raises(DataError, match="other settings"):
        improve({9: reality[9]}, ["hand_mass=0.4:1.3"], **search, resume=True)
    again = improve({9: reality[9]}, ["hand_mass=0.4:1.2"], **search, resume=True)
    assert again.candidates_per_minute > 0 and again.seconds > 0 and whole.candidates == again.candidates
    assert again == whole and (tmp_path / "candidates.jsonl").read_text().count("\n") > lines > 4


@pytest.mark.parametrize(
    ("words", "error", "said"),
    [
        (["table_frictoin=0:1"], UnknownNameError, "Did you mean 'table_friction'"),
        (["tare=0:1"], UnknownNameError, "setting to search for 'tare'"),
        (["table_friction"], ConfigError, "a parameter reads NAME=LOW:HIGH"),
        (["table_friction=a:b"], ConfigError, "a parameter reads NAME=LOW:HIGH"),
        (["table_friction=0.1:nan"], ConfigError, "a parameter reads NAME=LOW:HIGH"),
        (["table_friction=0.1:1:tied"], ConfigError, "a parameter reads NAME=LOW:HIGH"),
        (["table_friction=1:0.1"], ConfigError, "reversed or empty"),
        (["rolling_friction=0:1:log"], ConfigError, "must begin above 0"),
        (["table_friction=-1:1"], ConfigError, "table_friction must be at least 0"),
        ([], ConfigError, "name each setting to search for once"),
        (["damping=0:1", "damping=1:2"], ConfigError, "name each setting to search for once"),
    ],
)
def test_bad_parameters_are_named(
    reality: dict[int, Recording], words: list[str], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        improve(reality, words, **SEARCH)


def test_bad_options_are_named(reality: dict[int, Recording]) -> None:
    with pytest.raises(UnknownNameError, match=r"unknown metric 'torq'.*Did you mean 'torque'"):
        improve(reality, ["damping=0:1"], metrics=("torq",))
    with pytest.raises(ConfigError, match="at least one task"):
        improve({}, ["damping=0:1"])


def test_ranges_and_shares_of_them() -> None:
    one = parse_fidelity_parameter("rolling_friction=1e-6:1e-2:log")
    assert one.value(0.5) == pytest.approx(1e-4) and one.unit(Settings()) == pytest.approx(0.5)
    line = parse_fidelity_parameter("damping=1:3")
    assert line.unit(Settings()) == 0 and line.value(0.25) == 1.5
    assert parse_fidelity_parameter("cap=20:60").unit(Settings()) == 0.25  # 30 degrees/s in every task


def test_the_command_writes_settings_that_run_takes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    real, config = tmp_path / "real", tmp_path / "start.toml"
    config.write_text("physics_hz = 50\n")
    for task in (9, 10):
        one = averaged(simulate(task, TRUTH, seed=5, repeats=4))
        zeros = one.arm.copy()
        zeros[:, 70:74] = 0  # which the mode paper masks
        write_summary(replace(one, arm=zeros), real)
    words = ["--vary", "hand_mass=0.4:1.2", "--tasks", "9", "10", "--metrics", "torque", "--mode", "paper"]
    words += ["--config", str(config)]
    more = ["--candidates", "8", "--repeats", "1", "--reality", str(real), "--out", str(tmp_path / "out")]
    assert main(["fidelity", "improve", *words, *more]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "each task with the settings found without it, paper" in said and "hand_mass" in said
    told = json.loads((tmp_path / "out" / "improved.json").read_text())
    settings = read_settings(tmp_path / "out" / "improved.toml")
    assert settings.hand_mass == told["settings"]["hand_mass"] != 1.0
    assert set(told["held_out"]) == {"9", "10"} and told["loss"] < 1
    assert told["candidates_per_minute"] == pytest.approx(60 * told["candidates"] / told["seconds"])
    assert f"{told['candidates_per_minute']:.1f} a minute" in said and told["processor_seconds"] > 0
    scored = ["--reality", str(real), "--tasks", "9", "10", "--mode", "paper", "--out", str(tmp_path / "ran")]
    assert main(["fidelity", "run", "--config", str(config), *scored]) == 0
    capsys.readouterr()
    ran = json.loads((tmp_path / "ran" / "score.json").read_text())["simulations"][0]["tasks"]
    for task, one in told["held_out"].items():  # the same recordings, masks and formulas
        assert one["before"] == pytest.approx(ran[task]["values"], rel=1e-5, abs=1e-6)
    monkeypatch.delenv("MANIKIN_DATA", raising=False)
    assert main(["fidelity", "improve", "--vary", "hand_mass=0.4:1.2"]) == 2
    assert "there are no recordings" in capsys.readouterr().err


def test_settings_are_written_as_they_are_read(tmp_path: Path) -> None:
    some = Settings(cap="fitted", delay=0.25, damping=(1, 2, 3, 4, 5, 6), rolling_friction=1e-5, tare=False)
    (tmp_path / "a.toml").write_text(settings_toml(some))
    assert read_settings(tmp_path / "a.toml") == some and settings_toml(Settings()) == ""


@pytest.mark.parametrize("file", EXAMPLES, ids=[file.stem for file in EXAMPLES])
def test_an_example_says_how_to_run_it_and_comes_nearer_than_the_default(file: Path, data_root: Path) -> None:
    assert f"manikin fidelity run --config examples/fidelity/{file.name}" in file.read_text()
    real = read_reality(data_root / "collins2020" / "real_mean_10hz", 3)
    both = [run_tasks(one, (3,), repeats=4).recordings[3] for one in (Settings(), read_settings(file))]
    usual, found = (fidelity_metrics(real, one, "paper")[0] for one in both)
    for name in ("euclidean", "velocity", "object_translation"):
        assert found[name] < 0.5 * usual[name], name


def test_the_page_shows_the_example_that_it_names() -> None:
    page = (ROOT / "docs" / "fidelity.md").read_text()
    shown = page.split("as `examples/fidelity/smooth.toml` does:\n\n```toml\n")[1].split("```")[0]
    assert tomllib.loads(shown) == read_settings(ROOT / "examples" / "fidelity" / "smooth.toml").changed
    assert all(f"`{file.name}`" in page or f"fidelity/{file.name}`" in page for file in EXAMPLES)
