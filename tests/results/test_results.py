"""The store of results: what is added is found again, once, by many writers; rates and tests; export and import."""

from __future__ import annotations

import csv
import hashlib
import json
import multiprocessing
import os
import shlex
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from manikin.cli import main
from manikin.errors import ConfigError, DataError, UnknownNameError
from manikin.eval.protocol import Protocol
from manikin.eval.stats import mcnemar_exact, wilson
from manikin.learn.run.recipe import Recipe, load_recipe
from manikin.machine import machine

pytest.importorskip("duckdb", reason="needs pip install 'manikin[results]'")

import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq

from manikin.results import COLUMNS, Result, Store
from manikin.results.compare import compare_runs, find_run, rates
from manikin.results.intake import results_of
from manikin.results.sinks import open_sink, send


def result(policy: str, won: str, *, protocol: str = "a" * 64, task: str = "PickCube-v2", **run: Any) -> Result:
    """An evaluation of some seeds: ``1`` won, ``0`` lost, ``-`` not played."""
    episodes = [
        {
            "task": task,
            "named": task,
            "seed": 100 + k,
            "episode_index": 0,
            "success": x == "1",
            "success_once": x == "1",
            "success_at_end": False,
            "steps": 50,
            "mode": "straightforward_success" if x == "1" else "dropped",
            "health": "ok",
        }
        for k, x in enumerate(won)
        if x != "-"
    ]
    about = {
        "kind": "evaluation",
        "name": "short",
        "created": "2026-01-01",
        "policy": policy,
        "protocol_hash": protocol,
    }
    return Result({**about, "device": "cpu", "healthy": True, "complete": True, **run}, episodes)


def training() -> Result:
    """With a curve, a number of the whole run, and a page."""
    about = {"kind": "training", "name": "run", "created": "2026", "policy": "ppo-PickCube-v2"}
    metrics = [{"name": "loss", "step": 10 * k, "value": 1 / 2**k} for k in (1, 2)]
    return Result(about, metrics=[*metrics, {"name": "seconds", "step": None, "value": 0.1 + 0.2}], page=b"a page")


def test_what_is_added_twice_is_there_once(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    assert store.runs() == [] and store.query("SELECT count(*) AS n FROM episodes") == [{"n": 0}]
    names = {store.add(result("a", "110")) for _ in range(3)}
    other = store.add(result("a", "111"))
    assert len(names) == 1 and other not in names
    moved = store.add(result("a", "110", source="/somewhere/else"))
    assert moved in names  # the same measurement from another file
    assert len(store.runs()) == 2
    found = store.query("SELECT seed, success FROM episodes WHERE run = ? ORDER BY seed", [other])
    assert found == [{"seed": 100 + k, "success": True} for k in range(3)]


def _writer(folder: str, number: int) -> None:
    store = Store(folder)
    for k in range(6):
        store.add(result(f"policy{number}", f"{k:04b}"))
        store.add(result("shared", f"{k:04b}"))


def test_many_write_at_once_and_nothing_is_lost(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_writer, args=(str(tmp_path), k)) for k in range(2)]
    for one in writers:
        one.start()
    for one in writers:
        one.join()
        assert one.exitcode == 0
    counts = {
        row["policy"]: row["n"] for row in Store(tmp_path).query("SELECT policy, count(*) n FROM runs GROUP BY 1")
    }
    assert counts == {"policy0": 6, "policy1": 6, "shared": 6}
    assert Store(tmp_path).query("SELECT count(*) AS n FROM episodes") == [{"n": 72}]
    assert not [name for _, _, files in os.walk(tmp_path) for name in files if name.startswith(".")]


def test_a_result_of_which_writing_was_cut_off_is_not_seen(tmp_path: Path) -> None:
    store = Store(tmp_path)
    name = store.add(result("a", "11"))
    (tmp_path / "runs" / f"{name}.parquet").unlink()  # it is written last
    assert store.runs() == [] and store.query("SELECT * FROM episodes") == []
    assert store.add(result("a", "11")) == name and len(store.query("SELECT * FROM episodes")) == 2


