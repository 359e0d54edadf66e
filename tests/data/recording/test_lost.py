"""What is removed or does not fit while episodes are being recorded is said, and counted."""

from __future__ import annotations

import errno
import os
import shutil
import threading
from pathlib import Path
from typing import Any

import pytest

import manikin.data.recording.merge
import manikin.data.recording.write
from manikin.cli import main
from manikin.data.recording.durable import write_file
from manikin.data.recording.format import parts_folder
from manikin.data.recording.merge import merge_parts
from manikin.data.recording.read import read_episodes
from manikin.data.recording.write import EpisodeWriter
from manikin.errors import DataError
from toy_episodes import HEADER, toy_episode

FULL = OSError(errno.ENOSPC, "No space left on device")


def fill_the_disk(monkeypatch: pytest.MonkeyPatch, *, after: int) -> None:
    """No room for a part after so many, nor for the file that they are merged into."""
    put, parts = manikin.data.recording.write.replace_file, list[Path]()

    def replace_file(path: Path, content: bytes) -> None:
        if len(parts) == after:
            raise FULL
        parts.append(path)
        put(path, content)

    def try_room(path: Path, size: int) -> None:
        raise FULL

    monkeypatch.setattr(manikin.data.recording.write, "replace_file", replace_file)
    monkeypatch.setattr(manikin.data.recording.merge, "try_room", try_room)


@pytest.mark.parametrize("memory", [0, 20_000])
def test_parts_merge_to_the_same_whether_memory_holds_them_or_not(tmp_path: Path, memory: int) -> None:
    hashes = set()
    for name, options in (("held", {}), ("read", {"memory": memory})):
        path = tmp_path / name / "run.h5"
        writer = EpisodeWriter(path, HEADER)
        for number in range(6):
            writer.write(toy_episode(number), toy_episode(20 - number), dropped=[30 + number])
        numbers = merge_parts(path, parts_folder(path), writer.header, **options)
        assert numbers == {*range(6), *range(15, 21), *range(30, 36)}
        with read_episodes(path) as episodes:
            hashes.add(episodes.content_hash())
            assert episodes.dropped == set(range(30, 36))
    assert len(hashes) == 1


def test_parts_that_were_removed_are_named_and_the_rest_is_merged(tmp_path: Path) -> None:
    path = tmp_path / "run.h5"
    writer = EpisodeWriter(path, HEADER)
    for number in range(6):
        writer.write(toy_episode(number), dropped=[10 + number])
    for number in (1, 2, 4):
        (parts_folder(path) / f"{number:06d}.h5").unlink()
    said = r"run.h5 lacks 6 of 12 finished episodes \(1-2, 4, 11-12, 14\).*--resume runs them again"
    with pytest.raises(DataError, match=said):
        writer.close()
    assert writer.lost == {1, 2, 4, 11, 12, 14} and writer.finished == {0, 3, 5, 10, 13, 15}
    assert writer.dropped == {10, 13, 15}
    with read_episodes(path) as episodes:
        assert episodes.numbers == [0, 3, 5] and episodes.dropped == {10, 13, 15}
    with EpisodeWriter(path, HEADER, resume=True) as writer:
        assert 1 not in writer.finished
        writer.write(*(toy_episode(number) for number in (1, 2, 4)))
    with read_episodes(path) as episodes:
        assert episodes.numbers == list(range(6))


def test_what_another_process_merged_is_not_lost(tmp_path: Path) -> None:
    path = tmp_path / "run.h5"
    first, second = EpisodeWriter(path, HEADER, resume=True), EpisodeWriter(path, HEADER, resume=True)
    first.write(toy_episode(0))
    second.write(toy_episode(1))
    second.close()
    assert not parts_folder(path).exists()
    first.close()
    first.write(toy_episode(2))  # its folder is made again
    first.close()
    with read_episodes(path) as episodes:
        assert episodes.numbers == [0, 1, 2]
    path.unlink()
    with pytest.raises(DataError, match=r"lacks 2 of 2 finished episodes \(0, 2\)"):
        first.close()


def test_a_folder_that_was_removed_is_said(tmp_path: Path) -> None:
    path = tmp_path / "out" / "run.h5"
    writer = EpisodeWriter(path, HEADER)
    writer.write(toy_episode(0))
    shutil.rmtree(path.parent)
    with pytest.raises(DataError, match=r"cannot write .*run.h5: .*its folder is gone"):
        writer.write(toy_episode(1))
    with pytest.raises(DataError, match=r"lacks 1 of 1 finished episodes \(0\)"):
        writer.close()


def test_what_fails_first_is_said_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a full disk the merge fails as well, and says so beside the reason."""
    path = tmp_path / "run.h5"
    fill_the_disk(monkeypatch, after=1)

    def record() -> None:
        with EpisodeWriter(path, HEADER) as writer:
            writer.write(toy_episode(0), toy_episode(1))
            writer.write(toy_episode(2))

    with pytest.raises(DataError, match=r"cannot write .*No space left.*what was written before it is safe") as caught:
        record()
    (note,) = caught.value.__notes__
    assert "cannot merge into" in note and f"every episode is safe in {parts_folder(path)}" in note
    with read_episodes(path) as episodes:
        assert episodes.numbers == [0, 1]


WORDS = ["collect", "PushCube-v2", "--policy", "random", "--episodes", "6", "--num-envs", "2", "--horizon", "5"]


def test_collect_counts_what_is_there_and_its_status_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run.h5"
    write = EpisodeWriter.write

    def remove(self: EpisodeWriter, *episodes: Any, dropped: Any = ()) -> None:
        write(self, *episodes, dropped=dropped)
        if 3 in self.finished:
            for part in parts_folder(path).glob("00000[01].h5"):
                part.unlink()

    monkeypatch.setattr(manikin.data.recording.write.EpisodeWriter, "write", remove)
    assert main([*WORDS, "--out", str(path)]) == 1
    told = capsys.readouterr().out
    assert "run.h5 contains 4 episodes " in told and "lacks 2 of 6 finished episodes (0-1)" in told
    monkeypatch.undo()
    assert main([*WORDS, "--out", str(path), "--resume"]) == 0
    assert "2 episodes" in (told := capsys.readouterr().out) and "run.h5 contains 6 episodes " in told


def test_collect_says_what_failed_and_where_the_episodes_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run.h5"
    fill_the_disk(monkeypatch, after=2)
    assert main([*WORDS, "--out", str(path)]) == 2
    told = capsys.readouterr().err
    assert told.startswith(f"manikin collect: cannot write {path}: [Errno 28] No space left on device")
    assert "cannot merge into" in told and "every episode is safe in" in told
    monkeypatch.undo()
    with read_episodes(path) as episodes:
        assert len(episodes) == 4
    assert main([*WORDS, "--out", str(path), "--resume"]) == 0
    assert "run.h5 contains 6 episodes " in capsys.readouterr().out


@pytest.mark.parametrize("content", [b"seen", lambda path: path.write_bytes(b"seen")], ids=["bytes", "written"])
def test_what_is_no_file_is_written_to_and_not_replaced(tmp_path: Path, content: Any) -> None:
    """As root, ``--json /dev/stdout`` would replace the device for all programs."""
    path, seen = tmp_path / "report.json", list[bytes]()
    os.mkfifo(path)
    reader = threading.Thread(target=lambda: seen.append(path.read_bytes()), daemon=True)
    reader.start()
    write_file(path, content)
    reader.join(20)
    assert seen == [b"seen"] and path.is_fifo() and list(tmp_path.iterdir()) == [path]
