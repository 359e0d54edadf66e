"""Films of an evaluation come with its page: into the store, onto the leaderboard, into a browser."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from browser import Browser, needs_browser
from manikin.cli import main
from manikin.eval.protocol import Protocol
from manikin.results import intake

pytest.importorskip("duckdb", reason="needs pip install 'manikin[results]'")
pytest.importorskip("av", reason="needs pip install 'manikin[video]'")

from manikin.results import Store
from manikin.results.board import Board, board_data, write_board
from manikin.results.intake import results_of


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of three short episodes with films."""
    folder = tmp_path_factory.mktemp("films")
    words = Protocol(name="short", tasks=("PushCube-v2",), seeds=(1, 2, 3), horizon=2)
    (folder / "protocol.toml").write_text(words.to_toml())
    options = ["--policy", "random", "--videos", "--pictures", "3", "--renderer", "rays", "--out", str(folder / "out")]
    assert main(["eval", str(folder / "protocol.toml"), *options]) == 0
    return folder / "out"


@pytest.fixture
def folder(evaluated: Path, tmp_path: Path) -> Path:
    return shutil.copytree(evaluated, tmp_path / "out")


def episodes(folder: Path, change: Any = None) -> list[dict[str, Any]]:
    """Those of the report, which is written again after a change."""
    report = json.loads((folder / "report.json").read_text())
    found: list[dict[str, Any]] = report["per_task"][0]["per_episode"]
    if change is not None:
        change(found)
        (folder / "report.json").write_text(json.dumps(report))
    return found


def test_the_report_says_which_film_is_whose(folder: Path) -> None:
    films = {one["seed"]: one["film"] for one in episodes(folder)}
    assert len(set(films.values())) == 3
    for seed, film in films.items():
        assert film.endswith(f"-{seed}.mp4") and (folder / film).read_bytes()[4:8] == b"ftyp"


def test_films_lie_beside_the_page_in_the_store_and_on_the_leaderboard(folder: Path, tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    (result,) = results_of(folder)
    store.add(result)
    (run,) = store.runs()
    write_board(store, tmp_path / "site")
    for place in (store.folder, tmp_path / "site"):
        page = place / run["page"]
        assert page.read_bytes() == (folder / "report.html").read_bytes() and result.note == ""
        for one in episodes(folder):
            assert (page.parent / one["film"]).read_bytes() == (folder / one["film"]).read_bytes()
    assert [row["films"] for row in board_data(store)["rates"]] == [3]


def test_films_beyond_the_limit_are_left_out_and_the_page_says_so(folder: Path, tmp_path: Path, monkeypatch, capsys):
    """Those of failures come first."""
    won = episodes(folder, lambda found: found[0].update(success=True))[0]["film"]
    failed = [one["film"] for one in episodes(folder)[1:]]
    monkeypatch.setattr(intake, "FILMS", sum((folder / film).stat().st_size for film in failed))
    assert main(["results", "add", str(folder), "--store", str(tmp_path / "store")]) == 0
    assert "1 of 3 films left out" in capsys.readouterr().out
    store = Store(tmp_path / "store")
    page, *films = store.files(store.runs()[0])
    assert sorted(Path(film).name for film in films) == sorted(Path(film).name for film in failed)
    text = (store.folder / page).read_text()
    assert "left out: films of a result may have" in text and won not in text and text.count("<video") == 2


def test_only_films_of_the_folder_are_taken(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.mp4").write_bytes(b"secret")
    (folder / episodes(folder)[1]["film"]).unlink()
    episodes(folder, lambda found: found[0].update(film="videos/../../secret.mp4"))
    (result,) = results_of(folder)
    assert (
        list(result.films) == [episodes(folder)[2]["film"]]
        and "2 of 3 films left out: there is no videos" in result.note
    )


@needs_browser
@pytest.mark.parametrize("served", [False, True])
def test_films_are_played_on_the_page_of_a_result(folder: Path, tmp_path: Path, served: bool) -> None:
    store = Store(tmp_path / "store")
    store.add(results_of(folder)[0])
    board = Board(store)
    board.open()
    url = board.url if served else write_board(store, tmp_path / "site").as_uri()
    try:
        with Browser(size=(1400, 900)) as page:
            page.goto(url)
            page.wait_for("document.querySelector('#table a') !== null")
            assert page.evaluate("document.querySelector('#table a').textContent") == "report, failures, films"
            page.goto(page.evaluate("document.querySelector('#table a').href"))
            page.wait_for("[...document.querySelectorAll('video')].filter(v => v.videoWidth > 0).length === 3")
            page.evaluate("void document.querySelector('video').play()")
            page.wait_for("document.querySelector('video').currentTime > 0")
            assert not [e for e in page.events if e.get("method") == "Runtime.exceptionThrown"]
    finally:
        board.close()
