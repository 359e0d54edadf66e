"""Losses, methods, files and importers, each held to something of another make."""

from __future__ import annotations

import json
import pickle
import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.spatial.transform import Rotation

from manikin.assets.paths import data_root
from manikin.errors import ConfigError, DataError, UnknownNameError
from manikin.eval.protocol import Protocol
from manikin.fidelity.arm import commands
from manikin.robots import robot
from manikin.sysid import Anneal, Cma, Squares, Trajectories, Trajectory, importers, read_trajectories, tfrecord
from manikin.sysid.identifiable import identifiability
from manikin.sysid.loss import distances, residuals
from manikin.sysid.methods import differences

RNG = np.random.default_rng(0)


def quaternions(*shape: int, near: np.ndarray | None = None) -> np.ndarray:
    found = RNG.normal(0, 1, (*shape, 4)) if near is None else near + RNG.normal(0, 1e-6, near.shape)
    return found / np.linalg.norm(found, axis=-1, keepdims=True)


@pytest.mark.parametrize("near", [False, True])
def test_the_loss_is_the_papers(near: bool) -> None:
    pos, pos2 = RNG.normal(0, 1, (2, 3, 5, 3)), RNG.normal(0, 1, (3, 5, 3))
    quat2 = quaternions(3, 5)
    quat = quaternions(2, 3, 5, near=np.broadcast_to(quat2, (2, 3, 5, 4)) if near else None)
    lengths = np.array([5, 3, 4])
    simulated = {"pos": torch.tensor(pos), "quat": torch.tensor(quat)}
    parts = residuals("pose", simulated, {"pos": torch.tensor(pos2), "quat": torch.tensor(quat2)})
    found = distances(parts, lengths)
    for k in range(2):
        for e, n in enumerate(lengths):
            one, other = (Rotation.from_quat(q[:n], scalar_first=True).as_matrix() for q in (quat[k, e], quat2[e]))
            frobenius = np.sqrt(((one - other) ** 2).sum((1, 2)))
            turn = np.arcsin(np.clip(frobenius / (2 * np.sqrt(2)), 0, 1))
            said = np.linalg.norm(pos[k, e, :n] - pos2[e, :n], axis=1).mean() + turn.mean()
            assert found[k, e] == pytest.approx(said, rel=1e-9)
    halves = parts[1][0, 0].numpy()
    turned = Rotation.from_quat(quat[0, 0], scalar_first=True) * Rotation.from_quat(quat2[0], scalar_first=True).inv()
    assert halves == pytest.approx(turned.as_rotvec() / 2, abs=1e-9)


def run(method: Anneal | Cma, start: np.ndarray, function) -> tuple[np.ndarray, float, int]:  # type: ignore[no-untyped-def]
    asks, best, least, count = method(start, function(start), np.random.default_rng(0)), start, function(start), 0
    try:
        asked = next(asks)
        while True:
            assert (asked >= 0).all() and (asked <= 1).all()
            values = np.array([function(x) for x in asked])
            count += len(asked)
            if values.min() < least:
                best, least = asked[values.argmin()], float(values.min())
            asked = asks.send(values)
    except StopIteration:
        return best, least, count


def test_one_chain_of_annealing_is_the_plain_loop() -> None:
    def function(x: np.ndarray) -> float:
        return float(((x - 0.3) ** 2).sum())

    start = np.array([0.9, 0.8])
    _, least, count = run(Anneal(rounds=1, candidates=50, chains=1), start, function)
    rng, x, energy, best = np.random.default_rng(0), start, function(start), function(start)
    for k in range(50):
        heat = 1.5 * (1 - k / 50)
        new = np.clip(x + (rng.random((1, 2))[0] - 0.5), 0, 1)
        if rng.random(1)[0] < np.exp(-(function(new) - energy) / heat):
            x, energy = new, function(new)
        best = min(best, function(new))
    assert least == best and count == 50
    _, three, _ = run(Anneal(rounds=3, candidates=100, chains=10), start, function)
    _, one, _ = run(Anneal(rounds=1, candidates=300, chains=10), start, function)
    assert three < one  # ranges that shrink are worth it


