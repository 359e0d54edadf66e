"""What processes that make the same search share: each question once, and none is lost with who claimed it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from manikin.errors import DataError
from manikin.spread.blackboard import Blackboard


class Time:
    """A clock that only rest moves."""

    def __init__(self) -> None:
        self.now, self.rests = 0.0, 0

    def __call__(self) -> float:
        return self.now

    def rest(self, seconds: float) -> None:
        self.now += seconds
        self.rests += 1


def test_each_question_is_worked_out_once_and_answers_come_in_order(tmp_path: Path) -> None:
    asked: list[str] = []

    def ask(name: str):
        def work() -> list[float]:
            asked.append(name)
            return [len(asked) / 3, float("inf")]

        return work

    one, other = Blackboard(tmp_path), Blackboard(tmp_path)
    found = one.share({name: ask(name) for name in ("b", "a")})
    assert list(found) == ["b", "a"] and found["a"] == [2 / 3, float("inf")]
    assert other.share({name: ask(name) for name in ("a", "c", "b")}) == {**found, "c": [1.0, float("inf")]}
    assert asked == ["b", "a", "c"]
    assert one.share({}) == {}


def test_none_is_an_answer(tmp_path: Path) -> None:
    assert Blackboard(tmp_path).share({"a": lambda: None}) == {"a": None}


def test_what_another_process_has_claimed_is_waited_for_and_then_worked_out_here(tmp_path: Path) -> None:
    time = Time()
    (tmp_path / "a.claimed").mkdir()  # of a process that was killed
    board = Blackboard(tmp_path, patience=5.0, clock=time, rest=time.rest)
    order: list[str] = []
    found = board.share({name: lambda name=name: order.append(name) or name for name in ("a", "b")})
    assert found == {"a": "a", "b": "b"} and order == ["b", "a"]
    assert 5.0 < time.now < 5.5


def test_an_answer_of_another_process_ends_the_wait(tmp_path: Path) -> None:
    (tmp_path / "a.claimed").mkdir()

    def rest(seconds: float) -> None:
        (tmp_path / "a.json").write_text('["theirs"]')

    assert Blackboard(tmp_path, rest=rest).share({"a": lambda: "mine"}) == {"a": "theirs"}


def test_who_takes_long_waits_long(tmp_path: Path) -> None:
    time = Time()
    (tmp_path / "b.claimed").mkdir()
    board = Blackboard(tmp_path, patience=1.0, clock=time, rest=time.rest)
    board.share({"a": lambda: time.rest(10.0), "b": lambda: 1})
    assert 40.0 < time.now < 41.0  # ten seconds of its own, and three times as long


def test_another_search_is_refused(tmp_path: Path) -> None:
    Blackboard(tmp_path).begin({"seed": 1, "robot": "panda", "range": (1, 2)})
    Blackboard(tmp_path).begin({"seed": 1, "robot": "panda", "range": [1, 2]})
    with pytest.raises(DataError, match="is of another search: robot, seed differ"):
        Blackboard(tmp_path).begin({"seed": 2, "robot": "ur5e", "range": [1, 2]})


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="cannot share a search"):
        Blackboard(tmp_path / "file").begin({})
    with pytest.raises(DataError, match="cannot share a search"):
        Blackboard(tmp_path / "file").share({"a": lambda: 1})


IMPATIENT = """
import sys, time
from pathlib import Path
from manikin.spread.blackboard import Blackboard
board = Blackboard(Path(sys.argv[1]), patience=0.0)
board.begin({"seed": 1})
for n in range(100):
    assert board.share({f"q{n}": lambda: [n] * 1000}) == {f"q{n}": [n] * 1000}
"""


def test_who_works_out_the_same_at_the_same_time_does_not_disturb_the_others(tmp_path: Path) -> None:
    crowd = [subprocess.Popen([sys.executable, "-c", IMPATIENT, str(tmp_path)]) for _ in range(3)]
    assert [one.wait() for one in crowd] == [0, 0, 0]
    assert not list(tmp_path.glob("*.tmp"))


CROWD = """
import sys
from pathlib import Path
from manikin.spread.blackboard import Blackboard
folder = Path(sys.argv[1])
done = []
found = Blackboard(folder).share({f"q{n}": (lambda n=n: done.append(n) or n * n) for n in range(200)})
assert list(found.values()) == [n * n for n in range(200)]
print(*done)
"""


def test_a_crowd_works_nothing_out_twice(tmp_path: Path) -> None:
    crowd = [
        subprocess.Popen([sys.executable, "-c", CROWD, str(tmp_path)], stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    done = [int(word) for one in crowd for word in one.communicate()[0].split()]
    assert [one.returncode for one in crowd] == [0, 0, 0]
    assert sorted(done) == list(range(200))
