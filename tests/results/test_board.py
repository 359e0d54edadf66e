"""The leaderboard in a real browser: from a file and served, filters, order, links, keys."""

from __future__ import annotations

import urllib.error
import urllib.request
from pathlib import Path

import pytest

from browser import Browser, needs_browser
from manikin.cli import main
from manikin.errors import ConfigError

pytest.importorskip("duckdb", reason="needs pip install 'manikin[results]'")

from manikin.results import Result, Store
from manikin.results.board import Board, board_data, render_board, write_board

EVIL = "</script><script>document.title = 'changed'</script>"


def evaluation(policy: str, won: str, task: str = "PickCube-v2", **about: object) -> Result:
    episodes = [
        {
            "task": task,
            "named": task,
            "seed": k,
            "episode_index": 0,
            "success": x == "1",
            "mode": "straightforward_success" if x == "1" else "dropped",
        }
        for k, x in enumerate(won)
    ]
    run = {
        "kind": "evaluation",
        "name": "short",
        "created": "2026-01-01T00:00:00",
        "policy": policy,
        "protocol_hash": "a" * 64,
        "device": "cpu",
        "healthy": True,
        "complete": True,
        "command": "manikin eval",
        **about,
    }
    page = f"<!doctype html><title>{policy}</title><style>p {{color: rgb(1, 2, 3)}}</style><p>failures of {policy}"
    return Result(run, episodes, page=page.encode())


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store(tmp_path / "store")
    store.add(evaluation("good", "1111111110"))
    store.add(evaluation("bad", "1000000000", healthy=False))
    store.add(evaluation(EVIL, "1110000000", task="PushCube-v2"))
    curve = [{"name": "validated_success", "step": 100 * k, "value": k / 10} for k in range(11)]
    run = {"kind": "training", "name": "run", "created": "2026", "policy": "ppo-PickCube-v2", "policy_seed": 7}
    store.add(Result(run, metrics=curve))
    return store


def test_each_policy_is_beside_the_best_of_its_task(store: Store) -> None:
    found = {row["policy"]: row for row in board_data(store)["rates"]}
    assert found["good"]["paired"] is None and found[EVIL]["paired"] is None  # the best of their tasks
    beside = found["bad"]["paired"]
    assert (beside["best"], beside["episodes"]) == ("good", 10)
    assert beside["difference"] == pytest.approx(-0.8) and beside["p"] == pytest.approx(2 / 2**8)  # 8 of 8 one way
    (curve,) = board_data(store)["curves"]
    assert curve["points"][-1] == [1000, 1.0] and (curve["policy"], curve["seed"]) == ("ppo-PickCube-v2", 7)


def test_the_page_loads_nothing_and_no_word_ends_its_script(store: Store) -> None:
    page = render_board(store)
    assert "{{" not in page and "http:" not in page.replace("http://www.w3.org/2000/svg", "")
    assert EVIL not in page


@needs_browser
@pytest.mark.parametrize("served", [False, True])
def test_filters_order_and_links_work_in_a_browser(store: Store, tmp_path: Path, served: bool) -> None:
    board = Board(store)
    board.open()
    url = board.url if served else write_board(store, tmp_path / "site").as_uri()
    rows = "[...document.querySelectorAll('#table tr')].slice(1).map(r => r.children[1].textContent)"
    try:
        with Browser(size=(1400, 900)) as page:
            page.goto(url)
            page.wait_for("document.querySelectorAll('#table tr').length > 1")
            assert page.evaluate(rows) == ["good", EVIL, "bad"]
            assert page.evaluate("document.title") == "Results"
            page.click("#table th:nth-child(3) button")  # success, now the lowest first
            assert page.evaluate(rows) == ["bad", EVIL, "good"]
            page.click("#healthy")
            assert page.evaluate(rows) == [EVIL, "good"]
            page.evaluate("(t => { t.value = 'PickCube-v2'; t.dispatchEvent(new Event('input')); })(task)")
            assert page.evaluate(rows) == ["good"]
            assert page.evaluate("document.getElementById('count').textContent") == "1 result"
            assert page.evaluate("document.querySelectorAll('polyline').length") == 1
            shown = page.evaluate("document.querySelector('#table tr:nth-child(2)').textContent")
            assert "90.0 %" in shown and "9 of 10" in shown and "dropped (1)" in shown
            page.goto(page.evaluate("document.querySelector('#table a').href"))
            page.wait_for("document.title === 'good'")
            assert page.evaluate("getComputedStyle(document.querySelector('p')).color") == "rgb(1, 2, 3)"
            assert not [e for e in page.events if e.get("method") == "Runtime.exceptionThrown"]
    finally:
        board.close()


def _status(url: str, **headers: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=60) as answer:
            return answer.status, answer.headers.get("Set-Cookie", "")
    except urllib.error.HTTPError as error:
        return error.code, ""


def test_with_a_key_nothing_is_shown_without_it(store: Store) -> None:
    with pytest.raises(ConfigError, match="MANIKIN_RESULTS_KEY"):
        Board(store, host="0.0.0.0")
    board = Board(store, key="secret")
    board.open()
    try:
        (page,) = {run["page"] for run in store.runs() if run["policy"] == "good"}
        for path in ("", page, "?key=wrong"):
            assert _status(board.url + path)[0] == 401
        status, cookie = _status(f"{board.url}?key=secret")
        assert status == 200 and "HttpOnly" in cookie
        assert _status(board.url + page, Cookie=cookie.partition(";")[0])[0] == 200
        assert _status(board.url + "../store/runs", Cookie=cookie.partition(";")[0])[0] == 404
        assert _status(board.url, Host="evil.example", Cookie=cookie.partition(";")[0])[0] == 421
    finally:
        board.close()


def test_the_command_writes_the_page(store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["results", "page", str(tmp_path / "site"), "--store", str(store.folder)]) == 0
    files = sorted(file.relative_to(tmp_path / "site").parts[0] for file in (tmp_path / "site").rglob("*.html"))
    assert files == ["index.html", "pages", "pages", "pages"]
