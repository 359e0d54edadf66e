"""Parametric cabinets of a kitchen: stacks of drawers and doors, shelves, housings, worktops, fridges.

Each fills a box of width, depth and height (along y, x and z). x points out of the front, z = 0 is its lower face, and
the origin is the middle of its footprint.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from manikin.errors import SceneError, UnknownNameError
from manikin.homes.apartment import Fixture, Mechanism, Receptacle
from manikin.homes.joinery import FurniturePiece
from manikin.spec.links import RGBA, Geom, Link, Vec3, box
from manikin.spec.prop import Shape

__all__ = ["FRONTS", "Hole", "block", "cooler", "housing", "shelves", "stack", "worktop"]

FRONTS = ("drawer", "hinge_cabinet", "single_cabinet", "panel_cabinet")
"""What a level of a stack consists of: a drawer, two doors, one door, a fixed front."""

PANEL = 0.009  # [m] half thickness of panels
_GAP = 0.003  # [m] between fronts
_INSIDE, _STEEL = (0.9, 0.9, 0.88, 1.0), (0.72, 0.74, 0.76, 1.0)
_PLINTH = 0.07  # [m] that the plinth stands back


@dataclass(frozen=True)
class Hole:
    """A hole in a worktop: where its middle is along y and x, and its width and depth [m]."""

    y: float
    x: float
    width: float
    depth: float


def block(name: str, kind: str, size: Vec3, rgba: RGBA) -> Fixture:
    """A box of ``size`` (width, depth, height) [m] that stands in for something, or fills a gap."""
    return Fixture(name=name, kind=kind, shapes=tuple(_shapes([_plain(size, rgba)])))


def _plain(size: Vec3, rgba: RGBA) -> Geom:
    return box((size[1] / 2, size[0] / 2, size[2] / 2), (0, 0, size[2] / 2), rgba)


def _shapes(geoms: Sequence[Geom]) -> Iterator[Shape]:
    for geom in geoms:
        yield Shape(type=geom.type, size=geom.size, pos=geom.pos, quat=geom.quat, rgba=geom.rgba)


def stack(
    name: str,
    size: Vec3,
    levels: Sequence[str | Sequence[str]],
    shares: Sequence[float] | None = None,
    *,
    front: RGBA,
    plinth: float = 0.0,
    handles: str = "top",
    hinge: float = 1.0,
    open_top: bool = False,
) -> Mechanism | Fixture:
    """Drawers and doors above one another, as a mechanism; as a fixture where nothing of it opens.

    Args:
        name: of the stack.
        size: width, depth and height without the plinth [m].
        levels: from below, each one of :data:`FRONTS`, or two of them side by side.
        shares: of the height, one for each level; None for equal ones.
        front: colour of its fronts.
        plinth: height of the plinth under it [m].
        handles: of doors: ``top``, ``middle`` or ``bottom``.
        hinge: of single doors, 1 on the right of who stands before it, -1 on the left.
        open_top: leave the upper panel out, for a sink.

    Raises:
        UnknownNameError: a level of another kind.
        SceneError: no level, or shares that do not fit.
    """
    shares = [1 / len(levels)] * len(levels) if shares is None and levels else list(shares or ())
    if not levels or len(shares) != len(levels) or any(share <= 0 for share in shares):
        raise SceneError(f"stack {name!r} has {len(levels)} levels and shares {shares}; it needs a share above 0 each")
    width, depth, height = size
    piece = FurniturePiece(front, [Link(name="body", parent=None)], {}, [])
    half, back, number = width / 2, -depth / 2, {"drawer": 0, "door": 0, "shelf": 0}
    geoms: list[Geom] = []
    if plinth:
        geoms.append(box(((depth - _PLINTH) / 2, half, plinth / 2), (-_PLINTH / 2, 0, plinth / 2), (0.3, 0.3, 0.3, 1)))
    inner = depth - 2 * PANEL  # fronts cover the edges
    geoms += [
        box((inner / 2, PANEL, height / 2), (-PANEL, side * (half - PANEL), plinth + height / 2), front)
        for side in (-1.0, 1.0)
    ]
    geoms.append(box((PANEL, half - 2 * PANEL, height / 2), (back + PANEL, 0, plinth + height / 2), _INSIDE))
    boards = [plinth + PANEL, *([] if open_top else [plinth + height - PANEL])]

    def new(word: str) -> str:
        number[word] += 1
        return f"{word}{number[word] - 1}"

    low = plinth
    for level, share in zip(levels, shares, strict=True):
        high = low + share * height
        if low > plinth:
            boards.append(low)
        words = [level] if isinstance(level, str) else list(level)
        for k, word in enumerate(words):
            if word not in FRONTS:
                raise UnknownNameError("level of a stack", word, FRONTS)
            reach = half / len(words)
            y = -half + (2 * k + 1) * reach
            if k:
                geoms.append(box((inner / 2 - PANEL, PANEL, (high - low) / 2 - 2 * PANEL),
                                 (0, y - reach, (low + high) / 2), front))  # fmt: skip
            _front(piece, geoms, new, word, (y, reach), (low, high), depth, handles, hinge)
        low = high
    geoms += [box(((inner - 2 * PANEL) / 2, half - 2 * PANEL, PANEL), (0, 0, z), _INSIDE) for z in boards]
    piece.links[0] = Link(name="body", parent=None, geoms=tuple(geoms))
    if len(piece.links) > 1:
        return piece.done(name, "cabinet")
    kept = tuple(Receptacle(name=f"{name}/{r.name}", pos=r.pos, half=r.half) for r in piece.receptacles)
    return Fixture(name=name, kind="cabinet", shapes=tuple(_shapes(geoms)), receptacles=kept)


def _front(
    piece: FurniturePiece,
    geoms: list[Geom],
    new: Callable[[str], str],
    word: str,
    along: tuple[float, float],
    between: tuple[float, float],
    depth: float,
    handles: str,
    hinge: float,
) -> None:
    """What closes a level: ``along`` its middle and half width, ``between`` its lower and upper end [m]."""
    (y, reach), (low, high) = along, between
    at, middle, tall, wide = depth / 2 - 2 * PANEL, (low + high) / 2, (high - low) / 2 - _GAP, reach - _GAP
    if word == "panel_cabinet":
        geoms.append(box((PANEL, wide, tall), (depth / 2 - PANEL, y, middle), piece.front))
        return
    if word == "drawer":
        piece.drawer(new("drawer"), (at, y, middle), (depth / 2 - 0.02, wide, tall))
        return
    inside = (depth / 2 - 3 * PANEL, reach - 2 * PANEL - 0.005, (high - low) / 2 - 2 * PANEL)
    place = (0.0, y, low + 2 * PANEL + inside[2])
    shelf = new("shelf")
    piece.receptacles.append(Receptacle(name=shelf, link="body", pos=place, half=inside))
    raised = {"top": 1.0, "middle": 0.0, "bottom": -1.0}[handles] * max(0.0, tall - 0.2)
    if word == "single_cabinet":
        piece.door(new("door"), (at, y, middle), wide, tall, hinge=hinge, thick=PANEL, raised=raised)
        return
    for side in (-1.0, 1.0):
        piece.door(
            new("door"),
            (at, y + side * wide / 2, middle),
            wide / 2 - _GAP / 2,
            tall,
            hinge=side,
            thick=PANEL,
            raised=raised,
        )


def shelves(name: str, size: Vec3, levels: int, rgba: RGBA) -> Fixture:
    """A cabinet without doors, with so many boards one above the other."""
    width, depth, height = size
    room = (height - 2 * PANEL) / levels
    geoms = [box((depth / 2, PANEL, height / 2), (0, s * (width / 2 - PANEL), height / 2), rgba) for s in (-1.0, 1.0)]
    places = []
    for k in range(levels + 1):
        z = PANEL + k * room
        geoms.append(box((depth / 2, width / 2 - 2 * PANEL, PANEL), (0, 0, z), rgba))
        if k < levels:
            half = (depth / 2 - 0.02, width / 2 - 2 * PANEL - 0.02, room / 2 - PANEL)
            places.append(Receptacle(name=f"{name}/shelf{k}", pos=(0, 0, z + room / 2), half=half))
    return Fixture(name=name, kind="shelves", shapes=tuple(_shapes(geoms)), receptacles=tuple(places))


def housing(name: str, size: Vec3, hole: tuple[Vec3, Vec3], rgba: RGBA) -> Fixture:
    """Panels around what is built in.

    Args:
        name: of the housing.
        size: width, depth and height [m].
        hole: lowest and highest x, y, z of what is built in [m], in the housing's frame; it may stick out in front.
        rgba: colour.
    """
    (x0, y0, z0), (x1, y1, z1) = hole
    half, deep, high = size[0] / 2, size[1] / 2, size[2]
    spans = [
        ((-deep, deep), (-half, y0), (0.0, high)),
        ((-deep, deep), (y1, half), (0.0, high)),
        ((-deep, min(x1, deep)), (y0, y1), (0.0, z0)),
        ((-deep, min(x1, deep)), (y0, y1), (z1, high)),
        ((-deep, x0), (y0, y1), (z0, z1)),
    ]
    geoms = [
        box(tuple((b - a) / 2 for a, b in span), tuple((a + b) / 2 for a, b in span), rgba)  # type: ignore[arg-type]
        for span in spans
        if all(b - a > 0.002 for a, b in span)
    ]
    return Fixture(name=name, kind="housing", shapes=tuple(_shapes(geoms)))


def worktop(
    name: str,
    size: Vec3,
    *,
    under: tuple[float, float] | None,
    top: RGBA,
    base: RGBA,
    holes: Sequence[Hole] = (),
    thick: float = 0.03,
) -> Fixture:
    """The top of a counter, at height ``size[2]`` [m].

    Args:
        name: of the counter.
        size: width, depth and height [m].
        under: shares of the depth, from the back, between which a block stands under the top; None for no block.
        top: colour of the top.
        base: colour of the block.
        holes: cut into the top, from left to right.
        thick: of the top [m].
    """
    width, depth, height = size
    geoms: list[Geom] = []
    places: list[Receptacle] = []
    edge, z = -width / 2, height - thick / 2

    def slab(y0: float, y1: float, x0: float, x1: float) -> None:
        if y1 - y0 > 0.005 and x1 - x0 > 0.005:
            half = ((x1 - x0) / 2, (y1 - y0) / 2, thick / 2)
            geoms.append(box(half, ((x0 + x1) / 2, (y0 + y1) / 2, z), top))
            if min(half[:2]) > 0.1:
                inside = (half[0] - 0.03, half[1] - 0.03, 0.15)
                at = ((x0 + x1) / 2, (y0 + y1) / 2, height + 0.15)
                places.append(Receptacle(name=f"{name}/top{len(places)}", pos=at, half=inside))

    for hole in sorted(holes, key=lambda h: h.y):
        low, high = hole.y - hole.width / 2, hole.y + hole.width / 2
        slab(edge, low, -depth / 2, depth / 2)
        slab(low, high, -depth / 2, hole.x - hole.depth / 2)
        slab(low, high, hole.x + hole.depth / 2, depth / 2)
        edge = high
    slab(edge, width / 2, -depth / 2, depth / 2)
    if under is not None:
        low, high = (depth * (share - 0.5) for share in under)
        tall = (height - thick) / 2
        geoms.append(box(((high - low) / 2, width / 2, tall), ((low + high) / 2, 0, tall), base))
    return Fixture(name=name, kind="counter", shapes=tuple(_shapes(geoms)), receptacles=tuple(places))


def cooler(name: str, size: Vec3, form: str, *, front: RGBA = (0.82, 0.83, 0.85, 1)) -> Mechanism:
    """A fridge of ``size`` [m]. Forms: ``french_door``, ``side_by_side``, ``bottom_freezer``. Doors are ``door0``, ...,
    a freezer below is the drawer ``drawer0``.

    Raises:
        UnknownNameError: another form.
    """
    forms = ("french_door", "side_by_side", "bottom_freezer")
    if form not in forms:
        raise UnknownNameError("form of a fridge", form, forms)
    width, depth, height = size
    piece = FurniturePiece(front, [Link(name="body", parent=None)], {}, [])
    thick, wall, half = 0.025, 0.02, width / 2
    deep = depth / 2 - thick  # of the body, whose middle is that much further back
    split = 0.0 if form == "side_by_side" else 0.36 * height
    geoms = [box((deep, wall, height / 2), (-thick, s * (half - wall), height / 2), front) for s in (-1.0, 1.0)]
    geoms.append(box((wall, half - 2 * wall, height / 2), (-depth / 2 + wall, 0, height / 2), front))
    levels = [wall, *([split] if split else []), *(split + (height - split) * k / 4 for k in (1, 2, 3)), height - wall]
    for k, z in enumerate(levels):
        whole = k in (0, len(levels) - 1) or z == split
        reach, slab = (deep, wall) if whole else (deep - 0.05, 0.008)
        geoms.append(box((reach - wall, half - 2 * wall, slab), (reach - deep - thick + wall, 0, z), _INSIDE))
        if k + 1 < len(levels) and z >= split:
            room = (z + slab, levels[k + 1] - 0.02)
            inside = (deep - 0.06, half - 2 * wall - 0.02, (room[1] - room[0]) / 2)
            place = Receptacle(name=f"level{k}", link="body", pos=(-0.03, 0, (room[0] + room[1]) / 2), half=inside)
            piece.receptacles.append(place)
    piece.links[0] = Link(name="body", parent=None, geoms=tuple(geoms))
    at, middle, tall = depth / 2 - 2 * thick, (split + height) / 2, (height - split) / 2 - _GAP
    if form == "bottom_freezer":
        piece.door("door0", (at, 0, middle), half - _GAP, tall, hinge=1.0, thick=thick)
    else:
        for k, side in enumerate((-1.0, 1.0)):
            piece.door(f"door{k}", (at, side * half / 2, middle), half / 2 - _GAP, tall, hinge=side, thick=thick)
    if split:
        inner = (depth / 2 - 0.03, half - _GAP, split / 2 - _GAP)
        piece.drawer("drawer0", (depth / 2 - 2 * PANEL, 0, split / 2), inner)
    return piece.done(name, "fridge")
