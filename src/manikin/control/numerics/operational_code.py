"""The operational-space law on the CPU as straight-line arithmetic: no matrices, one number after the other.

The code is written once, by running the law on symbols. The machine's C compiler makes machine code of it; without one,
a few rows are computed with Python's floats, many with one NumPy vector per number. All three add and multiply alike,
so a row comes out the same to the last bit in any batch and on any machine of one kind; and none pays for calls on tiny
matrices, which cost more than the arithmetic in them.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from manikin.control.numerics.law import LIGHTEST
from manikin.control.numerics.native import Native, native

__all__ = ["OperationalProgram"]

_FEW = 12  # rows: below, a row of floats after the other is faster than vectors (measured)

Number = Any  # a symbol, while the code is written; later a float, or a vector of all rows


class _Symbol:
    """A number not known yet: one that is given, or what an operator makes of two."""

    __slots__ = ("made", "name", "uses")

    def __init__(self, name: str = "", made: tuple[Number, str, Number] | None = None) -> None:
        self.name, self.made, self.uses = name, made, 0

    def __add__(self, other: Number) -> _Symbol:
        return _Symbol(made=(self, "+", other))

    def __sub__(self, other: Number) -> _Symbol:
        return _Symbol(made=(self, "-", other))

    def __mul__(self, other: Number) -> _Symbol:
        return _Symbol(made=(self, "*", other))

    def __rmul__(self, other: Number) -> _Symbol:
        return _Symbol(made=(other, "*", self))

    def __rtruediv__(self, other: Number) -> _Symbol:
        return _Symbol(made=(other, "/", self))

    def count(self) -> None:
        """Count how often each number is used by what is asked for; what is not used at all is not computed."""
        self.uses += 1
        if self.uses == 1 and self.made is not None:
            for part in self.made[::2]:
                if isinstance(part, _Symbol):
                    part.count()

    def write(self, lines: list[str]) -> str:
        """The number as an expression. Only what is used again gets a name: storing costs as much as adding."""
        if self.made is None or self.name:
            return self.name
        a, operator, b = self.made
        left, right = (x.write(lines) if isinstance(x, _Symbol) else repr(float(x)) for x in (a, b))
        if self.uses == 1:
            return f"({left} {operator} {right})"
        self.name = f"v{len(lines)}"
        lines.append(f"{self.name} = {left} {operator} {right}")
        return self.name


class _Code:
    """A law as straight-line code: ``size`` numbers in a row to ``width`` others.

    Args:
        law: takes lists of numbers, ``sizes`` long, and gives a list. It is run once, on symbols.
    """

    def __init__(self, law: Callable[..., list[Number]], sizes: Sequence[int]) -> None:
        self.size = sum(sizes)
        given = [_Symbol(f"x{k}") for k in range(self.size)]
        ends = np.cumsum(sizes).tolist()
        out = law(*(given[end - size : end] for size, end in zip(sizes, ends, strict=True)))
        self.width = len(out)
        for number in out:
            number.count()
        self._lines: list[str] = []
        self._found = [number.write(self._lines) for number in out]
        inside = ", ".join(s.name for s in given)
        body = "".join(f"    {line}\n" for line in self._lines)
        text = f"def run(x):\n    ({inside},) = x\n{body}    return ({', '.join(self._found)},)"
        space: dict[str, Any] = {}
        exec(compile(text, f"<{law.__name__}>", "exec"), space)
        self.run: Callable[[Sequence[Number]], tuple[Number, ...]] = space["run"]

    @functools.cached_property
    def native(self) -> Native | None:
        """The same as machine code (n, size) -> (n, width); None where it is not to be had or not the same."""
        code = native(self.size, self._lines, self._found)
        if code is not None:
            row, found = 1.0 + np.cos(np.arange(self.size))[None], np.empty((1, self.width))
            code(row, found)()
            if not np.array_equal(found[0], self.run(row[0].tolist()), equal_nan=True):
                return None
        return code


# ---- the law, on numbers ---------------------------------------------------------------------------------------------


def _dot(a: Sequence[Number], b: Sequence[Number]) -> Number:
    total = a[0] * b[0]
    for x, y in zip(a[1:], b[1:], strict=True):
        total = total + x * y
    return total


def _factor(matrix: Sequence[Sequence[Number]]) -> tuple[list[list[Number]], list[Number]]:
    """L below its unit diagonal, and 1 / D, of a symmetric matrix L D L^T of which the lower half is given."""
    k = len(matrix)
    rest = [list(row[: i + 1]) for i, row in enumerate(matrix)]
    lower: list[list[Number]] = [[] for _ in range(k)]
    inverse = []
    for j in range(k):
        inverse.append(1.0 / rest[j][j])
        for i in range(j + 1, k):
            lower[i].append(rest[i][j] * inverse[j])
        for i in range(j + 1, k):
            for c in range(j + 1, i + 1):
                rest[i][c] = rest[i][c] - lower[i][j] * rest[c][j]
    return lower, inverse


def _forward(lower: Sequence[Sequence[Number]], b: Sequence[Number]) -> list[Number]:
    found: list[Number] = []
    for row, value in zip(lower, b, strict=True):
        for share, before in zip(row, found, strict=True):
            value = value - share * before
        found.append(value)
    return found


def _solve(lower: Sequence[Sequence[Number]], inverse: Sequence[Number], b: Sequence[Number]) -> list[Number]:
    found = [y * d for y, d in zip(_forward(lower, b), inverse, strict=True)]
    for i in reversed(range(len(found))):
        for j in range(i + 1, len(found)):
            found[i] = found[i] - lower[j][i] * found[j]
    return found


def _lower(flat: Sequence[Number], k: int) -> list[list[Number]]:
    """Rows of a lower triangle with its diagonal."""
    return [list(flat[i * (i + 1) // 2 : (i + 1) * (i + 2) // 2]) for i in range(k)]


def _unpack(flat: Sequence[Number], k: int) -> tuple[list[list[Number]], list[Number]]:
    """What ``_pack`` put in a row."""
    lower, at = [], 0
    for i in range(k):
        lower.append(list(flat[at : at + i]))
        at += i
    return lower, list(flat[at : at + k])


def _pack(factored: tuple[list[list[Number]], list[Number]]) -> list[Number]:
    return [*(x for row in factored[0] for x in row), *factored[1]]


def _packed(k: int) -> int:
    return k * (k + 1) // 2


Law = Callable[..., list[Number]]


def _refresh(m: int, uncouple: bool) -> tuple[Law, tuple[int, ...]]:
    """Motion axes (m x 6), offset (3), lower half of M -> J (6 x m), factored J M^-1 J^T and its two blocks. With the
    sizes of what it takes."""

    def refresh(motion: list[Number], offset: list[Number], inertia: list[Number]) -> list[Number]:
        x, y, z = offset
        rows: list[list[Number]] = [[] for _ in range(6)]
        for j in range(m):
            a, b, c, u, v, w = motion[6 * j : 6 * j + 6]
            for row, value in zip(
                rows, (u + (b * z - c * y), v + (c * x - a * z), w + (a * y - b * x), a, b, c), strict=True
            ):
                row.append(value)
        lower, inverse = _factor(_lower(inertia, m))
        half = [_forward(lower, row) for row in rows]
        scaled = [[value * d for value, d in zip(row, inverse, strict=True)] for row in half]
        light = [[_dot(scaled[i], half[j]) for j in range(i + 1)] for i in range(6)]
        for i in range(6):
            light[i][i] = light[i][i] + LIGHTEST
        flat = [x for row in rows for x in row]
        whole = _pack(_factor(light))
        if not uncouple:
            return [*flat, *whole]
        pos, rot = [row[:3] for row in light[:3]], [row[3:] for row in light[3:]]
        return [*flat, *whole, *_pack(_factor(pos)), *_pack(_factor(rot))]

    return refresh, (6 * m, 3, _packed(m))


def _torque(m: int, uncouple: bool, posture: float) -> tuple[Law, tuple[int, ...]]:
    """What ``refresh`` gave, lower half of M, (q, qvel, compensation, tool position, rotation), (posture, stiffness,
    damping, goal position, rotation) -> torques (m). With the sizes of what it takes."""

    def torque(
        flat: list[Number], factors: list[Number], inertia: list[Number], state: list[Number], goal: list[Number]
    ) -> list[Number]:
        rows = [flat[i * m : (i + 1) * m] for i in range(6)]
        q, qvel, compensation, pos, turn = (state[a:b] for a, b in _runs(m, m, m, 3, 9))
        rest, kp, kd, to, want = (goal[a:b] for a, b in _runs(m, 6, 6, 3, 9))

        def skew(i: int, j: int) -> Number:  # of want turn^T
            return _dot(want[3 * i : 3 * i + 3], turn[3 * j : 3 * j + 3]) - _dot(
                want[3 * j : 3 * j + 3], turn[3 * i : 3 * i + 3]
            )

        error = [
            *(a - b for a, b in zip(to, pos, strict=True)),
            *(0.5 * skew(i, j) for i, j in ((2, 1), (0, 2), (1, 0))),
        ]
        wish = [k * e - d * _dot(row, qvel) for k, e, d, row in zip(kp, error, kd, rows, strict=True)]
        settle = [posture * (a - b) - 2.0 * math.sqrt(posture) * v for a, b, v in zip(rest, q, qvel, strict=True)]
        whole = _unpack(factors[: _packed(6)], 6)
        moved = [_dot(row, settle) for row in rows]
        if uncouple:
            both = [_unpack(factors[_packed(6) + s : _packed(6) + s + _packed(3)], 3) for s in (0, _packed(3))]
            force = [*_solve(*both[0], wish[:3]), *_solve(*both[1], wish[3:])]
            force = [f - g for f, g in zip(force, _solve(*whole, moved), strict=True)]
        else:
            force = _solve(*whole, [a - b for a, b in zip(wish, moved, strict=True)])
        half = _lower(inertia, m)
        mass = [[half[max(i, j)][min(i, j)] for j in range(m)] for i in range(m)]
        return [compensation[j] + (_dot([row[j] for row in rows], force) + _dot(mass[j], settle)) for j in range(m)]

    factors = _packed(6) + (2 * _packed(3) if uncouple else 0)
    return torque, (6 * m, factors, _packed(m), 3 * m + 12, m + 24)


def _runs(*sizes: int) -> list[tuple[int, int]]:
    ends = np.cumsum(sizes).tolist()
    return [(end - size, end) for size, end in zip(sizes, ends, strict=True)]


@functools.lru_cache(maxsize=32)
def written_program(m: int, uncouple: bool, posture: float, whole: bool) -> tuple[_Code, ...]:
    """The two laws, or both in one for where everything is computed anew at every physics step."""
    (refresh, of_refresh), (torque, of_torque) = _refresh(m, uncouple), _torque(m, uncouple, posture)

    def both(
        motion: list[Number], offset: list[Number], inertia: list[Number], state: list[Number], goal: list[Number]
    ) -> list[Number]:
        found = refresh(motion, offset, inertia)
        return torque(found[: 6 * m], found[6 * m :], inertia, state, goal)

    if whole:
        return (_Code(both, (*of_refresh, *of_torque[3:])),)
    return _Code(refresh, of_refresh), _Code(torque, of_torque)


class _Law:
    """Code at work on ``n`` rows."""

    def __init__(self, code: _Code, n: int) -> None:
        self._code, self._few = code, n <= _FEW
        self._given, self._found = np.empty((n, code.size)), np.empty((n, code.width))
        self._native = code.native and code.native(self._given, self._found)
        self.native = self._native is not None

    def __call__(self, *parts: np.ndarray) -> np.ndarray:
        """(n, width), borrowed until the next call, from what is given side by side."""
        given, found = np.concatenate(parts, 1, out=self._given), self._found
        if self._native is not None:
            self._native()
        elif self._few:
            found[...] = [self._code.run(row) for row in given.tolist()]
        else:
            np.stack(self._code.run(list(np.ascontiguousarray(given.T))), 1, out=found)
        return found


class OperationalProgram:
    """The law for ``n`` rows of an arm of ``m`` joints; see :func:`manikin.control.numerics.law.operational_torque`.

    Args:
        n: rows.
        m: joints.
        uncouple: an inertia each for position and orientation.
        posture: stiffness of the pull to the posture [1/s^2].
        every: physics steps after which what follows from the arm's configuration alone is computed anew.
    """

    def __init__(self, n: int, m: int, *, uncouple: bool, posture: float, every: int) -> None:
        self._every = every
        self._laws = [_Law(code, n) for code in written_program(m, uncouple, float(posture), every == 1)]
        self._cached: tuple[np.ndarray, ...] = ()

    @property
    def native(self) -> bool:
        """Whether machine code computes the law; otherwise Python or NumPy does."""
        return all(law.native for law in self._laws)

    def torque(
        self,
        substep: int,
        configuration: Callable[[], tuple[np.ndarray, np.ndarray, np.ndarray]],
        *state_and_goal: np.ndarray,
    ) -> np.ndarray:
        """(n, m) torques [N m], borrowed until the next call. How often the configuration is asked for changes no bit
        of what follows from it.

        Args:
            substep: number of the physics step.
            configuration: gives motion axes (n, 6 m), offset (n, 3) and inertia (n, m (m + 1) / 2), its lower half.
            state_and_goal: (n, 3 m + 12) joint positions, velocities, compensation; the tool's position and rotation
                matrix; and (n, m + 24) posture, stiffness (6), damping (6), goal position (3) and rotation (9); in any
                number of pieces.
        """
        if self._every == 1:
            return self._laws[0](*configuration(), *state_and_goal)
        refresh, torque = self._laws
        if substep % self._every == 0:
            axes, offset, inertia = configuration()
            self._cached = refresh(axes, offset, inertia), inertia.copy()
        return torque(*self._cached, *state_and_goal)
