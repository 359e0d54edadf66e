"""What the released script of Collins et al. computes, written apart: frame by frame, from files as it reads them."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from scipy.linalg import inv, logm
from scipy.spatial.distance import euclidean, mahalanobis

REPEATS, DT = 20, 0.1


def simulated(folder: Path, task: int) -> np.ndarray:
    """(N, 22 + 7 R): the mean arm, then each repeat's object."""
    tables = [
        np.genfromtxt(folder / f"task{task:02d}_{k + 1:02d}.csv", comments="#", delimiter=",") for k in range(REPEATS)
    ]
    arm = np.mean([one[:, :22] for one in tables], axis=0)
    return np.concatenate([arm, *([one[:, 22:] for one in tables] if tables[0].shape[1] > 22 else [])], axis=1)


def recorded(lines: list[str], rows: int) -> np.ndarray:
    """The summary's rows at the simulation's length; rows with zeros at the end are overwritten."""
    table = np.genfromtxt(lines, comments="#", skip_header=3, delimiter=",")[2:]
    while len(table) < rows:
        table = np.vstack([table, table[-1]])
    table = table[:rows].copy()
    back = 1
    while any(table[-back, c] == 0 for c in range(table.shape[1]) if c not in (13, 14, 15)):
        back += 1
    for k in range(1, back):
        table[-k] = table[-back]
    return table


def rotation(w: float, x: float, y: float, z: float) -> np.ndarray:
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + 2 * w * cross + 2 * cross @ cross


def angles(w: float, x: float, y: float, z: float) -> list[float]:
    pitch = math.asin(min(1.0, max(-1.0, 2 * (w * y - z * x))))
    roll, yaw = (
        math.atan2(2 * (w * x + y * z), 1 - 2 * (x * x + y * y)),
        math.atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z)),
    )
    return [math.degrees(one) for one in (roll, pitch, yaw)]


def speed(track: np.ndarray, k: int) -> float:
    return float(euclidean(track[k], track[k + 1])) / DT


def braking(track: np.ndarray, k: int) -> float:
    return (speed(track, k) - speed(track, k + 1)) / DT


def script(sim: np.ndarray, data: np.ndarray) -> list[float]:
    """The script's results in its order."""
    n = len(sim)
    position = rotated = pose = 0.0
    for s, d in zip(sim, data, strict=True):
        apart = euclidean(s[:3], d[:3])
        position += apart
        rotated += math.acos(min(1.0, abs(float(s[3:7] @ d[3:7]))))
        pose += np.linalg.norm(logm(np.linalg.inv(rotation(*d[3:7])) * rotation(*s[3:7]))) ** 2 + 37 * apart**2
    speeds = [(speed(sim[:, :3], k), speed(data[:, :3], k)) for k in range(n - 1)]
    changes = [(braking(sim[:, :3], k), braking(data[:, :3], k)) for k in range(n - 2)]
    found = [
        position / n,
        rotated / n,
        pose / n,
        max(s for s, _ in speeds),
        sum(abs(s - d) for s, d in speeds) / (n - 1),
    ]
    found += [max(0, *(s for s, _ in changes)), -min(0, *(s for s, _ in changes))]
    found += [sum(abs(s - d) for s, d in changes) / (n - 2)]
    for columns, first in ((slice(7, 13), 1), (slice(16, 19), 0), (slice(19, 22), 0)):
        loads = [(sum(abs(s[columns])), sum(abs(d[columns]))) for s, d in zip(sim[first:], data[first:], strict=True)]
        found += [min(1000, *(s for s, _ in loads))] if first else []
        found += [max(0, *(s for s, _ in loads)), sum(abs(s - d) for s, d in loads) / (n - first)]
    return found if sim.shape[1] == 22 else found + thing(sim, data)


def thing(sim: np.ndarray, data: np.ndarray) -> list[float]:
    rows, ends = [], []
    for repeat in range(REPEATS):
        columns = slice(22 + 7 * repeat, 29 + 7 * repeat)
        track = sim[:, columns][:, :3]
        first, last = len(sim) + 5, 0
        for k in range(3, len(sim) - 1):
            if speed(track, k) > 0.01:
                first, last = min(first, k + 1), max(last, k + 1)
        moves = [speed(track, k) for k in range(first, last)]
        slows = [braking(track, k) for k in range(first, last - 1)]
        length = last - first
        shares = [sum(moves) / length, sum(abs(one) for one in slows) / length] if length else [0, 0]
        time = 0 if first > len(sim) else length * DT
        rows.append([max([0, *moves]), shares[0], max([0, *slows]), min([0, *slows]), shares[1], time])
        ends.append((sim[-1, columns], data[-2, columns]))
    found = np.mean(rows, axis=0)
    found[3] = abs(found[3])
    distances = []
    for measure in (lambda end: end[:3], lambda end: angles(*end[3:])):
        s, d = (np.array([measure(pair[k]) for pair in ends]) for k in (0, 1))
        distances.append(mahalanobis(s.mean(0), d.mean(0), inv(np.cov(d.T))))
    return [*found, *distances]