def test_cma_finds_the_bottom_of_a_bent_valley() -> None:
    def rosenbrock(x: np.ndarray) -> float:
        y = 3 * x - 1
        return float(100 * (y[1] - y[0] ** 2) ** 2 + (1 - y[0]) ** 2)

    best, least, _ = run(Cma(candidates=900, population=12), np.array([0.1, 0.9]), rosenbrock)
    assert least < 1e-6 and best == pytest.approx([2 / 3, 2 / 3], abs=1e-3)


def test_squares_and_differences_of_a_linear_problem() -> None:
    matrix, target = RNG.normal(0, 1, (12, 3)), RNG.normal(0, 1, 12)

    def residual(x: np.ndarray) -> np.ndarray:
        return x @ matrix.T * 0.1 - target * 0.03 - 0.05 * matrix.sum(1)

    found = Squares().solve(np.full(3, 0.9), residual)
    expected = np.linalg.lstsq(0.1 * matrix, target * 0.03 + 0.05 * matrix.sum(1), rcond=None)[0]
    assert (expected > 0).all() and (expected < 1).all() and found == pytest.approx(expected, abs=1e-4)
    for at in (np.array([0.2, 0.0, 1.0]), expected):
        assert differences(at, residual) == pytest.approx(0.1 * matrix, rel=1e-6)


def test_open_directions_are_those_of_the_derivative() -> None:
    a, b = RNG.normal(0, 1, (200, 1)), RNG.normal(0, 1, (200, 1))
    slope = np.concatenate([a, -a, 1e-4 * b], 1)  # the sum of the first two, and the third, do nothing
    found = identifiability(slope, 0.1 * RNG.normal(0, 1, 200), ("one", "two", "three"))
    assert [d.verdict for d in found.directions] == ["fixed", "open", "open"]
    assert {d.words for d in found.open} == {"one and two up together", "three alone"}
    assert "while" in found.directions[0].words
    assert np.linalg.svd(slope)[1] == pytest.approx([d.singular_value for d in found.directions])
    assert found.deviations[2] == pytest.approx(12**-0.5, rel=1e-2)  # what is only known to lie in its range
    assert found.deviations[0] == pytest.approx(12**-0.5 / 2**0.5, rel=5e-2)


def some(steps: int = 4, **more: object) -> Trajectory:
    given = {"actions": RNG.normal(0, 1, (steps, 6)), "pos": RNG.normal(0, 1, (steps, 3)), "quat": quaternions(steps)}
    return Trajectory(**{"name": "a", **given, **more})  # type: ignore[arg-type]


@pytest.mark.parametrize("ending", [".json", ".npz", ".h5"])
def test_files_come_back_to_the_bit(ending: str, tmp_path: Path) -> None:
    items = (some(name="first / one"), some(6, name="two", start=np.zeros(6)))
    tool = (0.1, 0, 0, 0, 1, 0, 0)
    whole = Trajectories(robot="widowx", control="ee_pose", control_hz=5, items=items, tool=tool, notes={"cap": 3})
    again = read_trajectories(whole.save(tmp_path / f"a{ending}"))
    assert again.digest == whole.digest and [t.name for t in again.items] == ["first / one", "two"]
    assert again.tool == whole.tool and again.notes == {"cap": 3} and again.some(["two"]).digest != whole.digest


def test_bad_files_and_arrays_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="'a': pos are not finite at step 2"):
        some(pos=np.array([[0, 0, 0], [0, 0, 0], [np.nan, 0, 0], [0, 0, 0.0]]))
    with pytest.raises(DataError, match=r"pos must be \(4, 3\), as there are 4 actions, not \(3, 3\)"):
        some(pos=np.zeros((3, 3)))
    with pytest.raises(DataError, match="quat at step 0 has length 2, not 1"):
        some(quat=2 * np.eye(4))
    with pytest.raises(DataError, match="has 1 steps; it needs at least 2"):
        some(1)
    with pytest.raises(DataError, match="tracks nothing"):
        some(pos=None, quat=None)
    with pytest.raises(DataError, match="there are no trajectories"):
        Trajectories(robot="widowx", control="ee_pose", control_hz=5, items=())
    with pytest.raises(DataError, match="control_hz must be a rate in Hz, not 0"):
        Trajectories(robot="widowx", control="ee_pose", control_hz=0, items=(some(),))
    with pytest.raises(DataError, match="two trajectories are called 'a'"):
        Trajectories(robot="widowx", control="ee_pose", control_hz=5, items=(some(), some()))
    with pytest.raises(DataError, match=r"files that end in \.json, \.npz, \.h5"):
        read_trajectories(tmp_path / "a.csv")
    with pytest.raises(DataError, match="there is no file"):
        read_trajectories(tmp_path / "a.json")
    for ending, content in {".json": b"[1]", ".npz": b"PK", ".h5": b"x"}.items():
        (tmp_path / f"b{ending}").write_bytes(content)
        with pytest.raises(DataError, match=f"b{ending}"):
            read_trajectories(tmp_path / f"b{ending}")
    head = {"format": "manikin-trajectories", "version": 1, "robot": "widowx", "control": "ee_pose", "control_hz": 5}
    (tmp_path / "c.json").write_text(json.dumps({**head, "trajectories": [{"actions": [[0], [0]], "pose": []}]}))
    with pytest.raises(DataError, match="trajectory '0' has pose; valid: actions, pos"):
        read_trajectories(tmp_path / "c.json")


