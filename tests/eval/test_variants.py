"""SIMPLER's variants as settings of any task."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

import manikin
from manikin.cli import main
from manikin.errors import ConfigError, UnknownNameError
from manikin.eval.agreement.trials import delta_success_interval, trials
from manikin.eval.protocol import Protocol
from manikin.eval.ranking.ranks import shifts_of
from manikin.eval.ranking.runs import read_runs
from manikin.eval.variants import SETS, shifts, variants_of, vary
from manikin.spec.looks import Distractors, Looks

PLAIN = Protocol(
    name="p",
    tasks=("PickCube-v2#near", "PushCube-v2"),
    seeds=(3, 4),
    episodes={"PushCube-v2": (7,)},
    config={"PickCube-v2#near": {"spawn_half_size": 0.02}},
    horizon=2,
)


def test_the_variants_are_the_papers() -> None:
    """Reference: the paper's table of variants: 9 settings of a pick, 7 of a drawer; lamps, tilts of the head."""
    pick = variants_of("simpler", "PickCube-v2")
    assert len(pick) == 9 and len(variants_of("simpler", "GoogleOpenDrawer-v1")) == 7
    (plain, stone) = (one for one in variants_of("simpler", "GooglePlaceAppleInDrawer-v1") if one.shift == "table")
    assert [one.config["cabinet"] for one in (plain, stone)] == ["mk_station2", "mk_station3"]
    near = [one.shift for one in variants_of("simpler", "GoogleMoveNear-v1")]
    assert near.count("distractors") == 1 and near.count("table") == 2 and len(near) == 8
    by_shift = {shift: sum(v.shift == shift for v in pick) for shift in {v.shift for v in pick}}
    assert by_shift == {"": 1, "background": 2, "lighting": 2, "distractors": 2, "table": 2}
    by_name = {v.name: v for v in SETS["simpler-shifts"]}
    lamps, brighter, darker = (2.2, 0.7, 0.7), (3.6, 1.3, 1.3), (0.8, 0.8)
    for name, sums in (("brighter", brighter), ("darker", darker)):
        (factor,) = by_name[name].looks.lights.intensity.options
        assert factor == pytest.approx(sum(sums) / sum(lamps))
    counts = [by_name[f"distractors-{word}"].looks.distractors.count for word in ("less", "more")]
    assert counts == [len(("pepsi", "apple", "sponge", "orange")), 6]
    for name, tilt in (("camera-lower", 0.9351361), ("camera-higher", 0.6651361)):
        ((pitch, yaw, roll),) = by_name[name].looks.cameras.turn.options
        assert pitch == pytest.approx(0.7851361 - tilt) and yaw == roll == 0 and not by_name[name].averaged
    assert all(v.stand_in for v in pick if v.shift)
    with pytest.raises(UnknownNameError, match=r"'paper'.*simpler"):
        variants_of("paper", "PickCube-v2")


def test_a_protocol_with_variants_reads_back_and_has_its_own_hash() -> None:
    varied = vary(PLAIN, "simpler")
    assert len(varied.tasks) == 18 and varied.trials == 9 * 2 + 9 * 1
    assert "PickCube-v2#near-darker" in varied.tasks and "PushCube-v2#base" in varied.tasks
    assert varied.config["PickCube-v2#near-darker"] == {"spawn_half_size": 0.02}
    assert varied.seeds_of("PushCube-v2#table-solid") == (7,) and varied.seeds_of("PickCube-v2#near-base") == (3, 4)
    again = Protocol.from_toml(varied.to_toml())
    assert again.hash == varied.hash != PLAIN.hash and again.to_toml() == varied.to_toml()
    assert vary(PLAIN, "simpler-shifts").hash != varied.hash
    looks = {name: again.make_options(name).looks for name in again.tasks}
    for variant in SETS["simpler"]:
        assert looks[f"PushCube-v2#{variant.name}"] == variant.looks
    assert PLAIN.make_options("PushCube-v2").looks is None
    table = varied.variants["PushCube-v2#darker"]
    other = {**varied.variants, "PushCube-v2#darker": {**table, "ambient": {"Choice": {"options": [0.2]}}}}
    assert Protocol(**{**vars_of(varied), "variants": other}).hash != varied.hash


def vars_of(protocol: Protocol) -> dict[str, object]:
    return {name: getattr(protocol, name) for name in protocol.__dataclass_fields__}


def test_looks_of_the_protocol_stay_where_a_variant_says_nothing() -> None:
    dim = {"ambient": {"Choice": {"options": [0.1]}}}
    varied = vary(Protocol(name="p", tasks=("PushCube-v2",), seeds=(0,), looks=dim), "simpler")
    assert all(varied.make_options(name).looks.ambient is not None for name in varied.tasks)
    assert varied.make_options("PushCube-v2#brighter").looks.lights is not None