def test_rates_are_wilsons_and_the_best_comes_first(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for policy, won in (("low", "1000"), ("high", "1110")):
        store.add(result(policy, won))
    high, low = rates(store)
    assert (high.run["policy"], high.successes, high.episodes) == ("high", 3, 4)
    assert (low.interval.low, low.interval.high) == pytest.approx((wilson(1, 4).low, wilson(1, 4).high))
    assert high.failures == {"dropped": 1}


def test_two_policies_are_compared_on_the_episodes_that_both_played(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.add(result("a", "1111110011-"))
    store.add(result("b", "1100000010 1".replace(" ", "")))
    (one,) = compare_runs(store, "a", "b")
    p = one.paired
    assert (p.both, p.only_first, p.only_second, p.neither) == (3, 5, 0, 2) and one.alone == 1
    assert p.difference.estimate == pytest.approx(0.5) and p.p_value == pytest.approx(mcnemar_exact(5, 0))


def test_what_cannot_be_compared_is_said(tmp_path: Path) -> None:
    store = Store(tmp_path)
    with pytest.raises(ConfigError, match="no result 'a'; there are none"):
        find_run(store, "a")
    store.add(result("a", "11"))
    store.add(result("b", "11", protocol="b" * 64))
    store.add(result("c", "--11"))
    with pytest.raises(ConfigError, match=r"different protocols.*short \(aaaaaaaaaaaa\) and short \(bbbbbbbbbbbb\)"):
        compare_runs(store, "a", "b")
    with pytest.raises(ConfigError, match="no episode in common"):
        compare_runs(store, "a", "c")
    newest = store.add(result("a", "10", created="2026-02-01"))
    assert find_run(store, "a")["run"] == newest == find_run(store, newest[:8])["run"]


def test_questions_reach_the_tables_and_nothing_else(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.add(result("a", "11"))
    with pytest.raises(ConfigError, match="tables and columns: runs: run, schema_version"):
        store.query("SELECT nothing FROM runs")
    secret = tmp_path / "secret.csv"
    secret.write_text("a\n1\n")
    for question in (f"SELECT * FROM '{secret}'", f"COPY runs TO '{tmp_path / 'out.csv'}'", "INSTALL httpfs"):
        with pytest.raises(ConfigError, match=r"cannot be answered|only answers questions"):
            store.query(question)
    assert not (tmp_path / "out.csv").exists()
    with suppress(ConfigError):
        store.query("DROP TABLE runs")  # of a copy
    assert len(store.runs()) == 1


def test_export_and_import_carry_everything_but_pages(tmp_path: Path) -> None:
    store = Store(tmp_path / "one")
    store.add(result("a", "110"))
    store.add(training())
    store.export(tmp_path / "all.parquet")
    store.export(tmp_path / "all.csv")
    with (tmp_path / "all.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["success"] for row in rows if row["policy"] == "a"] == ["true", "true", "false"] and len(rows) == 7
    assert [row["value"] for row in rows if row["metric"] == "loss"] == ["0.5", "0.25"]
    other = Store(tmp_path / "two")
    assert other.take_in(tmp_path / "all.parquet") == other.take_in(tmp_path / "all.parquet") == 2
    assert other.query("SELECT * EXCLUDE page FROM runs") == store.query("SELECT * EXCLUDE page FROM runs")
    for table in ("episodes", "metrics"):
        assert other.query(f"SELECT * FROM {table} ORDER BY ALL") == store.query(f"SELECT * FROM {table} ORDER BY ALL")
    for do, said in ((store.export, "exported as"), (store.take_in, "imported from")):
        with pytest.raises(ConfigError, match=rf"{said} \.parquet or \.csv; not all\.xlsx"):
            do(tmp_path / "all.xlsx")


def test_both_kinds_of_file_hold_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Also words that look like nothing or like a number, quotes, several lines, and all digits of a number."""
    store = Store(tmp_path / "one")
    for policy in ("", "NULL", "1", 'a "b", c\nd', "é"):
        odd = result(policy, "10", machine=None, policy_seed=2**62)
        episodes = [{**row, "sum_reward": 0.1 + 0.2, "max_reward": float("inf"), "mode": ""} for row in odd.episodes]
        store.add(Result(odd.run, [*episodes, {**episodes[0], "seed": 7, "force_peak": None, "success": None}]))
    store.add(
        Result({"kind": "benchmark", "name": "speed", "created": "2026"}, metrics=[{"name": "x", "value": 1e300}])
    )
    store.add(training())
    for kind in ("parquet", "csv"):
        file = str(tmp_path / f"all.{kind}")
        store.export(file)
        assert main(["results", "import", file, "--store", str(tmp_path / kind)]) == 0
        assert "7 results now in" in capsys.readouterr().out
    for table in COLUMNS:
        columns = "* EXCLUDE page" if table == "runs" else "*"
        rows = [
            Store(tmp_path / one).query(f"SELECT {columns} FROM {table} ORDER BY ALL")
            for one in ("one", "parquet", "csv")
        ]
        assert rows[0] == rows[1] == rows[2] and rows[0]


def test_what_was_imported_is_completed_when_the_result_itself_is_added(tmp_path: Path) -> None:
    """Also an import of a file that has no numbers, as older ones."""
    store, other = Store(tmp_path / "one"), Store(tmp_path / "two")
    name = store.add(training())
    store.export(tmp_path / "all.parquet")
    older = pq.read_table(tmp_path / "all.parquet")
    older = older.filter(pa.compute.is_null(older["metric"])).drop_columns(["metric", "step", "value"])
    pq.write_table(older, tmp_path / "older.parquet")
    other.take_in(tmp_path / "older.parquet")
    assert other.query("SELECT * FROM metrics") == [] and other.runs()[0]["page"] == ""
    for one in (training(), Result(training().run, metrics=training().metrics)):  # then without its page: it stays
        assert other.add(one) == name
        assert len(other.query("SELECT * FROM metrics")) == 3
        assert (other.folder / other.runs()[0]["page"]).read_bytes() == b"a page"
    other.take_in(tmp_path / "all.parquet")
    assert len(other.query("SELECT * FROM metrics")) == 3 and other.runs() == store.runs()


def test_what_is_no_export_is_refused(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    pq.write_table(pa.table({"a": [1]}), tmp_path / "a.parquet")
    with pytest.raises(DataError, match="not an export of results: it lacks run, schema_version"):
        store.take_in(tmp_path / "a.parquet")
    (tmp_path / "b.parquet").write_bytes(b"no")
    with pytest.raises(DataError, match="cannot be read"):
        store.take_in(tmp_path / "b.parquet")
    for text, said in (("a,b\n1,2\n", "lacks run, schema_version"), ("run,steps\na,many\n", "CSV conversion error")):
        (tmp_path / "f.csv").write_text(text)
        with pytest.raises(DataError, match=said):
            store.take_in(tmp_path / "f.csv")
    columns = {name: pa.nulls(1, kind) for of in COLUMNS.values() for name, (kind, _) in of.items()}
    pq.write_table(pa.table({**columns, "run": ["ab" * 32], "task": ["a"]}), tmp_path / "d.parquet")
    with pytest.raises(DataError, match="numbers of the run abababab and no row that says what it is"):
        store.take_in(tmp_path / "d.parquet")
    pq.write_table(pa.table({**columns, "run": ["ab" * 32], "schema_version": [99]}), tmp_path / "e.parquet")
    with pytest.raises(DataError, match="written by a newer manikin"):
        store.take_in(tmp_path / "e.parquet")
    pq.write_table(pa.table({**columns, "run": ["ab" * 32], "schema_version": ["one"]}), tmp_path / "g.parquet")
    with pytest.raises(DataError, match="is damaged: schema_version holds 'one'"):
        store.take_in(tmp_path / "g.parquet")
    columns |= {"schema_version": pa.array([1], pa.int32())}
    pq.write_table(pa.table({**columns, "run": ["../../evil"]}), tmp_path / "c.parquet")
    with pytest.raises(DataError, match=r"'\.\./\.\./evil' is not the id of a result"):
        store.take_in(tmp_path / "c.parquet")


def test_older_rows_are_read_and_newer_ones_refused(tmp_path: Path) -> None:
    store = Store(tmp_path)
    name = store.add(result("a", "1"))
    file = tmp_path / "runs" / f"{name}.parquet"
    older = pq.read_table(file).drop_columns(["page", "recipe_hash"])
    pq.write_table(older, file)
    assert store.runs()[0]["page"] is None and store.runs()[0]["policy"] == "a"
    place = older.column_names.index("schema_version")
    pq.write_table(older.set_column(place, "schema_version", pa.array([99], pa.int32())), file)
    with pytest.raises(DataError, match="written by a newer manikin"):
        store.runs()


def test_the_id_is_of_the_content(tmp_path: Path) -> None:
    """That of an evaluation is what it was in version 1 of the schema."""
    episode = {"task": "A-v1", "named": "A-v1", "seed": 1, "episode_index": 0, "success": True}
    about = {"kind": "evaluation", "name": "short", "created": "2026-01-01", "policy": "a", "protocol_hash": "a" * 64}
    first = Result({**about, "source": "x"}, [episode]).id
    assert first == "18f0633e132aca7f9e8abdce76ac4ed140fc8d89ceeaa081c1f35ac861188a48"
    assert Result({**about, "created": "2026-01-02"}, [episode]).id != first  # it says itself when it was made
    content = {"command": "python benchmarks/speed.py", "machine": "a", "rates": [1, 2]}
    (tmp_path / "speed.json").write_text(json.dumps(content))
    (tmp_path / "copied.json").write_text(json.dumps(content))
    os.utime(tmp_path / "copied.json", (0, 0))
    (tmp_path / "other.json").write_text(json.dumps({**content, "machine": "b"}))
    ids = [results_of(tmp_path / f"{name}.json")[0].id for name in ("speed", "copied", "other")]
    assert ids[0] == ids[1] != ids[2]


def test_evaluations_trainings_and_benchmarks_become_rows(tmp_path: Path, monkeypatch, capsys) -> None:
    """From the command line, with the environment variable set: an evaluation and a training of a moment."""
    monkeypatch.setenv("MANIKIN_RESULTS", str(tmp_path / "store"))
    protocol = tmp_path / "protocol.toml"
    words = Protocol(name="short", tasks=("PickCube-v2",), seeds=(1_000_000, 1_000_001), horizon=2)
    protocol.write_text(words.to_toml())
    folder = tmp_path / "eval"
    assert main(["eval", str(protocol), "--policy", "random", "--pictures", "0", "--out", str(folder)]) == 0
    assert "results: added to" in capsys.readouterr().out
    report = json.loads((folder / "report.json").read_text())
    store = Store(tmp_path / "store")
    (run,) = store.runs()
    assert (run["kind"], run["policy"], run["protocol_hash"]) == ("evaluation", "random", report["protocol"]["hash"])
    assert (tmp_path / "store" / run["page"]).read_text() == (folder / "report.html").read_text()
    rows = store.query("SELECT seed, steps, mode, sum_reward FROM episodes ORDER BY seed")
    told = report["per_task"][0]["per_episode"]
    assert [(r["seed"], r["steps"], r["mode"]) for r in rows] == [(e["seed"], e["length"], e["mode"]) for e in told]
    assert [r["sum_reward"] for r in rows] == pytest.approx([e["sum_reward"] for e in told])
    bench = tmp_path / "speed.json"
    bench.write_text(json.dumps({"command": "python benchmarks/speed.py", "rates": {"cpu": [10, 12.5]}, "note": "x"}))
    assert main(["results", "add", str(bench), str(folder)]) == 0
    numbers = store.query("SELECT name, value FROM metrics ORDER BY name")
    assert numbers == [{"name": "rates/cpu/0", "value": 10.0}, {"name": "rates/cpu/1", "value": 12.5}]
    assert len(store.runs()) == 2  # the evaluation was there
    capsys.readouterr()
    assert main(["results", "list"]) == 0
    said = capsys.readouterr().out
    assert "random" in said and "1 evaluation, 1 benchmark" in said
    assert main(["results", "query", "SELECT policy, count(*) AS n FROM runs GROUP BY 1 ORDER BY 1"]) == 0
    assert "random" in capsys.readouterr().out


def test_a_training_is_two_results_that_are_the_same_wherever_they_lie(tmp_path: Path) -> None:
    """A training of a moment, and the test of its policy."""
    recipe = Recipe(
        algorithm="ppo",
        task="PushCube-v2",
        steps=64,
        validation_episodes=4,
        test_episodes=4,
        env={"num_envs": 8},
        settings={"num_steps": 4, "minibatches": 2, "epochs": 1},
    )
    (tmp_path / "recipe.toml").write_text(recipe.to_toml())
    folder = tmp_path / "run"
    words = ["train", "--recipe", str(tmp_path / "recipe.toml"), "--out", str(folder), "--seed", "5", "--pictures", "0"]
    assert main([*words, "--set", "gamma=0.9", "--steps", "32"]) == 0
    training, tested = results_of(folder)
    assert (training.run["kind"], training.run["policy_seed"]) == ("training", 5)
    network = hashlib.sha256((folder / "policy.safetensors").read_bytes()).hexdigest()
    assert training.run["policy_sha256"] == tested.run["policy_sha256"] == network
    assert training.run["protocol_hash"] == tested.run["protocol_hash"] != ""
    assert json.loads(training.run["machine"]) == machine() and training.run["machine"] == tested.run["machine"]
    copy = shutil.copytree(folder, tmp_path / "another name")
    os.utime(copy / "progress.csv", (0, 0))
    assert results_of(copy)[0].id == training.id and results_of(copy)[1].id == tested.id
    # the command makes the same network again, and the recipe is in the row
    assert main([*shlex.split(training.run["command"])[1:], "--out", str(tmp_path / "again"), "--no-test"]) == 0
    (again,) = results_of(tmp_path / "again")
    assert (again.run["policy_sha256"], again.run["recipe_hash"]) == (network, training.run["recipe_hash"])
    said = Recipe.from_toml(training.run["recipe"])
    assert (said.settings["gamma"], said.steps, said.hash) == (0.9, 32, training.run["recipe_hash"])
    assert main(["train", "--resume", str(copy), "--steps", "64", "--no-test"]) == 0
    further = results_of(copy)[0]
    assert load_recipe(copy / "recipe.toml").steps == 64  # which the command names
    assert further.run["command"].endswith("recipe.toml' --seed 5") and further.id != training.id
    # as runs of before have it, whose file kept the limits of the beginning
    (copy / "recipe.toml").write_text(said.to_toml())
    assert results_of(copy)[0].run["command"].endswith("--seed 5 --steps 64")
    assert (tested.run["kind"], len(tested.episodes)) == ("evaluation", 4)
    store = Store(tmp_path / "store")
    store.add(training)
    assert store.query("SELECT max(step) AS most FROM metrics WHERE name = 'loss'") == [{"most": 32}]
    assert store.query("SELECT value FROM metrics WHERE name = 'tested/episodes'") == [{"value": 4.0}]


def test_a_store_that_cannot_be_written_loses_no_evaluation(tmp_path: Path, monkeypatch, capsys) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("MANIKIN_RESULTS", str(blocked))
    protocol = tmp_path / "protocol.toml"
    protocol.write_text(Protocol(name="short", tasks=("PickCube-v2",), seeds=(1_000_000,), horizon=1).to_toml())
    out = tmp_path / "eval"
    assert main(["eval", str(protocol), "--policy", "random", "--pictures", "0", "--out", str(out)]) == 0
    assert "not added" in capsys.readouterr().out and (out / "report.json").exists()


@pytest.mark.parametrize(
    "words, said",
    [
        (["add"], "takes folders of runs"),
        (["add", "nowhere"], "there is no nowhere"),
        (["compare", "a"], "takes two policies"),
        (["list", "a"], "takes nothing; got 1 words"),
        (["add", "README.md"], "not a report"),
    ],
)
def test_bad_words_say_what_is_valid(tmp_path: Path, monkeypatch, capsys, words: list[str], said: str) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "README.md").write_text("")
    assert main(["results", *words]) == 2
    assert said in " ".join(capsys.readouterr().err.split())


class _Sink:
    def __init__(self) -> None:
        self.said: list[Any] = []

    def begin(self, name: str, about: Any) -> None:
        self.said.append((name.rsplit("/", 1)[0], about["policy"]))

    def number(self, name: str, value: float, step: int) -> None:
        self.said.append((name, round(value, 4), step))

    def close(self) -> None:
        self.said.append("closed")


def test_sinks_are_told_the_numbers(tmp_path: Path) -> None:
    sink = _Sink()
    send(result("a", "1110"), sink)
    interval = wilson(3, 4)
    assert sink.said == [
        ("short/a", "a"),
        ("PickCube-v2/success", 0.75, 0),
        ("PickCube-v2/success_low", round(interval.low, 4), 0),
        ("PickCube-v2/success_high", round(interval.high, 4), 0),
        "closed",
    ]
    for word, error, said in (
        ("notion:x", UnknownNameError, "tensorboard"),
        ("tensorboard", ConfigError, "tensorboard:FOLDER"),
        ("wandb:mine", ConfigError, "pip install wandb"),
    ):
        with pytest.raises(error, match=said):
            open_sink(word)


def test_tensorboard_reads_what_was_sent(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="needs pip install 'manikin[learn]'")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    send(result("a", "1110"), open_sink(f"tensorboard:{tmp_path}"))
    (folder,) = tmp_path.iterdir()
    events = EventAccumulator(str(folder))
    events.Reload()
    assert [e.value for e in events.Scalars("PickCube-v2/success")] == [0.75]


def test_mlflow_shows_what_was_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mlflow = pytest.importorskip("mlflow", reason="needs pip install mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    address = (tmp_path / "runs").as_uri()
    send(result("a", "1110"), open_sink(f"mlflow:{address}"))
    (run,) = mlflow.MlflowClient(address).search_runs(
        [mlflow.MlflowClient(address).get_experiment_by_name("manikin").experiment_id]
    )
    assert run.info.status == "FINISHED" and run.data.metrics["PickCube-v2/success"] == 0.75
    assert run.data.tags["policy"] == "a"


def test_weights_and_biases_keeps_what_was_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("wandb", reason="needs pip install wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_DIR", str(tmp_path))
    send(result("a", "1110"), open_sink("wandb:mine"))
    (file,) = tmp_path.glob("wandb/offline-run-*/run-*.wandb")
    assert file.stat().st_size > 0
    assert "PickCube-v2/success 0.75" in " ".join(capfd.readouterr().err.split())  # its summary of the run