def record(features: dict[str, object]) -> bytes:
    """A TFRecord of an Example, as protobuf and the format describe them."""

    def field(number: int, content: bytes) -> bytes:
        return bytes([number << 3 | 2]) + varint(len(content)) + content

    def varint(value: int) -> bytes:
        out = b""
        while True:
            out += bytes([value & 0x7F | (0x80 if value > 0x7F else 0)])
            value >>= 7
            if not value:
                return out

    entries = b""
    for name, value in features.items():
        if isinstance(value, list):
            feature = field(1, b"".join(field(1, one) for one in value))
        elif np.asarray(value).dtype.kind == "f":
            feature = field(2, field(1, np.asarray(value, "<f4").tobytes()))
        else:
            feature = field(3, field(1, b"".join(varint(int(v) & (1 << 64) - 1) for v in np.asarray(value))))
        entries += field(1, field(1, name.encode()) + field(2, feature))
    content = field(1, entries)
    length = struct.pack("<Q", len(content))
    return length + struct.pack("<I", tfrecord.masked_crc(length)) + content + b"\0\0\0\0"


def test_tfrecords_are_read_without_tensorflow(tmp_path: Path) -> None:
    crc = (tfrecord.masked_crc(b"123456789") - 0xA282EAD8) & 0xFFFFFFFF
    assert (crc << 15 | crc >> 17) & 0xFFFFFFFF == 0xE3069283  # the check value of CRC-32C
    file, numbers = tmp_path / "a.tfrecord", np.arange(300, dtype=np.float32)
    file.write_bytes(record({"x": numbers, "n": np.array([1, -5, 1 << 40]), "s": [b"a", b"\xff" * 200]}) * 2)
    one, two = tfrecord.examples(file)
    assert np.array_equal(one["x"], numbers) and list(two["n"]) == [1, -5, 1 << 40]
    assert one["s"] == [b"a", b"\xff" * 200]
    content = file.read_bytes()
    for wrong, said in (
        (content[:-30], "cut off"),
        (b"\1" + content, "no TFRecord file"),
        (content[:9], "no TFRecord"),
    ):
        file.write_bytes(wrong)
        with pytest.raises(DataError, match=said):
            list(tfrecord.examples(file))


def test_simplers_own_files_are_read_and_run_nothing(tmp_path: Path) -> None:
    turns = RNG.uniform(-1, 1, (3, 3))
    steps = [
        {
            "base_pose_tool_reached": np.array([0.1 * k, 0, 0, *quaternions(1)[0]]),
            "action_world_vector": np.array([0.01, 0, k]),
            "action_rotation_delta": turns[k],
        }
        for k in range(3)
    ]
    (tmp_path / "a.pkl").write_bytes(pickle.dumps([steps, steps]))
    plain = [[{key: value.tolist() for key, value in step.items()} for step in steps]] * 2
    (tmp_path / "a.json").write_text(json.dumps(plain))
    given = {"robot": "widowx_bridge", "control": "ee_target_delta_pose", "control_hz": 5}
    one, two = (importers.simpler(tmp_path / f"a{end}", euler=True, **given) for end in (".pkl", ".json"))  # type: ignore[arg-type]
    assert one.digest == two.digest and len(one) == 2
    assert one.items[0].actions[:, 3:] == pytest.approx(Rotation.from_euler("xyz", turns).as_rotvec())
    assert importers.simpler(tmp_path / "a.pkl", euler=False, **given).items[0].actions[:, 3:] == pytest.approx(turns)  # type: ignore[arg-type]

    class Bad:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return exec, ("raise SystemExit",)

    (tmp_path / "b.pkl").write_bytes(pickle.dumps([[Bad()]]))
    with pytest.raises(DataError, match=r"asks for builtins\.exec"):
        importers.simpler(tmp_path / "b.pkl", euler=True, **given)  # type: ignore[arg-type]
    (tmp_path / "c.json").write_text("[[{}]]")
    with pytest.raises(DataError, match=r"c\.json is no file of SIMPLER's"):
        importers.simpler(tmp_path / "c.json", euler=True, **given)  # type: ignore[arg-type]