def test_what_cannot_be_is_named() -> None:
    with pytest.raises(ConfigError, match="has variants already"):
        vary(vary(PLAIN, "simpler"), "simpler")
    with pytest.raises(ConfigError, match=r"\[variants\] names PushCube-v2#x, not among its tasks PushCube-v2"):
        Protocol(name="p", tasks=("PushCube-v2",), seeds=(0,), variants={"PushCube-v2#x": {}})
    with pytest.raises(ConfigError, match="are one setting, and seed 0"):
        Protocol(
            name="p",
            tasks=("PushCube-v2#a", "PushCube-v2#b"),
            seeds=(0,),
            variants={"PushCube-v2#a": {"ambient": None}, "PushCube-v2#b": {"ambient": None}},
        )
    for around, said in ((("", 0.2, 0.3), "apart below"), ((3, 0.2, 0.1), "around is")):
        with pytest.raises(ConfigError, match=said):
            Distractors(around=around)
    with pytest.raises(ConfigError, match="cannot be drawn every step"):
        Distractors(around=("", 0.3, 0.25), every="step")
    with pytest.raises(UnknownNameError, match=r"'mug'.*cube"):
        manikin.make("PickCube-v2", looks=Looks(distractors=Distractors(around=("mug", 0.3, 0.25))))


def test_shifts_are_means_of_absolute_changes() -> None:
    names = [v.name for v in SETS["simpler-shifts"]]
    rates = dict(zip(names, (0.6, 0.5, 0.9, 0.6, 0.2, 0.7, 0.7, 0.0, 0.6, 0.1, 0.3), strict=True))
    outcomes = {f"PickCube-v2#near-{name}": dict(enumerate(trials(rate, 10))) for name, rate in rates.items()}
    (row,) = shifts("simpler-shifts", outcomes)
    assert row["task"] == "PickCube-v2#near" and row["base"] == 0.6 and row["variants"] == 9
    assert row["mean"] == pytest.approx((0.6 + 0.5 + 0.9 + 0.6 + 0.2 + 0.7 + 0.7 + 0.0 + 0.6) / 9)
    change = {"background": 0.2, "lighting": 0.2, "distractors": 0.1, "table": 0.3, "camera": 0.4}
    assert row["delta_success"] == pytest.approx(change)
    base, dark = (list(outcomes[f"PickCube-v2#near-{name}"].values()) for name in ("base", "camera-lower"))
    high = list(outcomes["PickCube-v2#near-camera-higher"].values())
    expected = delta_success_interval(base=base, shifts=[dark, high], clusters=range(10))
    assert row["interval"]["camera"] == [expected.low, expected.high] and expected.low < 0.4 < expected.high
    few = {name: dict(enumerate(trials(0.5, 4))) for name in ("PickCube-v2#base", "PickCube-v2#darker")}
    assert shifts("simpler", few) == []


def test_distractors_lie_around_the_object_and_not_near_it() -> None:
    """Reference: the rule itself, read from the compiled scenes and the cube's place."""
    (look,) = (v.looks for v in SETS["simpler"] if v.name == "distractors-more")

    def placed(rows: int, seeds: list[int]) -> list[np.ndarray]:
        env = manikin.make("PickCube-v2", num_envs=rows, looks=look)
        env.reset(seed=seeds)
        found = []
        for row in range(rows):
            model, data = env.model_data(row)
            ids = [i for i in range(model.ngeom) if model.geom(i).name.startswith("distractor/")]
            shown = [i for i in ids if model.geom_rgba[i, 3] > 0]
            found.append(np.concatenate([data.body("cube").xpos[:2][None], model.geom_pos[shown, :2]]))
        env.close()
        return found

    many = placed(8, list(range(8)))
    for places in many:
        gap = np.abs(places[1:] - places[0])
        assert (gap < 0.3 + 1e-5).all() and (np.linalg.norm(gap, axis=1) > 0.25 - 1e-5).all()
        assert len(gap) == 6
    assert np.array_equal(placed(1, [5])[0], many[5])


def test_eval_reports_each_variant_and_the_shifts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "p.toml"
    file.write_text(Protocol(name="p", tasks=("PushCube-v2",), seeds=(0, 1), horizon=2).to_toml())
    words = ["eval", str(file), "--variants", "simpler", "--policy", "random", "--pictures", "0", "--num-envs", "2"]
    torch.manual_seed(0)
    assert main([*words, "--out", str(tmp_path / "out")]) == 0
    told = capsys.readouterr().out.replace("\n", " ")
    assert "on average over 9 variants; mean change by shift [points]: background" in told
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert [task["named"] for task in report["per_task"]] == [f"PushCube-v2#{v.name}" for v in SETS["simpler"]]
    (row,) = report["variants"]["per_task"]
    assert row["task"] == "PushCube-v2" and row["mean"] == 0 and set(row["delta_success"].values()) == {0.0}
    assert "--variants simpler" in report["command"]
    page = (tmp_path / "out" / "report.html").read_text()
    assert "<h2>Variants</h2>" in page and page.count(">background<") == 1
    changes = shifts_of(read_runs([tmp_path / "out"]))
    assert [one.variant for one in changes] == [v.name for v in SETS["simpler"] if v.shift]
    assert all(one.paired and one.setting.word == "PushCube-v2#base" for one in changes)
    looks = [task["fingerprint"]["looks"] for task in report["per_task"]]
    assert len({json.dumps(one) for one in looks}) == 9
    assert main([*words[:3], "paper", "--out", str(tmp_path / "other")]) == 2
