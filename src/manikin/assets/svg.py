"""Lines of SVG files as polylines: paths with all their commands, the basic shapes, and transforms.

Grammar and arcs as in SVG 1.1 (W3C, sections 7 to 9 and F.6). What is filled counts by its outline. Text, pictures,
``use`` and styles are not read.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

from manikin.errors import DataError

__all__ = ["path_lines", "read_svg", "resampled"]

_CURVE = 64  # chords of a curve
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_BETWEEN = re.compile(r"[\s,]*")
_COUNTS = {"M": 2, "L": 2, "H": 1, "V": 1, "C": 6, "S": 4, "Q": 4, "T": 2, "A": 7, "Z": 0}
_FLAGS = (3, 4)  # of an arc: one digit each, which need nothing between them
_UNSEEN = frozenset({"defs", "clipPath", "mask", "pattern", "symbol", "marker", "linearGradient", "radialGradient"})
_SHAPES = ("path", "line", "polyline", "polygon", "rect", "circle", "ellipse")


def read_svg(file: str | Path) -> list[np.ndarray]:
    """The lines of a file in the order of the file, each (k, 2), in its units, y up.

    Raises:
        DataError: the file is not there, is no SVG, has nothing to draw, or a path, shape or transform cannot be read.
    """
    try:
        root = ElementTree.parse(file).getroot()
    except OSError as error:
        raise DataError(f"{file}: cannot be read ({error.strerror or error})") from error
    except ElementTree.ParseError as error:
        raise DataError(f"{file}: is not XML ({error})") from error
    if _tag(root) != "svg":
        raise DataError(f"{file}: is no SVG; its outermost element is <{_tag(root)}>")
    lines: list[np.ndarray] = []
    try:
        _collect(root, np.eye(3), lines)
    except ValueError as error:
        raise DataError(f"{file}: {error}") from error
    if not lines:
        found = sorted({_tag(each) for each in root.iter()} - {"svg"})
        if shapes := [tag for tag in found if tag in _SHAPES]:
            raise DataError(
                f"{file}: has nothing to draw. Each {' or '.join(shapes)} in it is a point, hidden or empty; a line "
                "needs two points, as in <path d='M 0 0 L 10 5'/>"
            )
        raise DataError(f"{file}: has nothing to draw. It has {found}; drawn are {', '.join(_SHAPES)}")
    return [line * (1, -1) for line in lines]


def resampled(lines: list[np.ndarray], size: float, spacing: float) -> list[np.ndarray]:
    """Lines about the origin whose larger side is ``size`` [m], with points every ``spacing`` [m] or a little less."""
    every = np.concatenate(lines)
    low, high = every.min(0), every.max(0)
    scale, out = size / max(float((high - low).max()), 1e-12), []
    for line in lines:
        points = (line - (low + high) / 2) * scale
        along = np.append(0, np.cumsum(np.linalg.norm(np.diff(points, axis=0), axis=1)))
        places = np.linspace(0, along[-1], max(2, math.ceil(along[-1] / spacing - 1e-9) + 1))
        out.append(np.stack([np.interp(places, along, points[:, axis]) for axis in (0, 1)], 1))
    return out


def _tag(element: ElementTree.Element) -> str:
    return str(element.tag).rpartition("}")[2]


def _collect(element: ElementTree.Element, frame: np.ndarray, lines: list[np.ndarray]) -> None:
    """Add the lines of an element and of what is in it."""
    tag = _tag(element)
    if tag in _UNSEEN or element.get("display") == "none":
        return
    name = f"<{tag}{' id=' + repr(element.get('id')) if element.get('id') else ''}>"
    try:
        frame = frame @ _transform(element.get("transform", ""))
        own = path_lines(_path_of(element, tag)) if tag in _SHAPES else []
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error
    lines += [line @ frame[:2, :2].T + frame[:2, 2] for line in own]
    for child in element:
        _collect(child, frame, lines)


def _path_of(element: ElementTree.Element, tag: str) -> str:
    """A shape as path data."""

    def value(name: str, default: float | None = None) -> float:
        text = element.get(name)
        if text is None and default is not None:
            return default
        try:
            return float((text or "").strip().removesuffix("px"))
        except ValueError:
            raise ValueError(f"{name} must be a number, not {text!r}") from None

    if tag == "path":
        return element.get("d", "")
    if tag == "line":
        return "M" + " ".join(str(value(name, 0.0)) for name in ("x1", "y1", "x2", "y2"))
    if tag in ("polyline", "polygon"):
        return "M" + element.get("points", "") + ("Z" if tag == "polygon" else "")
    if tag == "rect":
        x, y, width, height = value("x", 0.0), value("y", 0.0), value("width"), value("height")
        return f"M{x} {y}h{width}v{height}h{-width}z"
    rx, ry = (value("r"), value("r")) if tag == "circle" else (value("rx"), value("ry"))
    x, y = value("cx", 0.0), value("cy", 0.0)
    return f"M{x + rx} {y}A{rx} {ry} 0 0 1 {x - rx} {y}A{rx} {ry} 0 0 1 {x + rx} {y}Z"


def _transform(text: str) -> np.ndarray:
    """(3, 3) of a transform attribute."""
    out, rest = np.eye(3), text
    while rest.strip(" ,\t\r\n"):
        found = re.match(r"[\s,]*([a-zA-Z]+)\s*\(([^)]*)\)", rest)
        if not found:
            raise ValueError(f"transform {text!r} cannot be read at {rest.strip()!r:.30}")
        word, numbers = found[1], [float(number) for number in _NUMBER.findall(found[2])]
        rest = rest[found.end() :]
        if word not in _TRANSFORMS:
            raise ValueError(f"unknown transform {word!r}; valid: {', '.join(_TRANSFORMS)}")
        counts, matrix = _TRANSFORMS[word]
        if len(numbers) not in counts:
            raise ValueError(f"{word} takes {' or '.join(map(str, counts))} numbers, not {len(numbers)}")
        out = out @ matrix(*numbers)
    return out


def _matrix(a: float, b: float, c: float, d: float, e: float = 0.0, f: float = 0.0) -> np.ndarray:
    return np.array([[a, c, e], [b, d, f], [0, 0, 1.0]])


def _rotate(angle: float, x: float = 0.0, y: float = 0.0) -> np.ndarray:
    c, s = math.cos(math.radians(angle)), math.sin(math.radians(angle))
    return _matrix(1, 0, 0, 1, x, y) @ _matrix(c, s, -s, c) @ _matrix(1, 0, 0, 1, -x, -y)


_TRANSFORMS: dict[str, tuple[tuple[int, ...], Callable[..., np.ndarray]]] = {
    "matrix": ((6,), _matrix),
    "translate": ((1, 2), lambda x, y=0.0: _matrix(1, 0, 0, 1, x, y)),
    "scale": ((1, 2), lambda x, y=None: _matrix(x, 0, 0, x if y is None else y)),
    "rotate": ((1, 3), _rotate),
    "skewX": ((1,), lambda angle: _matrix(1, 0, math.tan(math.radians(angle)), 1)),
    "skewY": ((1,), lambda angle: _matrix(1, math.tan(math.radians(angle)), 0, 1)),
}


def _parsed(text: str) -> list[tuple[str, list[float]]]:
    """Commands with the numbers of one each; a repeated command may be left out in the text."""
    out: list[tuple[str, list[float]]] = []
    at, command = _BETWEEN.match(text, 0).end(), ""  # type: ignore[union-attr]
    while at < len(text):
        if text[at].isalpha():
            command = text[at]
            if command.upper() not in _COUNTS:
                raise ValueError(f"unknown command {command!r} at character {at + 1} of its path")
            at = _BETWEEN.match(text, at + 1).end()  # type: ignore[union-attr]
        elif command.upper() in ("", "Z"):
            raise ValueError(f"a command is missing at character {at + 1} of its path ({text[at : at + 12]!r})")
        if not out and command.upper() != "M":
            raise ValueError(f"a path begins with M, not with {command!r}")
        numbers = []
        for k in range(_COUNTS[command.upper()]):
            flag = command.upper() == "A" and k in _FLAGS
            found = re.compile("[01]").match(text, at) if flag else _NUMBER.match(text, at)
            if not found:
                what = "a flag, 0 or 1," if flag else "a number"
                raise ValueError(f"{what} is missing after {command!r} at character {at + 1} of its path")
            numbers.append(float(found[0]))
            at = _BETWEEN.match(text, found.end()).end()  # type: ignore[union-attr]
        out.append((command, numbers))
        command = {"M": "L", "m": "l"}.get(command, command)
    return out


def path_lines(text: str) -> list[np.ndarray]:
    """The lines of path data, each (k, 2), k at least 2, y down as in the text.

    Raises:
        ValueError: it cannot be read; says where.
    """
    lines: list[list[np.ndarray]] = []
    pen = first = handle = np.zeros(2)
    last = ""
    for command, numbers in _parsed(text):
        kind, base = command.upper(), pen if command.islower() else np.zeros(2)
        if kind == "M":
            pen = first = base + numbers
            lines.append([pen[None]])
        elif last == "Z":  # the next line begins where the last one did
            lines.append([pen[None]])
        new = np.zeros((0, 2))
        if kind == "Z":
            new, pen = first[None], first
        elif kind in "LHV":
            axes = {"L": [0, 1], "H": [0], "V": [1]}[kind]
            pen = pen.copy()
            pen[axes] = base[axes] + numbers
            new = pen[None]
        elif kind in "CSQT":
            corners = base + np.reshape(numbers, (-1, 2))
            if kind in "ST":  # the handle goes on straight
                corners = np.concatenate([[2 * pen - handle if last in {"S": "CS", "T": "QT"}[kind] else pen], corners])
            new, handle = _bezier(np.concatenate([pen[None], corners])), corners[-2]
            pen = corners[-1]
        elif kind == "A":
            new = _arc(pen, numbers[:5], base + numbers[5:])
            pen = base + numbers[5:]
        lines[-1].append(new)
        last = kind
    whole = [np.concatenate(line) for line in lines]
    return [line for line in whole if len(line) > 1 and np.ptp(line, axis=0).max() > 0]


def _bezier(corners: np.ndarray) -> np.ndarray:
    """Points (k, 2) on a curve with 3 or 4 corners, without its beginning, by de Casteljau."""
    t = np.linspace(0, 1, _CURVE + 1)[1:, None, None]
    points = np.broadcast_to(corners, (_CURVE, *corners.shape))
    while points.shape[1] > 1:
        points = (1 - t) * points[:, :-1] + t * points[:, 1:]
    return points[:, 0]


def _arc(start: np.ndarray, numbers: list[float], end: np.ndarray) -> np.ndarray:
    """Points (k, 2) on an elliptic arc, without its beginning; too small radii grow."""
    rx, ry, turn, large, sweep = abs(numbers[0]), abs(numbers[1]), *numbers[2:]
    if rx == 0 or ry == 0 or np.array_equal(start, end):
        return end[None]
    c, s = math.cos(math.radians(turn)), math.sin(math.radians(turn))
    frame = np.array([[c, -s], [s, c]])
    x, y = frame.T @ (start - end) / 2
    grown = math.sqrt(max(1.0, (x / rx) ** 2 + (y / ry) ** 2))
    rx, ry = rx * grown, ry * grown
    square = (rx * ry) ** 2 / ((rx * y) ** 2 + (ry * x) ** 2) - 1
    k = math.sqrt(max(0.0, square)) * (1 if large != sweep else -1)
    centre = np.array([k * rx * y / ry, -k * ry * x / rx])
    begin = math.atan2((y - centre[1]) / ry, (x - centre[0]) / rx)
    over = math.atan2((-y - centre[1]) / ry, (-x - centre[0]) / rx) - begin
    over = over % (2 * math.pi) if sweep else -(-over % (2 * math.pi))
    angle = begin + over * np.linspace(0, 1, _CURVE + 1)[1:]
    points = np.stack([rx * np.cos(angle), ry * np.sin(angle)], 1) + centre
    out: np.ndarray = points @ frame.T + (start + end) / 2
    return out
