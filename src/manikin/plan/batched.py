"""Paths around obstacles for many rows at once: RRT-Connect in step, then short cuts.

Every row grows two trees, from its start and from its goals (Kuffner and LaValle 2000). In one round every row that is
still searching extends one tree towards a random configuration and tries to connect the other to where it came; all
configurations that the rows want to know about are checked in one call. Rows share calls, never numbers: a row's path
is a function of its problem and its seed, whatever else is in the batch.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch

from manikin.plan.collision import CollisionChecker
from manikin.rng import EpisodeRng

__all__ = ["DENSE", "Problems", "Search", "dense", "search"]

DENSE = 4  # times as densely is a finished path looked at
_ENOUGH = 8  # short cuts that fail in a row


@dataclass(frozen=True)
class Search:
    """How hard to look.

    Attributes:
        step: [rad] largest joint step between checked configurations; the finished path is checked at a quarter of it.
        reach: [rad] largest joint step by which a tree grows at once.
        rounds: until a row gives up; each adds at most a node to each of its trees.
        shortcuts: tries to shorten a path.
        attempts: searches anew, each looking twice as densely, where the finished path touches what was stepped over.
    """

    step: float = 0.05
    reach: float = 0.8
    rounds: int = 2000
    shortcuts: int = 32
    attempts: int = 3


@dataclass(frozen=True)
class Problems:
    """n problems in the rows of a checker that has looked at them.

    Attributes:
        start: (n, joints) [rad], free.
        goals: of each row its goals (any number, joints) [rad], free; a row without is left out.
        low: (joints,) limits of the joints, down ...
        high: ... and up.
        moved: (joints,) bool, the joints that may move.
        seed: (n,) int64.
    """

    start: np.ndarray
    goals: list[np.ndarray]
    low: np.ndarray
    high: np.ndarray
    moved: np.ndarray
    seed: np.ndarray


def search(checker: CollisionChecker, problems: Problems, effort: Search) -> list[np.ndarray | None]:
    """Of each row the corners (points, joints) of a path that is free, or None where none was found."""
    n = len(problems.start)
    paths: list[np.ndarray | None] = [None] * n
    todo = np.array([r for r in range(n) if len(problems.goals[r])], np.int64)
    for attempt in range(effort.attempts):
        if not len(todo):
            break
        rng = EpisodeRng(torch.from_numpy(problems.seed[todo]), torch.full((len(todo),), attempt, dtype=torch.int64))
        looked = dataclasses.replace(effort, step=effort.step / 2**attempt)
        found = _connect(checker, problems, todo, rng, looked)
        made = np.array([r for r in todo if found[r] is not None], np.int64)
        if not len(made):
            break  # trees of full size that did not meet: another seed is the caller's choice
        corners = _shorten(checker, {int(r): found[r] for r in made}, todo, rng, looked)
        good = dense(checker, corners, effort.step / DENSE)
        for r in made[good]:
            paths[r] = corners[int(r)]
        todo = made[~good]
    return paths


# ---- edges -----------------------------------------------------------------------------------------------------------


def _longest(difference: np.ndarray) -> np.ndarray:
    return np.abs(difference).max(-1)


def _steps(a: np.ndarray, b: np.ndarray, step: float) -> np.ndarray:
    """(m,) pieces no longer than ``step`` on the way from a to b."""
    return np.ceil(_longest(b - a) / step - 1e-9).astype(np.int64)


def _walk(
    checker: CollisionChecker, a: np.ndarray, b: np.ndarray, which: np.ndarray, step: float
) -> tuple[np.ndarray, np.ndarray]:
    """How far one gets from a (m, joints), free, towards b: (steps that are free, steps to b), each (m,)."""
    count = _steps(a, b, step)
    done, going, k = np.zeros_like(count), count > 0, checker.of_row
    while going.any():
        rows = np.flatnonzero(going)
        at = done[rows, None] + 1 + np.arange(k)
        asked = at <= count[rows, None]
        free = checker.free(_between(a[rows], b[rows], at, count[rows]), which[rows], asked)
        ahead = np.logical_and.accumulate(free, 1).sum(1)
        stuck = ahead < k
        done[rows] += np.minimum(ahead, asked.sum(1))
        going[rows] = ~stuck & (done[rows] < count[rows])
    return done, count


def _is_clear(checker: CollisionChecker, a: np.ndarray, b: np.ndarray, which: np.ndarray, step: float) -> np.ndarray:
    """(m,) bool: nothing between a and b, both (m, joints) and themselves free. Looks in the middle first."""
    count = _steps(a, b, step)
    order = [_spread(int(c)) for c in count]
    longest = max((len(o) for o in order), default=0)
    table = np.zeros((len(count), longest), np.int64)
    for r, places in enumerate(order):
        table[r, : len(places)] = places
    clear, k = np.ones(len(count), bool), checker.of_row
    for begin in range(0, longest, k):
        at = table[:, begin : begin + k]
        rows = np.flatnonzero(clear & (at[:, 0] > 0))
        if not len(rows):
            break
        at = at[rows]
        free = checker.free(_between(a[rows], b[rows], at, count[rows]), which[rows], at > 0)
        clear[rows] = free.all(1)
    return clear


def _between(a: np.ndarray, b: np.ndarray, at: np.ndarray, count: np.ndarray) -> np.ndarray:
    share = np.minimum(at / count[:, None], 1.0)[:, :, None]
    return a[:, None] + share * (b - a)[:, None]


_orders: dict[int, np.ndarray] = {}


def _spread(count: int) -> np.ndarray:
    """1 .. count - 1 so that any beginning of it is spread out: by bits reversed."""
    if count not in _orders:
        bits = max(1, (count - 1).bit_length())
        value = np.arange(1, 1 << bits)
        reverse = sum(((value >> b) & 1) << (bits - 1 - b) for b in range(bits))
        _orders[count] = np.asarray(reverse)[np.asarray(reverse) < count]
    return _orders[count]


# ---- two trees -------------------------------------------------------------------------------------------------------


def _nearest(nodes: np.ndarray, count: np.ndarray, to: np.ndarray) -> np.ndarray:
    """(m,) of nodes (m, capacity, joints), ``count`` of each, the one nearest to ``to`` (m, joints)."""
    most = int(count.max())
    square = np.zeros((len(nodes), most))
    for j in range(nodes.shape[2]):  # one joint after the other: the sum does not depend on the batch
        square += np.square(nodes[:, :most, j] - to[:, None, j])
    square[np.arange(most) >= count[:, None]] = np.inf
    return square.argmin(1)


class _Trees:
    """Two trees of each row: 0 grows from the start, 1 from the goals."""

    def __init__(self, problems: Problems, rows: np.ndarray) -> None:
        most = max(len(problems.goals[r]) for r in rows)
        n, joints = len(rows), problems.start.shape[1]
        self.nodes, self.parent = np.zeros((2, n, most + 64, joints)), np.full((2, n, most + 64), -1)
        self.count = np.ones((2, n), np.int64)
        self.nodes[0, :, 0] = problems.start[rows]
        for i, r in enumerate(rows):
            goals = problems.goals[r]
            self.nodes[1, i, : len(goals)], self.count[1, i] = goals, len(goals)

    def add(self, tree: int, at: np.ndarray, node: np.ndarray, parent: np.ndarray) -> np.ndarray:
        place = self.count[tree, at]
        if len(at) and place.max() >= self.nodes.shape[2]:
            self.nodes = np.concatenate([self.nodes, np.zeros_like(self.nodes)], 2)
            self.parent = np.concatenate([self.parent, np.full_like(self.parent, -1)], 2)
        self.nodes[tree, at, place], self.parent[tree, at, place] = node, parent
        self.count[tree, at] += 1
        return place

    def branch(self, tree: int, i: int, place: int) -> list[np.ndarray]:
        """From a node to its root."""
        found = []
        while place >= 0:
            found.append(self.nodes[tree, i, place])
            place = int(self.parent[tree, i, place])
        return found


def _samples(problems: Problems, rows: np.ndarray, rng: EpisodeRng, rounds: int) -> Iterator[np.ndarray]:
    """Random configurations (m, joints) without end: in turns from all the room, and from about start and goal."""
    start = problems.start[rows]
    goal = np.stack([problems.goals[r][0] for r in rows])
    low, high = np.minimum(start, goal) - 1.0, np.maximum(start, goal) + 1.0
    low, high = np.maximum(low, problems.low), np.minimum(high, problems.high)
    block = 16
    for k in range(rounds):
        if k % block == 0:
            drawn = rng.uniform("sample", shape=(block, start.shape[1])).double().numpy()
        share = drawn[:, k % block]
        sample = low + share * (high - low) if k // 2 % 2 else problems.low + share * (problems.high - problems.low)
        yield np.where(problems.moved, sample, start)


def _connect(
    checker: CollisionChecker, problems: Problems, rows: np.ndarray, rng: EpisodeRng, effort: Search
) -> dict[int, np.ndarray | None]:
    """Of each of the rows a path of tree edges, or None."""
    found: dict[int, np.ndarray | None] = dict.fromkeys(map(int, rows))
    first = np.stack([problems.goals[r][0] for r in rows])
    straight = _is_clear(checker, problems.start[rows], first, rows, effort.step)
    for i in np.flatnonzero(straight):
        found[int(rows[i])] = np.stack([problems.start[rows[i]], first[i]])
    searching = ~straight
    trees = _Trees(problems, rows)
    for k, sample in enumerate(_samples(problems, rows, rng, effort.rounds)):
        at = np.flatnonzero(searching)
        if not len(at):
            break
        this, other = k % 2, 1 - k % 2
        parent = _nearest(trees.nodes[this, at], trees.count[this, at], sample[at])
        near = trees.nodes[this, at, parent]
        way = sample[at] - near
        way = way * np.minimum(1.0, effort.reach / np.maximum(_longest(way), 1e-12))[:, None]
        done, count = _walk(checker, near, near + way, rows[at], effort.step)
        grown = done > 0
        at, parent, near, way = at[grown], parent[grown], near[grown], way[grown]
        if not len(at):
            continue
        new = near + way * (done / np.maximum(count, 1))[grown, None]
        place = trees.add(this, at, new, parent)
        parent = _nearest(trees.nodes[other, at], trees.count[other, at], new)
        near = trees.nodes[other, at, parent]
        done, count = _walk(checker, near, new, rows[at], effort.step)
        met = done == count
        short = (done > 0) & ~met
        reached = near + (new - near) * (done / np.maximum(count, 1))[:, None]
        trees.add(other, at[short], reached[short], parent[short])
        for i, mine, theirs in zip(at[met], place[met], parent[met], strict=True):
            one, two = trees.branch(this, i, int(mine)), trees.branch(other, i, int(theirs))
            if this == 1:
                one, two = two, one
            found[int(rows[i])] = _apart(np.stack([*one[::-1], *two]))
        searching[at[met]] = False
    return found


def _apart(path: np.ndarray) -> np.ndarray:
    """Without corners that lie on the one before; the last one stays."""
    keep = np.r_[True, _longest(np.diff(path, axis=0)) > 1e-9]
    path = path[keep]
    return path if len(path) > 1 else np.repeat(path, 2, 0)


# ---- short cuts ------------------------------------------------------------------------------------------------------


def _shorten(
    checker: CollisionChecker, paths: dict[int, np.ndarray | None], rows: np.ndarray, rng: EpisodeRng, effort: Search
) -> dict[int, np.ndarray]:
    """Replace what is between two places on a path by the straight line, where that is free."""
    corners = {r: p for r, p in paths.items() if p is not None}
    fails = dict.fromkeys(corners, 0)
    draws = rng.uniform("shortcut", shape=(effort.shortcuts, 2)).double().numpy()
    place = {int(r): i for i, r in enumerate(rows)}
    for k in range(effort.shortcuts):
        tries = []
        for r, path in corners.items():
            if len(path) < 3 or fails[r] >= _ENOUGH:
                continue
            cut = _cut(path, draws[place[r], k], whole=k < effort.shortcuts // 4)
            if cut is not None:
                tries.append((r, *cut))
        if not tries:
            continue
        which = np.array([t[0] for t in tries], np.int64)
        a, b = (np.stack([t[c] for t in tries]) for c in (1, 2))
        clear = _is_clear(checker, a, b, which, effort.step)
        for (r, one, two, before, after), good in zip(tries, clear, strict=True):
            fails[r] = 0 if good else fails[r] + 1
            if good:
                path = corners[r]
                corners[r] = _apart(np.concatenate([path[: before + 1], one[None], two[None], path[after:]]))
    return corners


def _cut(path: np.ndarray, u: np.ndarray, *, whole: bool) -> tuple[np.ndarray, np.ndarray, int, int] | None:
    """Two places on a path, the last corner before the first and the first corner after the second; None when there is
    nothing to cut between them. ``whole`` takes corners, else any places."""
    last = len(path) - 1
    if whole:
        i = int(u[0] * (last - 1))
        j = i + 2 + int(u[1] * (last - 1 - i))
        return path[i], path[j], i, j
    lengths = np.sqrt(_squares(np.diff(path, axis=0)))
    ends = np.cumsum(lengths)
    at = np.sort(u) * ends[-1]
    piece = np.minimum(np.searchsorted(ends, at), last - 1)
    if piece[0] == piece[1]:
        return None
    share = 1.0 - (ends[piece] - at) / lengths[piece]
    points = path[piece] + share[:, None] * (path[piece + 1] - path[piece])
    return points[0], points[1], int(piece[0]), int(piece[1]) + 1


def _squares(difference: np.ndarray) -> np.ndarray:
    total = np.zeros(difference.shape[:-1])
    for j in range(difference.shape[-1]):
        total += np.square(difference[..., j])
    return total


def dense(checker: CollisionChecker, corners: dict[int, np.ndarray], step: float) -> np.ndarray:
    """(paths,) bool: whole paths, by row, that are free when looked at every ``step`` [rad]."""
    which = np.array([r for r, path in corners.items() for _ in path[1:]], np.int64)
    a = np.concatenate([path[:-1] for path in corners.values()])
    b = np.concatenate([path[1:] for path in corners.values()])
    clear = np.ones(len(a), bool)
    corner_free = np.ones(len(a), bool)
    pieces = np.concatenate([np.arange(len(path) - 1) for path in corners.values()])
    for piece in range(int(pieces.max()) + 1):  # one piece of each row at a time: a row has so many slots
        rows = np.flatnonzero(pieces == piece)
        clear[rows] = _is_clear(checker, a[rows], b[rows], which[rows], step)
        corner_free[rows] = checker.free(b[rows, None], which[rows])[:, 0]
    good = clear & corner_free
    return np.array([bool(good[which == r].all()) for r in corners])
