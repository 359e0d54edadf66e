"""SVG files against closed forms, and path data against svg.path where that library is installed."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from manikin.assets.svg import path_lines, read_svg, resampled
from manikin.errors import DataError


def svg(tmp_path: Path, inside: str) -> Path:
    file = tmp_path / "drawing.svg"
    file.write_text(f'<svg xmlns="http://www.w3.org/2000/svg">{inside}</svg>')
    return file


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("M1,2 3 4 5-6", [[1, 2], [3, 4], [5, -6]]),  # more pairs are lines
        ("m1 2 3 4 5-6", [[1, 2], [4, 6], [9, 0]]),
        ("M1 2H5V7h-1v.5.5", [[1, 2], [5, 2], [5, 7], [4, 7], [4, 7.5], [4, 8]]),
        ("M0 0L1 0 1 1Z", [[0, 0], [1, 0], [1, 1], [0, 0]]),
        ("M1e1-2.5E-1L.5.25", [[10, -0.25], [0.5, 0.25]]),
    ],
)
def test_straight_lines(text: str, expected: list[list[float]]) -> None:
    (line,) = path_lines(text)
    np.testing.assert_allclose(line, expected)


def test_a_line_after_z_begins_where_the_last_did_and_moves_begin_lines() -> None:
    first, second, third = path_lines("M1 1 2 1 2 2z l 0 5 M7 7h1")
    np.testing.assert_allclose(first, [[1, 1], [2, 1], [2, 2], [1, 1]])
    np.testing.assert_allclose(second, [[1, 1], [1, 6]])
    np.testing.assert_allclose(third, [[7, 7], [8, 7]])


def test_curves_are_their_polynomials_and_smooth_ones_go_on_straight() -> None:
    t = np.linspace(0, 1, 65)[:, None]
    (cubic,) = path_lines("M0 0C1 2 3 2 4 0")
    p = np.array([[0, 0], [1, 2], [3, 2], [4, 0.0]])
    curve = (1 - t) ** 3 * p[0] + 3 * (1 - t) ** 2 * t * p[1] + 3 * (1 - t) * t**2 * p[2] + t**3 * p[3]
    np.testing.assert_allclose(cubic, curve, atol=1e-12)
    (square,) = path_lines("m1 1q1 2 2 0")
    p = np.array([[1, 1], [2, 3], [3, 1.0]])
    np.testing.assert_allclose(square, (1 - t) ** 2 * p[0] + 2 * (1 - t) * t * p[1] + t**2 * p[2], atol=1e-12)
    np.testing.assert_allclose(path_lines("M0 0C1 2 3 2 4 0S7-2 8 0")[0], path_lines("M0 0C1 2 3 2 4 0C5-2 7-2 8 0")[0])
    np.testing.assert_allclose(path_lines("M0 0Q1 2 2 0t2 0")[0], path_lines("M0 0Q1 2 2 0Q3-2 4 0")[0])
    np.testing.assert_allclose(path_lines("M0 0T2 0")[0], path_lines("M0 0Q0 0 2 0")[0])  # no handle to go on with


@pytest.mark.parametrize(
    ("large", "sweep", "centre", "over"),
    [(0, 1, (0, 1), 90), (1, 1, (1, 0), 270), (0, 0, (1, 0), 90), (1, 0, (0, 1), 270)],
)
def test_the_four_arcs_between_two_points(large: int, sweep: int, centre: tuple[int, int], over: float) -> None:
    """From (0, 0) to (1, 1) on circles of radius 1: with the sweep, angles grow from x to y."""
    (line,) = path_lines(f"M0 0A1 1 0 {large}{sweep}1 1")  # flags may stand together
    np.testing.assert_allclose(np.linalg.norm(line - centre, axis=1), 1, atol=1e-12)
    length = np.linalg.norm(np.diff(line, axis=0), axis=1).sum()
    assert length == pytest.approx(math.radians(over), rel=1e-3)
    np.testing.assert_allclose(line[-1], [1, 1], atol=1e-12)


def test_turned_and_too_small_ellipses() -> None:
    (line,) = path_lines("M2 0A2 1 30 0 1-2 0")
    c, s = math.cos(math.radians(30)), math.sin(math.radians(30))
    local = line @ np.array([[c, -s], [s, c]])
    ratio = (local[:, 0] ** 2 / 4 + local[:, 1] ** 2) / (local[0, 0] ** 2 / 4 + local[0, 1] ** 2)
    np.testing.assert_allclose(ratio, 1, atol=1e-9)
    np.testing.assert_allclose(path_lines("M0 0A0 3 0 0 1 4 4")[0], [[0, 0], [4, 4]])  # a straight line


@pytest.mark.parametrize(
    "text",
    [
        "M 10 315 L 110 215 A 30 50 0 0 1 162.55 162.45 L 172.55 152.45 A 30 50 -45 0 1 215.1 109.9 L 315 10",
        "M10 80 C 40 10, 65 10, 95 80 S 150 150, 180 80 q 20-30 40 0 t 40 0 z m 5 5 l 3 4 h-2",
        "m300 200h-150a150 150 0 10150-150z",
    ],
)
def test_as_svg_path_has_it(text: str) -> None:
    library = pytest.importorskip("svg.path", reason="pip install svg.path")
    ours = path_lines(text)
    pieces = [piece for piece in library.parse_path(text) if type(piece).__name__ != "Move"]
    theirs = np.array([piece.point(t) for piece in pieces for t in np.linspace(0, 1, 65)])
    theirs = np.stack([theirs.real, theirs.imag], 1)
    assert to_chords(theirs, ours).max() < 0.15  # the arrow of a chord of the largest circle is 0.10
    assert to_chords(np.concatenate(ours), [theirs]).max() < 0.02


def to_chords(points: np.ndarray, lines: list[np.ndarray]) -> np.ndarray:
    """(n,) distance of each point to the nearest chord of the lines."""
    start, end = (np.concatenate([line[k:][: len(line) - 1] for line in lines]) for k in (0, 1))
    along = end - start
    share = ((points[:, None] - start) * along).sum(2) / np.maximum((along * along).sum(1), 1e-12)
    foot = start + share.clip(0, 1)[..., None] * along
    return np.linalg.norm(points[:, None] - foot, axis=2).min(1)


def test_shapes_and_transforms(tmp_path: Path) -> None:
    file = svg(
        tmp_path,
        '<g transform="translate(10, 20) scale(2)"><line x1="0" y1="0" x2="1" y2="3"/>'
        '<g transform="rotate(90)"><polyline points="1,0 2,0"/></g></g>'
        '<polygon points="0 0 1 0 1 1"/><rect x="1" y="2" width="3" height="4"/><ellipse cx="5" cy="6" rx="2" ry="1"/>'
        '<circle r="3" transform="matrix(1 0 0 1 7 0)"/><path d="M0 0L0 1" transform="rotate(90 1 1) skewX(45)"/>'
        '<defs><path d="M0 0 9 9"/></defs><text>word</text>',
    )
    line, turned, triangle, rect, ellipse, circle, path = (one * (1, -1) for one in read_svg(file))
    np.testing.assert_allclose(line, [[10, 20], [12, 26]])
    np.testing.assert_allclose(turned, [[10, 22], [10, 24]], atol=1e-12)
    np.testing.assert_allclose(triangle, [[0, 0], [1, 0], [1, 1], [0, 0]])
    np.testing.assert_allclose(rect, [[1, 2], [4, 2], [4, 6], [1, 6], [1, 2]])
    np.testing.assert_allclose(((ellipse - [5, 6]) / [2, 1]) ** 2 @ [1, 1], 1, atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(circle - [7, 0], axis=1), 3, atol=1e-12)
    np.testing.assert_allclose(path, [[2, 0], [1, 1]], atol=1e-12)  # (0, 1) is skewed to (1, 1), the pivot


def test_resampled_lines_have_the_size_and_even_points() -> None:
    lines = resampled([np.array([[0, 0], [8, 0], [8, 2.0]]), np.array([[1, 1], [2, 1.0]])], 0.4, 0.03)
    every = np.concatenate(lines)
    np.testing.assert_allclose([every.min(0), every.max(0)], [[-0.2, -0.05], [0.2, 0.05]], atol=1e-12)
    step = np.linalg.norm(np.diff(lines[1], axis=0), axis=1)
    assert (step <= 0.03 + 1e-12).all() and len(lines[1]) == 3 and len(lines[0]) == 18


@pytest.mark.parametrize(
    ("inside", "message"),
    [
        ('<path id="a" d="M0 0 X3"/>', r"<path id='a'>: unknown command 'X' at character 6"),
        ('<path d="M0 0 L3"/>', "a number is missing after 'L' at character 8"),
        ('<path d="M0 0A1 1 0 2 1 3 3"/>', "a flag, 0 or 1, is missing"),
        ('<path d="L3 3"/>', "begins with M, not with 'L'"),
        ('<path d="3 3"/>', "a command is missing at character 1"),
        ('<circle r="wide"/>', "<circle>: r must be a number, not 'wide'"),
        ('<path d="M0 0 1 1" transform="turn(3)"/>', "unknown transform 'turn'; valid: matrix"),
        ('<path d="M0 0 1 1" transform="scale(1 2 3)"/>', "scale takes 1 or 2 numbers, not 3"),
        ("<text>word</text>", r"nothing to draw. It has \['text'\]; drawn are path"),
        ('<path d="M3 3"/>', "nothing to draw. Each path in it is a point, hidden or empty; a line needs two points"),
        ('<defs><rect width="2" height="1"/></defs>', "Each rect in it is a point, hidden or empty"),
        ("<path", "is not XML"),
    ],
)
def test_what_is_wrong_in_a_file_is_named(tmp_path: Path, inside: str, message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        read_svg(svg(tmp_path, inside))
    assert "drawing.svg" in str(caught.value)


def test_other_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be read"):
        read_svg(tmp_path / "none.svg")
    (tmp_path / "page.html").write_text("<html></html>")
    with pytest.raises(DataError, match="outermost element is <html>"):
        read_svg(tmp_path / "page.html")
