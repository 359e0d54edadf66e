"""A soft layer: pressing keeps the volume, presses what lies below the stylus, and no row sees another."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from manikin.errors import ConfigError
from manikin.props.soft.layer import Layer, layer

CELLS, CELL, BOTTOM, THICK = 20, 0.005, 0.01, 0.012


class Height:
    """What a layer asks of a variable."""

    def __init__(self, rows: int) -> None:
        self.initial, self.value = THICK, torch.full((rows, CELLS * CELLS), THICK)

    def set(self, value: torch.Tensor) -> None:
        self.value = value


def _made(rows: int = 1) -> Layer:
    height: Any = Height(rows)
    return Layer(height, (0.1, 0.2), CELLS, CELL, BOTTOM)


def _pressed_slowly(tips: np.ndarray, radius: float, rim: float) -> np.ndarray:
    """The same, column by column: (CELLS, CELLS) [m]."""
    height = np.full((CELLS, CELLS), THICK)
    at = (np.arange(CELLS) - (CELLS - 1) / 2) * CELL
    for x, y, z in tips:
        away = np.hypot(at[:, None] + 0.1 - x, at[None] + 0.2 - y)
        under, around = away <= radius, (away > radius) & (away <= radius + rim)
        lost = np.where(under, np.maximum(height - max(z - BOTTOM, 0.0), 0.0), 0.0)
        height = height - lost + np.where(around, lost.sum() / max(around.sum(), 1), 0.0)
    return height


def test_pressing_is_what_the_rule_says_and_keeps_the_volume() -> None:
    made, rng = _made(), np.random.default_rng(3)
    start = made.volume.item()
    assert start == pytest.approx(CELLS**2 * CELL**2 * THICK, rel=1e-6)
    tips = np.column_stack([rng.uniform(0.07, 0.13, 60), rng.uniform(0.17, 0.23, 60), rng.uniform(0.012, 0.024, 60)])
    for tip in tips:
        made.press(torch.tensor(tip[None], dtype=torch.float32), 0.008, 0.012)
        assert made.volume.item() == pytest.approx(start, rel=1e-5)
    expected = _pressed_slowly(tips, 0.008, 0.012)
    np.testing.assert_allclose(made.height.value[0].numpy().reshape(CELLS, CELLS), expected, atol=1e-6)
    assert made.height.value.min() >= 0.0


@pytest.mark.parametrize("tip", [(0.1, 0.2, 0.03), (0.5, 0.2, 0.012), (0.1, 0.2, -1.0)])
def test_above_it_and_beside_it_nothing_happens_and_below_it_is_the_bottom(tip: tuple[float, float, float]) -> None:
    made = _made()
    made.press(torch.tensor([tip]), 0.008, 0.012)
    assert made.volume.item() == pytest.approx(CELLS**2 * CELL**2 * THICK, rel=1e-6)
    if tip[2] < 0:
        assert made.height.value.min().item() == 0.0
    else:
        assert torch.equal(made.height.value, torch.full((1, CELLS * CELLS), THICK))


def test_a_stylus_that_covers_all_of_it_presses_nothing() -> None:
    made = _made()
    made.press(torch.tensor([[0.1, 0.2, 0.012]]), 1.0, 0.5)
    assert torch.equal(made.height.value, torch.full((1, CELLS * CELLS), THICK))


def test_rows_are_apart_and_equal_to_single_ones() -> None:
    many = _made(3)
    tips = torch.tensor([[0.1, 0.2, 0.015], [0.5, 0.2, 0.015], [0.11, 0.19, 0.012]])
    for _ in range(3):
        many.press(tips, 0.008, 0.012)
        tips = tips + torch.tensor([0.004, 0.001, 0.0])
    for row in range(3):
        one = _made()
        for k in range(3):
            one.press(tips[row : row + 1] - (3 - k) * torch.tensor([0.004, 0.001, 0.0]), 0.008, 0.012)
        assert (one.height.value[0] - many.height.value[row]).abs().max() < 1e-6


def test_columns_near_lines_and_the_share_they_have_in_common() -> None:
    made = _made()
    start, end = torch.tensor([[[0.08, 0.2]]]), torch.tensor([[[0.12, 0.2]]])
    near = made.near(start, end, 0.008)[0]
    x, y = (made.places - torch.tensor([0.1, 0.2])).unbind(1)
    over = (x.abs() - 0.02).clamp_min(0.0)
    assert torch.equal(near, over**2 + y**2 <= 0.008**2)
    half = near & (x < 0)
    assert made.cover(near[None], half[None]).item() == pytest.approx(half.sum().item() / near.sum().item())
    assert made.cover(near[None], near[None]).item() == 1.0
    assert made.cover(near[None], (~near)[None]).item() == 0.0


def test_what_is_refused() -> None:
    for cells, cell, thickness in ((0, 0.005, 0.01), (3, 0.0, 0.01), (3, 0.005, 0.0)):
        with pytest.raises(ConfigError, match="above 0"):
            layer(None, "height", middle=(0, 0), cells=cells, cell=cell, bottom=0.0, thickness=thickness)  # type: ignore[arg-type]
