"""An open square pot with two handles, as in robosuite's two-arm lifting."""

from __future__ import annotations

from manikin.spec.prop import RGBA, Shape

__all__ = ["HALF", "HANDLES", "HANDLE_SHAPES", "pot", "pot_rests"]

HALF = 0.07  # [m] of the body's sides and height
HANDLES = ((0.0, -0.155, 0.06), (0.0, 0.155, 0.06))  # [m] where each is held, in the pot's frame
HANDLE_SHAPES = ((5, 6, 7), (8, 9, 10))  # numbers of the shapes that each handle is made of
_WALL, _LENGTH, _WIDTH, _BAR = 0.01, 0.09, 0.09, 0.01
_RED: RGBA = (0.75, 0.2, 0.15, 1.0)
_COLOURS: tuple[RGBA, RGBA] = ((0.2, 0.6, 0.25, 1.0), (0.2, 0.35, 0.75, 1.0))


def pot() -> list[Shape]:
    """A bottom and four walls 1 cm thick, 14 cm wide and high, and a handle on either side of y."""
    off, half = HALF - _WALL / 2, _WALL / 2
    out = [
        Shape(type="box", size=(HALF, HALF, half), pos=(0, 0, -off), rgba=_RED),
        *(Shape(type="box", size=(HALF, half, HALF), pos=(0, s * off, 0), rgba=_RED) for s in (-1, 1)),
        *(Shape(type="box", size=(half, HALF, HALF), pos=(s * off, 0, 0), rgba=_RED) for s in (-1, 1)),
    ]
    z = HALF - _BAR
    for side, colour in zip((-1, 1), _COLOURS, strict=True):
        y = side * (HALF + _LENGTH)
        out.append(Shape(type="box", size=(_WIDTH / 2 + _BAR, _BAR, _BAR), pos=(0, y, z), rgba=colour))
        y = side * (HALF + _LENGTH / 2)
        bar = (_BAR, _LENGTH / 2, _BAR)
        out += [Shape(type="box", size=bar, pos=(x, y, z), rgba=colour) for x in (-_WIDTH / 2, _WIDTH / 2)]
    return out


def pot_rests() -> list[Shape]:
    """Three boxes with the hulls of the pot's body and of its handles."""
    y = HALF + (_LENGTH + _BAR) / 2
    handle = (_WIDTH / 2 + _BAR, (_LENGTH + _BAR) / 2, _BAR)
    return [
        Shape(type="box", size=(HALF, HALF, HALF)),
        *(Shape(type="box", size=handle, pos=(0, s * y, HALF - _BAR)) for s in (-1, 1)),
    ]
