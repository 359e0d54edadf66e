"""Batches from recordings: every frame once, chunks and stacks as an episode's own arrays have them, bounded memory."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from manikin.cli import main
from manikin.data import Dataset, Normalizer
from manikin.data.recording.format import Header, RecordedEpisode
from manikin.data.recording.read import read_episodes
from manikin.data.recording.write import EpisodeWriter
from manikin.errors import ConfigError, DataError, UnknownNameError

LENGTHS = (7, 1, 12, 5, 9, 4, 6, 11, 3, 8)


def _episode(number: int, length: int, *, width: int = 3, picture: int = 4) -> RecordedEpisode:
    rng = np.random.default_rng(number)
    success = np.zeros(length, bool)
    success[-1] = number % 3 != 0
    flat = rng.normal(5.0, 2.0, (length + 1, width)).astype(np.float32)
    return RecordedEpisode(
        number=number,
        seed=number,
        actions=rng.uniform(-1, 1, (length, 2)).astype(np.float32),
        rewards=np.ones(length, np.float32),
        terminated=np.zeros(length, bool),
        truncated=np.arange(length) == length - 1,
        success=success,
        fail=np.zeros(length, bool),
        state_hash=np.arange(length + 1),
        observations={
            "policy/qpos": flat,
            "privileged/cube": flat[:, :1] * 2,
            "cameras/front/rgb": rng.integers(0, 255, (length + 1, picture, picture, 3)).astype(np.uint8),
        },
        mode="dropped" if number % 3 == 0 else "straightforward_success",
    )


def _record(path: Path, lengths=LENGTHS, *, first: int = 0, fingerprint: dict | None = None, **options) -> Path:
    about = {"task": "Made-v1", "robot": "panda", "control": "joint_pos", "control_hz": 20.0, **(fingerprint or {})}
    with EpisodeWriter(path, Header(fingerprint=about)) as writer:
        for i, length in enumerate(lengths):
            writer.write(_episode(first + i, length, **options))
    return path


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _record(tmp_path_factory.mktemp("data") / "made.h5")


def _where(batches) -> list[tuple[int, int, int]]:
    return [
        (int(s), int(e), int(k)) for b in batches for s, e, k in zip(b["source"], b["episode"], b["step"], strict=True)
    ]


@pytest.mark.parametrize("memory_mb", [1000.0, 1e-3])
def test_each_frame_comes_once_in_an_epoch_and_in_another_order_in_the_next(recording: Path, memory_mb: float) -> None:
    every = [(0, i, k) for i, length in enumerate(LENGTHS) for k in range(length)]
    with Dataset(recording, batch_size=8, seed=3, memory_mb=memory_mb) as data:
        assert (data.episodes, data.frames, len(data)) == (10, 66, 9)
        one, two = list(data), list(data)
        assert [len(b["step"]) for b in one] == [8] * 8 + [2]
        assert sorted(_where(one)) == every == sorted(_where(two))
        assert _where(one) != _where(two) and _where(one) != every
        data.epoch = 0
        assert _where(data) == _where(one)
    with Dataset(recording, batch_size=8, seed=4, memory_mb=memory_mb) as other:
        assert _where(other) != _where(one)
    with Dataset(recording, batch_size=8, shuffle=False, memory_mb=memory_mb, drop_last=True) as plain:
        assert _where(plain) == every[:64] and len(plain) == 8


@pytest.mark.parametrize(("chunk", "stack"), [(1, 1), (5, 3), (20, 2)])
def test_chunks_and_stacks_are_slices_of_the_episode(recording: Path, chunk: int, stack: int) -> None:
    names = ["policy/qpos", "privileged/cube", "cameras/front/rgb"]
    with (
        Dataset(recording, batch_size=16, chunk=chunk, stack=stack, observations=names) as data,
        read_episodes(recording) as episodes,
    ):
        for batch in data:
            assert batch["actions"].shape[1:] == (chunk, 2) and batch["actions"].dtype == torch.float32
            for row, (_, number, k) in enumerate(_where([batch])):
                episode = episodes[number]
                last = len(episode) - 1
                ahead = [min(k + i, last) for i in range(chunk)]
                assert np.array_equal(batch["actions"][row], episode.actions[ahead])
                assert batch["padded"][row].tolist() == [k + i > last for i in range(chunk)]
                back = [max(k - i, 0) for i in reversed(range(stack))]
                for name in names:
                    assert np.array_equal(batch["observations"][name][row], episode.observations[name][back])


def test_only_what_a_policy_may_see_is_shown_unless_asked_for(recording: Path) -> None:
    with Dataset(recording) as data:
        assert data.available == ["policy/qpos", "privileged/cube", "cameras/front/rgb"]  # as they were given
        assert data.observations == ("policy/qpos", "cameras/front/rgb")
        assert set(next(iter(data))["observations"]) == set(data.observations)


def test_a_flat_vector_that_mixes_in_what_is_privileged_has_to_be_named(tmp_path: Path) -> None:
    for word in ("state", "policy"):
        with EpisodeWriter(tmp_path / f"{word}.h5", Header(fingerprint={"task": "Made-v1", "observe": word})) as writer:
            writer.write(replace(_episode(1, 5), observations={"value": np.ones((6, 3), np.float32)}))
    with pytest.raises(DataError, match=r"may be privileged: value\. To read them anyway, name them"):
        Dataset(tmp_path / "state.h5")
    with Dataset(tmp_path / "state.h5", observations=["value"]) as named, Dataset(tmp_path / "policy.h5") as data:
        assert named.observations == data.observations == ("value",)


def test_actions_are_those_that_the_controller_took(tmp_path: Path) -> None:
    wild = _episode(1, 40)
    with EpisodeWriter(tmp_path / "wild.h5", Header(fingerprint={"task": "Made-v1"})) as writer:
        writer.write(replace(wild, actions=100 * wild.actions))
    with Dataset(tmp_path / "wild.h5", shuffle=False) as data:
        got = next(iter(data))["actions"][:, 0].numpy()
        assert np.array_equal(got, (100 * wild.actions).clip(-1, 1))
        assert data.statistics["actions"]["max"] == [1.0, 1.0] and data.statistics["actions"]["min"] == [-1.0, -1.0]


@pytest.mark.parametrize(
    ("keep", "expected"),
    [("success", {1, 2, 4, 5, 7, 8}), ("failure", {0, 3, 6, 9}), ("label:dropped", {0, 3, 6, 9})],
)
def test_episodes_are_chosen_by_what_happened_in_them(recording: Path, keep: str, expected: set[int]) -> None:
    with Dataset(recording, keep=keep) as data:
        assert {e for _, e, _ in _where(data)} == expected
        assert data.frames == sum(LENGTHS[e] for e in expected)


def test_a_choice_that_is_no_text_is_refused_in_words(recording: Path) -> None:
    for keep in (np.array([False, False]), True, b"all", ["success"], torch.ones(2)):
        with pytest.raises(UnknownNameError, match="unknown choice of episodes"):
            Dataset(recording, keep=keep)  # type: ignore[arg-type]


def test_several_recordings_and_interrupted_ones_are_one_dataset(recording: Path, tmp_path: Path) -> None:
    writer = EpisodeWriter(
        tmp_path / "open.h5", Header(fingerprint={"robot": "panda", "control": "joint_pos", "control_hz": 20.0})
    )
    for number in (50, 51):
        writer.write(_episode(number, 4))  # not merged: as after a kill
    with Dataset([recording, tmp_path / "open.h5"], batch_size=7) as data:
        found = _where(data)
    writer.close()
    assert {(s, e) for s, e, _ in found} == {(0, i) for i in range(10)} | {(1, 50), (1, 51)}
    assert len(found) == 66 + 8


def test_statistics_are_those_of_all_frames_and_normalizing_is_undone(recording: Path, tmp_path: Path) -> None:
    with (
        Dataset(recording, observations=["policy/qpos", "cameras/front/rgb"]) as data,
        read_episodes(recording) as episodes,
    ):
        frames = {
            "policy/qpos": np.concatenate([e.observations["policy/qpos"][:-1] for e in episodes]).astype(float),
            "actions": np.concatenate([e.actions for e in episodes]).astype(float),
        }
        assert set(data.statistics) == set(frames)  # no pictures
        for name, values in frames.items():
            for what in ("mean", "std", "min", "max"):
                np.testing.assert_allclose(data.statistics[name][what], getattr(values, what)(0), rtol=1e-9)
        for kind in ("mean_std", "min_max"):
            normal = Normalizer(data.statistics, kind)
            whole = torch.from_numpy(frames["policy/qpos"]).float()
            scaled = normal.normalize("policy/qpos", whole)
            if kind == "mean_std":
                torch.testing.assert_close(scaled.mean(0), torch.zeros(3), atol=1e-5, rtol=0)
                torch.testing.assert_close(scaled.std(0, correction=0), torch.ones(3), atol=1e-5, rtol=0)
            else:
                torch.testing.assert_close(scaled.amin(0), -torch.ones(3))
                torch.testing.assert_close(scaled.amax(0), torch.ones(3))
            torch.testing.assert_close(normal.restore("policy/qpos", scaled), whole)
            batch = next(iter(data))
            out = normal(batch)
            torch.testing.assert_close(normal.restore("actions", out["actions"]), batch["actions"])
            assert torch.equal(out["observations"]["cameras/front/rgb"], batch["observations"]["cameras/front/rgb"])
            torch.save(normal.state_dict(), tmp_path / "normal.pt")
            again = Normalizer(data.statistics, "mean_std")
            again.load_state_dict(torch.load(tmp_path / "normal.pt"))
            torch.testing.assert_close(again.normalize("policy/qpos", whole), scaled)


def test_what_never_changes_is_not_divided_by_nothing() -> None:
    column = {"min": [1.0, 0.5], "max": [1.0, 0.5], "mean": [1.0, 0.5], "std": [0.0, 1e-9]}
    for kind in ("mean_std", "min_max"):
        normal = Normalizer({"actions": column}, kind)
        assert torch.equal(normal.normalize("actions", torch.tensor([[1.0, 1.5]])), torch.tensor([[0.0, 1.0]]))


def test_memory_does_not_grow_with_the_recording(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is held at a time is counted in bytes of the pools."""
    from manikin.data import dataset

    held = []

    class Counted(dataset.FramePool):
        def __init__(self, parts, *args) -> None:
            held.append(sum(v.nbytes for part in parts for v in part.values()))
            super().__init__(parts, *args)

    monkeypatch.setattr(dataset, "FramePool", Counted)
    most = {}
    for count in (20, 80):
        path = _record(tmp_path / f"{count}.h5", [10] * count, picture=16)
        with Dataset(path, batch_size=32, memory_mb=0.1) as data:
            held.clear()
            assert sum(len(b["step"]) for b in data) == 10 * count
            most[count] = max(held)
    assert most[80] <= 0.11e6 and most[80] <= 1.1 * most[20]


