"""From fixtures in their places to a kitchen that can be furnished, in which nothing intersects anything."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import mujoco
import numpy as np

from manikin.homes.apartment import Apartment, Fixture, Mechanism
from manikin.homes.kitchens import appliances, cabinets
from manikin.homes.kitchens.layout import Spot, placed
from manikin.spec.links import RGBA, Vec3
from manikin.spec.prop import Shape

__all__ = ["Colours", "assembled", "boxes"]

_PLINTH = 0.05  # [m] under a stack, as in RoboCasa
_THICK = 0.05  # [m] half thickness of walls
_TOUCH = 1e-3  # [m] by which boxes may reach into one another
_BASIN = 0.06  # [m] less than this is no basin
_CUTS, _MOST = 6, 0.4  # how often a fixture is cut back before it is left out, and by which share at once
# What gives way where two fixtures intersect, first to last; those of one kind give way in the layout's order.
_GIVES_WAY = ("box", "stool", "hood", "panel_cabinet", "open_cabinet", "housing_cabinet", "hinge_cabinet",
              "single_cabinet", "stack", "counter")  # fmt: skip
Piece = Fixture | Mechanism
_XY = tuple[float, float]


@dataclass(frozen=True, kw_only=True)
class Colours:
    """Of the fronts of cabinets, of the tops and bases of counters, and of the walls."""

    front: RGBA = (0.85, 0.82, 0.75, 1)
    top: RGBA = (0.4, 0.38, 0.36, 1)
    base: RGBA = (0.75, 0.73, 0.7, 1)
    wall: RGBA = (0.93, 0.92, 0.88, 1)


def assembled(name: str, layout: Mapping[str, Any], colours: Colours, notes: Iterable[str] = ()) -> Apartment:
    """The kitchen of a layout as an apartment.

    Args:
        name: of the kitchen.
        layout: see :mod:`manikin.homes.kitchens.layout`.
        colours: of its surfaces.
        notes: which the apartment's own begin with.

    Returns:
        Fixtures and mechanisms are named as in the layout, with their group: ``sink_main_group``. Notes say what is
        left out or replaced, so that nothing intersects anything.

    Raises:
        DataError: the layout is damaged.
    """
    said = [*notes, *_left_out(layout)]
    kept = _apart(placed(layout), colours, said)
    walls, low, high = _walls(layout, colours)
    return Apartment(
        name=name,
        low=low,
        high=high,
        walls=walls,
        fixtures=tuple(piece for piece in kept if isinstance(piece, Fixture)),
        mechanisms=tuple(piece for piece in kept if isinstance(piece, Mechanism)),
        notes=tuple(said),
    )


def _left_out(layout: Mapping[str, Any]) -> list[str]:
    """One sentence for each kind of thing that is not built."""
    loose: Counter[str] = Counter()
    for group, rows in layout.items():
        for row in rows.values():
            for config in row if isinstance(row, Sequence) and not isinstance(row, str) else ():
                if not isinstance(config, Mapping) or not config.get("enable", True):
                    continue
                if "placement" in config or (group == "room" and config["type"] not in ("wall", "floor")):
                    loose[str(config["type"])] += 1
    return [f"{count} {kind}: left out, nothing stands in" for kind, count in sorted(loose.items())]


def _built(spot: Spot, spots: Sequence[Spot], colours: Colours, said: list[str]) -> Piece:
    """What a fixture looks like, where it stands."""
    size: Vec3 = tuple(float(v) for v in spot.size)  # type: ignore[assignment]
    low = float(spot.pos[2] - spot.size[2] / 2)
    piece, lift = _made(spot, size, spots, colours, said)
    yaw = spot.yaw - math.pi / 2
    pos = (float(spot.pos[0]), float(spot.pos[1]), low + lift)
    return replace(piece, pos=pos, quat=(math.cos(yaw / 2), 0.0, 0.0, math.sin(yaw / 2)))


def _made(spot: Spot, size: Vec3, spots: Sequence[Spot], colours: Colours, said: list[str]) -> tuple[Piece, float]:
    """The piece, and how far its frame is above the lower face [m]."""
    name, kind, config, front = spot.name, spot.type, spot.config, colours.front
    hinge = -1.0 if config.get("orientation", "right") == "left" else 1.0
    low = {"plinth": 0.0, "handles": "bottom", "front": front}
    match kind:
        case "counter":
            return _worktop(spot, size, spots, colours), 0.0
        case "stack":
            levels, opened = _levels(spot, spots, said)
            shares = [share for share in config["percentages"] if share > 0]
            made = cabinets.stack(name, (size[0], size[1], size[2]), levels, shares, front=front, plinth=_PLINTH,
                                  hinge=hinge, open_top=opened)  # fmt: skip
            return made, -_PLINTH
        case "single_cabinet":
            return cabinets.stack(name, size, ["single_cabinet"], hinge=hinge, **low), 0.0  # type: ignore[arg-type]
        case "hinge_cabinet":
            return cabinets.stack(name, size, ["hinge_cabinet"], **low), 0.0  # type: ignore[arg-type]
        case "open_cabinet":
            return cabinets.shelves(name, size, int(config.get("num_levels", 2)), front), 0.0
        case "housing_cabinet" if spot.inside is not None:
            reach = spot.inside.size / 2
            middle = _seen_from(spot, spot.inside)
            half = np.array([reach[1], reach[0], reach[2]])
            hole = tuple(map(float, middle - half)), tuple(map(float, middle + half))
            return cabinets.housing(name, size, hole, front), 0.0  # type: ignore[arg-type]
        case "sink":
            return appliances.sink(name, (size[0], size[1], _basin(spot, spots))), size[2]
        case "stovetop":
            return appliances.hob(name, size), 0.0
        case "stove" | "stove_wide":
            return appliances.stove(name, size), 0.0
        case "oven":
            return appliances.oven(name, size), 0.0
        case "microwave":
            return appliances.microwave(name, size), 0.0
        case "dishwasher":
            return appliances.dishwasher(name, size), 0.0
        case "hood":
            return appliances.hood(name, size), 0.0
        case "fridge_french_door" | "fridge_side_by_side" | "fridge_bottom_freezer":
            return cabinets.cooler(name, size, kind.removeprefix("fridge_")), 0.0
        case "box" | "panel_cabinet":
            return cabinets.block(name, kind, size, front), 0.0
        case _:
            said.append(f"{name}: a {kind} is not known; a box of its size stands in")
            return cabinets.block(name, kind, size, colours.base), 0.0


def _seen_from(spot: Spot, other: Spot) -> np.ndarray:
    """(3,) middle of another fixture in the frame of a piece: x out of the front, z from the lower face [m]."""
    x, y, z = other.pos - spot.pos
    cos, sin = math.cos(spot.yaw - math.pi / 2), math.sin(spot.yaw - math.pi / 2)
    return np.array([cos * x + sin * y, -sin * x + cos * y, z + spot.size[2] / 2])


def _below(spot: Spot, spots: Sequence[Spot]) -> list[Spot]:
    """Stacks and dishwashers under a fixture."""
    found = []
    for other in spots:
        if other.type in ("stack", "dishwasher", "oven", "housing_cabinet", "hinge_cabinet", "single_cabinet", "box"):
            gap = np.abs(_seen_from(spot, other)[:2]) - (_footprint(other, spot) + spot.size[[1, 0]]) / 2
            if (gap < -0.01).all() and other.pos[2] < spot.pos[2] + spot.size[2] / 2 - 0.02:
                found.append(other)
    return found


def _footprint(other: Spot, spot: Spot) -> np.ndarray:
    """Depth and width of a fixture along x and y of another one."""
    turned = abs(math.sin(other.yaw - spot.yaw)) > 0.5
    return other.size[:2] if turned else other.size[[1, 0]]


def _worktop(spot: Spot, size: Vec3, spots: Sequence[Spot], colours: Colours) -> Fixture:
    config = spot.config
    holes = []
    if spot.inside is not None:
        x, y, _ = _seen_from(spot, spot.inside)
        holes.append(cabinets.Hole(float(y), float(x), float(spot.inside.size[0]), float(spot.inside.size[1])))
    under: tuple[float, float] | None = (0.0, 0.985)
    opening = config.get("base_opening", [False, False])
    if _below(spot, spots):
        under = None
    elif any(opening):  # a place for knees
        under = (0.5, 0.985) if opening[1] else (0.0, 0.5)
    if spot.inside is not None and spot.inside.type == "sink":
        under = None if under is None else (0.0, 0.02)
    half = config.get("half_top", [False, False])
    top = cabinets.worktop(spot.name, (size[0] / 2, size[1], size[2]) if any(half) else size, under=under,
                           top=colours.top, base=colours.base, holes=holes)  # fmt: skip
    if not any(half):
        return top
    shift = size[0] / 4 * (1.0 if half[1] else -1.0)
    shapes = tuple(replace(s, pos=(s.pos[0], s.pos[1] + shift, s.pos[2])) for s in top.shapes)
    places = tuple(replace(r, pos=(r.pos[0], r.pos[1] + shift, r.pos[2])) for r in top.receptacles)
    return replace(top, shapes=shapes, receptacles=places)


def _levels(spot: Spot, spots: Sequence[Spot], said: list[str]) -> tuple[list[Any], bool]:
    """Levels of a stack from below, and whether its top is open, as a basin hangs into it."""
    given = zip(spot.config["levels"], spot.config["percentages"], strict=True)
    levels = ["panel_cabinet" if level == "box" else level for level, share in given if share > 0]
    basins = [one for one in spots if one.type == "sink" and spot in _below(one, spots)]
    if basins and levels and "drawer" in str(levels[-1]):
        levels[-1] = "panel_cabinet"
        said.append(f"{spot.name}: its upper drawers are a fixed front, as the basin of {basins[0].name} is there")
    return levels, bool(basins)


def _basin(spot: Spot, spots: Sequence[Spot]) -> float:
    """[m] how deep a basin may be until it meets a board of the stack below."""
    deep = float(spot.size[2])
    top = float(spot.pos[2] + spot.size[2] / 2)
    for other in _below(spot, spots):
        upper = other.pos[2] + other.size[2] / 2
        if other.type == "stack":
            last = float(other.config["percentages"][-1]) * other.size[2]
            deep = min(deep, top - (upper - last) - 0.02)
        else:
            deep = min(deep, top - upper - 0.002)
    return max(deep, _BASIN)


def boxes(piece: Piece) -> np.ndarray:
    """(n, 2, 3) lowest and highest corners of the shapes of a piece in the world, its handles aside [m]; its joints
    are closed, and it stands along the axes."""
    spec = mujoco.MjSpec()
    if isinstance(piece, Mechanism):
        spec.attach(piece.model.copy(), frame=spec.worldbody.add_frame(pos=piece.pos, quat=piece.quat), prefix="it/")
    else:
        body = spec.worldbody.add_body(pos=piece.pos, quat=piece.quat)
        for shape in piece.shapes:
            size = [*shape.size, 0, 0][:3]
            kind = getattr(mujoco.mjtGeom, f"mjGEOM_{shape.type.upper()}")
            body.add_geom(type=kind, size=size, pos=shape.pos, quat=shape.quat)
    model = spec.compile()
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    own = [g for g in range(model.ngeom) if "handle/" not in model.geom(g).name]
    turn = np.abs(data.geom_xmat[own].reshape(-1, 3, 3))
    half = (turn @ model.geom_aabb[own, 3:, None])[..., 0]
    middle = data.geom_xpos[own] + (data.geom_xmat[own].reshape(-1, 3, 3) @ model.geom_aabb[own, :3, None])[..., 0]
    return np.stack([middle - half, middle + half], 1)


def _apart(spots: Sequence[Spot], colours: Colours, said: list[str]) -> list[Piece]:
    """Build all fixtures; cut back, or leave out, what would stand in others: filling first, then cabinets."""

    def stays(spot: Spot) -> int:
        return _GIVES_WAY.index(spot.type) if spot.type in _GIVES_WAY else len(_GIVES_WAY)

    kept: dict[str, np.ndarray] = {}
    made: dict[str, Piece] = {}
    for spot in sorted(spots, key=lambda one: -stays(one)):
        notes: list[str] = []
        for _ in range(_CUTS):
            built: list[str] = []
            made[spot.name] = _built(spot, spots, colours, built)
            own = boxes(made[spot.name])
            other = next((name for name, theirs in kept.items() if (_into(own, theirs) > _TOUCH).any()), "")
            if not other:
                kept[spot.name] = own
                said += [*built, *notes]
                break
            cut = _cut(spot, own, kept[other])
            if stays(spot) == len(_GIVES_WAY) or cut == 0.0:
                said.append(f"{spot.name}: left out, as it would stand in {other}")
                break
            notes.append(f"{spot.name}: cut by {1000 * cut:.0f} mm, as it would stand in {other}")
        else:
            said.append(f"{spot.name}: left out, as it would stand in several others")
    return [made[spot.name] for spot in spots if spot.name in kept]


def _into(own: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    """(n, m) [m] how far boxes reach into one another along the axis in which that is least."""
    reach = np.minimum(own[:, None, 1], theirs[None, :, 1]) - np.maximum(own[:, None, 0], theirs[None, :, 0])
    return reach.min(-1)


def _cut(spot: Spot, own: np.ndarray, theirs: np.ndarray) -> float:
    """Shorten a fixture at the side on which it stands in another one; returns by how much [m], 0 for not at all."""
    hit = _into(own, theirs) > _TOUCH
    theirs = theirs[hit.any(0)]
    low, high = own[:, 0].min(0), own[:, 1].max(0)
    gaps = [(theirs[:, 1].max(0)[a] - low[a], a, 1) for a in (0, 1)]
    gaps += [(high[a] - theirs[:, 0].min(0)[a], a, -1) for a in (0, 1)]
    by, axis, way = min(gaps)
    own_axis = axis if abs(math.cos(spot.yaw)) > 0.5 else 1 - axis
    if by > _MOST * spot.size[own_axis]:
        return 0.0
    by = float(by) + _TOUCH
    spot.size[own_axis] -= by
    spot.pos[axis] += way * by / 2
    return by


def _walls(layout: Mapping[str, Any], colours: Colours) -> tuple[tuple[Shape, ...], _XY, _XY]:
    """Walls, which stand outside of the room's edge, and the corners of the floor."""
    shapes, corners = [], []
    for config in layout["room"].get("walls", ()):
        if config["type"] != "wall" or config.get("backing"):
            continue
        (reach, tall, _), (x, y, z) = config["size"], config["pos"]
        side = config.get("wall_side", "back")
        if side in ("left", "right"):
            out = -_THICK if side == "left" else _THICK
            half, pos = (_THICK, reach, tall), (x + out, y, z)
            corners += [(x, y - reach), (x, y + reach)]
        else:
            out = -_THICK if side == "front" else _THICK
            half, pos = (reach, _THICK, tall), (x, y + out, z)
            corners += [(x - reach, y), (x + reach, y)]
        shapes.append(Shape(type="box", size=half, pos=pos, rgba=colours.wall))
    for config in layout["room"].get("floor", ()):
        if config["type"] == "floor" and not config.get("backing"):
            (dx, dy, _), (x, y, _) = config["size"], config["pos"]
            corners += [(x - dx, y - dy), (x + dx, y + dy)]
    edge = np.array(corners)
    (x0, y0), (x1, y1) = edge.min(0).tolist(), edge.max(0).tolist()
    return tuple(shapes), (x0, y0), (x1, y1)