def test_the_law_of_collins_moves_at_the_cap_and_then_settles() -> None:
    asked = commands(((2.0, (90.0, 0, 0, 0, 0, 0)),), 40, cap=30.0)
    degrees = np.degrees(asked[:, 0])
    assert degrees[:24] == pytest.approx(3.0 * np.arange(1, 25))  # 30 degrees per second until 7.5 are left at 4 / s
    left = 90 - degrees
    after = left[30:]
    assert after[1:] / after[:-1] == pytest.approx(0.6)  # then four tenths of the way in each tenth of a second


@pytest.mark.skipif(data_root() is None, reason="MANIKIN_DATA is not set")
def test_bridge_clips_fit_simplers_arm() -> None:
    """The fixed turn of the tool and the arm's kinematics agree with real poses to a hundredth of a millimetre."""
    clips = importers.bridge()
    assert len(clips) == 25 and all(len(one) == 10 for one in clips.items)
    from manikin.sysid.parameters import parse_parameter
    from manikin.sysid.rollout import Rollout

    rollout = Rollout(clips.some(["clip 0", "clip 5", "clip 11"]), [parse_parameter("kp=1:2")], physics_hz=100)
    assert rollout.start_error[:, 0].max() < 1e-4 and rollout.start_error[:, 1].max() < 1e-3
    rollout.close()


def test_a_robot_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "found.toml"
    text = 'format = 1\nrobot = "widowx"\n[joints.waist]\nkp = 500\nkd = 40.0\ndamping = 2\nfriction = 0.3\n'
    file.write_text(text + '[provenance]\nseed = 3\n[joints."elbow"]\narmature = 0.7\n')
    chosen, plain = robot(f"{file}:menagerie"), robot("widowx")
    gains = chosen.arm.gains
    assert chosen.menagerie and chosen.gripper is plain.gripper and chosen.arm.name == "widowx"
    assert (gains.kp[0], gains.kd[0]) == (500, 42) and gains.kp[1:] == plain.arm.gains.kp[1:]
    joints = {joint.name: joint for link in chosen.arm.links for joint in link.joints}
    assert joints["waist"].frictionloss == 0.3 and joints["elbow"].armature == 0.7
    assert robot(f"{file}+robotiq_2f85").gripper is robot("widowx+robotiq_2f85").gripper
    protocol = Protocol(name="a", tasks=("PickCube-v2",), seeds=(0,), robot=f"{file}:menagerie")
    before = protocol.hash
    (tmp_path / "other.toml").write_bytes(file.read_bytes())
    assert replace(protocol, robot=f"{tmp_path / 'other.toml'}:menagerie").hash == before  # what it says counts
    file.write_text(text.replace("500", "501"))
    assert replace(protocol, name="b").hash != before
    for wrong, kind, said in (
        ("format = 2", ConfigError, "does not read like"),
        ("format =", ConfigError, "not valid TOML"),
        (text + "kpp = 1", UnknownNameError, "unknown parameter of joint 'waist'"),
        (text.replace("500", "-1"), ConfigError, "kp of waist must be a number of at least 0, not -1"),
        (text.replace("waist", "wast"), UnknownNameError, "unknown joint of widowx 'wast'"),
        ("delay = -1\n" + text, ConfigError, "delay must be a time"),
    ):
        file.write_text(wrong)
        with pytest.raises(kind, match=said):
            robot(str(file))
    with pytest.raises(FileNotFoundError, match="there is no robot file"):
        robot(str(tmp_path / "none.toml"))