def test_what_does_not_go_together_is_refused(
    recording: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(UnknownNameError, match="policy/qpos"):
        Dataset(recording, observations=["qpos"])
    with pytest.raises(UnknownNameError, match="straightforward_success"):
        Dataset(recording, keep="label:nothing")
    with pytest.raises(UnknownNameError, match="failure"):
        Dataset(recording, keep="some")
    with EpisodeWriter(tmp_path / "pick.h5", Header(fingerprint={"task": "PickCube-v2"})) as writer:
        writer.write(_episode(1, 4))  # another mode than those of the task
    with pytest.raises(DataError, match=r"no episode .* matches keep='label:left_goal'"):
        Dataset(tmp_path / "pick.h5", keep="label:left_goal")  # the task has it, the recording has none
    with pytest.raises(UnknownNameError, match="Did you mean 'left_goal'"):
        Dataset(tmp_path / "pick.h5", keep="label:left_gaol")
    for to in ("lerobot", "robomimic", "maniskill"):
        words = ["convert", str(tmp_path / "pick.h5"), str(tmp_path / "out"), "--to", to, "--keep", "label:left_goal"]
        assert main(words) == 2 and not (tmp_path / "out").exists()
    assert "no episode of" in capsys.readouterr().err
    with pytest.raises(ConfigError, match="chunk must be a positive integer"):
        Dataset(recording, chunk=0)
    with pytest.raises(DataError, match="no recording"):
        Dataset(tmp_path / "none.h5")
    other = _record(tmp_path / "ur5e.h5", [3], fingerprint={"robot": "ur5e"})
    with pytest.raises(DataError, match=r"same robot: panda in .*ur5e in"):
        Dataset([recording, other])
    old, new = (_record(tmp_path / f"{v}.h5", [3], fingerprint={"task": f"Toy-{v}"}) for v in ("v1", "v2"))
    with pytest.raises(DataError, match=r"same version of a task: Toy-v1 in .*v1\.h5; Toy-v2 in .*v2\.h5"):
        Dataset([old, new])
    wide = _record(tmp_path / "wide.h5", [3], width=5)
    with pytest.raises(DataError, match="differ in shape"):
        Dataset([recording, wide])
    with pytest.raises(UnknownNameError, match="mean_std"):
        Normalizer({}, "robust")


def test_a_recording_without_observations_says_how_to_get_them(tmp_path: Path) -> None:
    import dataclasses

    path = tmp_path / "bare.h5"
    with EpisodeWriter(path, Header(fingerprint={})) as writer:
        writer.write(dataclasses.replace(_episode(0, 3), observations=None))
    with pytest.raises(DataError, match=r"manikin replay bare\.h5 --observe"):
        Dataset(path)


def test_damage_names_the_episodes_and_what_was_read(tmp_path: Path) -> None:
    path = _record(tmp_path / "hurt.h5")
    with read_episodes(path) as episodes:
        block = episodes.blocks()[0][0]
        data = block.datasets["instants/observations/policy/qpos"]
        offset = data.id.get_chunk_info(0).byte_offset
    raw = bytearray(path.read_bytes())
    raw[offset + 5] ^= 0xFF
    path.write_bytes(bytes(raw))
    with (
        Dataset(path) as hurt,
        pytest.raises(DataError, match=r"damaged: episodes \d+ to \d+, instants/observations/policy/qpos"),
    ):
        list(itertools.islice(hurt, 1))
