"""How environments differ in looks, and in looks alone: cameras, light, colours, textures, clutter, background.

Everything is declared as a distribution and drawn from the episode's own random streams, so an episode looks the same
in any row, batch and device. Physics never changes. Numbers [m], [rad], colours RGB in 0..1.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from manikin.errors import ConfigError, UnknownNameError
from manikin.spec.vary import Choice, Normal, Uniform, Vary

__all__ = ["TEXTURES", "Background", "CameraLook", "Distractors", "ExtraLights", "LightLook", "Looks", "Surface"]

TEXTURES = ("blotches", "checker", "dots", "gradient", "noise", "plain", "stripes", "tiles", "wood")
"""Procedural textures, grey, so that the surface's colour shows through. ``plain`` keeps what the thing has."""
SHAPES = ("box", "capsule", "cylinder", "ellipsoid", "sphere")
_EVERY = ("episode", "step")
_MOST_LIGHTS = 4  # OpenGL has eight, some of which are the scene's


@dataclass(frozen=True, kw_only=True)
class CameraLook:
    """Where a camera is and how wide it sees, about what the scene declares.

    Attributes:
        shift: (3,) or one range for all axes [m], along the axes of what the camera is fixed to.
        turn: (3,) or one range [rad], rotation vector in the optical frame (x right, y down, z forward).
        fovy: added to the vertical field of view [rad].
        keep_target: turn a shifted camera so that it still looks at its target.
        every: ``episode`` or ``step``.
    """

    shift: Vary | None = None
    turn: Vary | None = None
    fovy: Vary | None = None
    keep_target: bool = False
    every: str = "episode"

    def __post_init__(self) -> None:
        _check(self, shift=3, turn=3, fovy=1)


@dataclass(frozen=True, kw_only=True)
class LightLook:
    """A light of the scene, about what the scene declares.

    Attributes:
        shift: (3,) or one range [m].
        turn: (3,) or one range [rad], rotation vector of the light's direction in the world.
        intensity: factor.
        colour: (3,) or one range, factor per channel.
        every: ``episode`` or ``step``.
    """

    shift: Vary | None = None
    turn: Vary | None = None
    intensity: Vary | None = None
    colour: Vary | None = None
    every: str = "episode"

    def __post_init__(self) -> None:
        _check(self, shift=3, turn=3, intensity=1, colour=3)


@dataclass(frozen=True, kw_only=True)
class ExtraLights:
    """Distant lights beside the scene's.

    Attributes:
        count: how many, at most 4.
        azimuth, elevation: where each comes from [rad], about and above the horizon.
        intensity: diffuse strength, 1 being a surface's full colour.
        colour: (3,) or one range, factor per channel.
        every: ``episode`` or ``step``.
    """

    count: int | Choice = field(default=Choice((0, 1, 2)))
    azimuth: Vary = field(default=Uniform(-math.pi, math.pi))
    elevation: Vary = field(default=Uniform(0.4, 1.4))
    intensity: Vary = field(default=Uniform(0.1, 0.4))
    colour: Vary | None = None
    every: str = "episode"

    def __post_init__(self) -> None:
        _check(self, azimuth=1, elevation=1, intensity=1, colour=3)
        _check_count(self, _MOST_LIGHTS)


@dataclass(frozen=True, kw_only=True)
class Surface:
    """Colour and texture of a named thing. Several geoms of a thing change together and keep their differences.

    Applied in this order: ``colour`` replaces, ``offset`` is added, then hue, saturation and brightness; the result is
    cut to 0..1.

    Attributes:
        colour: (3,) or one range for all channels; replaces the colour.
        offset: (3,) or one range; added to the colour.
        hue: added to the hue, in turns (0.5 is the opposite colour).
        saturation, brightness: factors.
        textures: one of these, equally likely: words of :data:`TEXTURES` or paths of PNG files.
        repeat: texture repetitions per metre, one of these; on flat and level things only, others show it once a face.
        required: whether a scene without the thing is an error.
        every: ``episode`` or ``step``.
    """

    colour: Vary | None = None
    offset: Vary | None = None
    hue: Vary | None = None
    saturation: Vary | None = None
    brightness: Vary | None = None
    textures: tuple[str, ...] = ()
    repeat: tuple[float, ...] = (2.0, 5.0)
    required: bool = True
    every: str = "episode"

    def __post_init__(self) -> None:
        _check(self, colour=3, offset=3, hue=1, saturation=1, brightness=1)
        _check_textures(self)


@dataclass(frozen=True, kw_only=True)
class Distractors:
    """Things to be seen only: in no contact, in nobody's way.

    Attributes:
        count: how many.
        shapes: one of these each.
        size: (3,) or one range, half extents [m].
        colour: (3,) or one range.
        low, high: corners (x, y) of where their centres lie [m].
        height: z of what they stand on [m].
        keep_out: rectangles (low x, low y, high x, high y) [m] that none may reach into; by default round the robot's
            base and the middle of the table. One for which no place is found stays hidden.
        around: (part, reach, apart): they lie up to ``reach`` [m] along x and y from where the part starts, farther
            than ``apart`` [m] from it, and between ``low`` and ``high``. ``""`` is the first part that can move; a
            scene without one has them anywhere.
        every: ``episode`` or ``step``.
    """

    count: int | Choice = field(default=Choice(tuple(range(7))))
    shapes: tuple[str, ...] = SHAPES
    size: Vary = field(default=Uniform(0.01, 0.05))
    colour: Vary = field(default=Uniform((0.0, 0.0, 0.0), (1.0, 1.0, 1.0)))
    low: tuple[float, float] = (-0.65, -0.7)
    high: tuple[float, float] = (0.3, 0.7)
    height: float = 0.0
    keep_out: tuple[tuple[float, float, float, float], ...] = ((-0.9, -0.2, 0.2, 0.2),)
    around: tuple[str, float, float] | None = None
    every: str = "episode"

    def __post_init__(self) -> None:
        _check(self, size=3, colour=3)
        _check_count(self, 64)
        if not self.shapes:
            raise ConfigError("Distractors: shapes must name at least one shape")
        for shape in self.shapes:
            if shape not in SHAPES:
                raise UnknownNameError("shape of distractor", shape, SHAPES)
        if not (self.low[0] <= self.high[0] and self.low[1] <= self.high[1]):
            raise ConfigError(f"Distractors: low {self.low} must not exceed high {self.high}")
        if _lowest(self.size) <= 0:
            raise ConfigError(f"Distractors: sizes must be positive, not {self.size}; a Normal needs low > 0")
        if self.around is not None:
            part, reach, apart = self.around
            if not (isinstance(part, str) and 0 <= apart < reach * math.sqrt(2)):
                raise ConfigError(
                    f"Distractors: around is (part, reach, apart) with apart below sqrt(2) reach; got {self.around}"
                )
            if self.every == "step":
                raise ConfigError("Distractors: around is where a part starts; it cannot be drawn every step")
        for x0, y0, x1, y1 in self.keep_out:
            if not (x0 <= x1 and y0 <= y1):
                raise ConfigError(f"Distractors: keep_out is (low x, low y, high x, high y), not {(x0, y0, x1, y1)}")


@dataclass(frozen=True, kw_only=True)
class Background:
    """Four walls round the scene. Where they are seen, depth is the distance to them and segmentation names them.

    Attributes:
        colour: (3,) or one range.
        textures: as in :class:`Surface`; an image fills each wall.
        distance: of each wall from the origin [m]; cameras farther out see nothing.
        bottom, top: lower and upper edge [m].
        every: ``episode`` or ``step``.
    """

    colour: Vary = field(default=Uniform((0.3, 0.3, 0.3), (1.0, 1.0, 1.0)))
    textures: tuple[str, ...] = ("plain",)
    distance: float = 2.5
    bottom: float = -1.0
    top: float = 4.0
    every: str = "episode"

    def __post_init__(self) -> None:
        _check(self, colour=3)
        _check_textures(self)
        if not (self.distance > 0 and self.top > self.bottom):
            raise ConfigError(f"Background: distance must be positive and top above bottom; got {self}")


@dataclass(frozen=True, kw_only=True)
class Looks:
    """What differs in looks between episodes, or from step to step.

    Attributes:
        cameras: for every camera but ``human_camera``, or by name; several for one camera are applied in order (a new
            place per episode and a jitter per step).
        lights: for every light of the scene, or by name; nameless lights are called by their number.
        ambient: strength of light from everywhere, in place of the scene's own.
        extra_lights: lights beside the scene's.
        surfaces: thing -> colours and textures. Things are robots, parts and fixtures by name (``robot``, ``cube``,
            ``table``, ``floor``), or bodies (``robot/hand``).
        distractors: things to be seen only.
        background: walls.
    """

    cameras: CameraLook | tuple[CameraLook, ...] | Mapping[str, CameraLook | tuple[CameraLook, ...]] | None = None
    lights: LightLook | Mapping[str, LightLook] | None = None
    ambient: Vary | None = None
    extra_lights: ExtraLights | None = None
    surfaces: Mapping[str, Surface] = field(default_factory=dict)
    distractors: Distractors | None = None
    background: Background | None = None

    def __post_init__(self) -> None:
        for name, kind in (("extra_lights", ExtraLights), ("distractors", Distractors), ("background", Background)):
            _check_kind(name, getattr(self, name), kind)
        cameras = self.cameras.values() if isinstance(self.cameras, Mapping) else (self.cameras,)
        for looks in cameras:
            for look in looks if isinstance(looks, tuple | list) else (looks,):
                _check_kind("cameras", look, CameraLook)
        for light in self.lights.values() if isinstance(self.lights, Mapping) else (self.lights,):
            _check_kind("lights", light, LightLook)
        for thing, surface in self.surfaces.items():
            _check_kind(f"surfaces[{thing!r}]", surface, Surface, optional=False)
        if self.ambient is not None:
            _check_vary("Looks", "ambient", self.ambient, 1)

    @classmethod
    def light(cls) -> Looks:
        """Mild: what a camera bolted to a table and a changing lamp do.

        Camera +-2.5 cm per axis anew every step and field of view +-2 degrees, robot colours N(c, 0.05) (the figures
        with which ManiSkill3's authors moved a policy from images to a real Koch arm); light direction +-0.2 rad,
        intensity 0.8 to 1.2, ambient light 0.28 to 0.42.
        """
        return cls(
            cameras=(
                CameraLook(fovy=Uniform(-0.035, 0.035)),
                CameraLook(shift=Uniform(-0.025, 0.025), every="step"),
            ),
            lights=LightLook(turn=Uniform(-0.2, 0.2), intensity=Uniform(0.8, 1.2)),
            ambient=Uniform(0.28, 0.42),
            surfaces={"robot": Surface(offset=Normal((0.0, 0.0, 0.0), 0.05), required=False)},
        )

    @classmethod
    def strong(cls) -> Looks:
        """Strong: another room every episode.

        Cameras moved by up to 6 cm per axis and turned by up to 0.05 rad, field of view +-0.1 rad, jitter of 4 mm and
        4 mrad per step; light direction +-0.7 rad, intensity 0.4 to 1.4, tinted by up to 25 %, ambient 0.15 to 0.5,
        up to two more lights; any colour and texture on table and floor; robot N(c, 0.08), brightness 0.6 to 1;
        up to six distractors; walls of any colour. The task's own objects keep their colours, which its instruction
        may name; vary them with ``surfaces``.
        """
        any_colour = Uniform((0.1, 0.1, 0.1), (1.0, 1.0, 1.0))
        ground = Surface(colour=any_colour, textures=TEXTURES, required=False)
        return cls(
            cameras=(
                CameraLook(
                    shift=Uniform(-0.06, 0.06), turn=Uniform(-0.05, 0.05), fovy=Uniform(-0.1, 0.1), keep_target=True
                ),
                CameraLook(shift=Uniform(-0.004, 0.004), turn=Uniform(-0.004, 0.004), every="step"),
            ),
            lights=LightLook(
                turn=Uniform(-0.7, 0.7), intensity=Uniform(0.4, 1.4), colour=Uniform((0.75,) * 3, (1.0,) * 3)
            ),
            ambient=Uniform(0.15, 0.5),
            extra_lights=ExtraLights(),
            surfaces={
                "table": ground,
                "floor": ground,
                "robot": Surface(offset=Normal((0.0, 0.0, 0.0), 0.08), brightness=Uniform(0.6, 1.0), required=False),
            },
            distractors=Distractors(),
            background=Background(textures=TEXTURES),
        )

    def describe(self) -> dict[str, Any]:
        """All of it as plain values for JSON; :meth:`of` reads them."""
        described = _plain(self)
        assert isinstance(described, dict)
        return described

    @classmethod
    def of(cls, described: Mapping[str, Any]) -> Looks:
        """The looks that :meth:`describe` described, also after a way through JSON; what is left out is as by default.

        Raises:
            ConfigError: it describes something else.
        """
        try:
            if unknown := described.keys() - {field.name for field in dataclasses.fields(cls)}:
                raise KeyError(*unknown)
            single = {name: described.get(name) for name in _SINGLE}
            return cls(
                cameras=_named(CameraLook, described.get("cameras")),
                lights=_named(LightLook, described.get("lights")),
                surfaces={thing: _made(Surface, fields) for thing, fields in described.get("surfaces", {}).items()},
                ambient=_value(described.get("ambient")),
                **{name: None if found is None else _made(_SINGLE[name], found) for name, found in single.items()},
            )
        except (KeyError, TypeError, AttributeError) as error:
            what = f"{type(error).__name__}: {error}"
            raise ConfigError(f"this does not describe a Looks ({what}): {described!r:.200}") from error


_SINGLE: dict[str, type] = {"extra_lights": ExtraLights, "distractors": Distractors, "background": Background}


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
        return {type(value).__name__: fields} if isinstance(value, Uniform | Normal | Choice) else fields
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(value)}
    return value if isinstance(value, bool | int | float | str) or value is None else str(value)


def _value(plain: Any) -> Any:
    if isinstance(plain, list | tuple):
        return tuple(_value(v) for v in plain)
    if isinstance(plain, Mapping):
        ((kind, content),) = plain.items()
        made = {"Uniform": Uniform, "Normal": Normal, "Choice": Choice, "float": float}[kind]
        return made(content) if made is float else _made(made, content)
    return plain


_KINDS = {"Uniform", "Normal", "Choice", "float"}


def _made(kind: type, fields: Mapping[str, Any]) -> Any:
    return kind(**{name: _value(value) for name, value in fields.items()})


def _named(kind: type, plain: Any) -> Any:
    """One declaration, several, or either by name."""
    if plain is None or isinstance(plain, list | tuple):
        return None if plain is None else tuple(_made(kind, fields) for fields in plain)
    values = [one for one in plain.values() if isinstance(one, Mapping)]
    if plain and {*plain} <= {f.name for f in dataclasses.fields(kind)} and all({*one} <= _KINDS for one in values):
        return _made(kind, plain)
    return {name: _named(kind, fields) for name, fields in plain.items()}


def _check_kind(name: str, value: Any, kind: type, *, optional: bool = True) -> None:
    if not (isinstance(value, kind) or (optional and value is None)):
        raise ConfigError(f"Looks: {name} takes a {kind.__name__}, not {value!r}")


def _check(owner: Any, **widths: int) -> None:
    """Distributions of a declaration, each one number or ``width`` of them, and ``every``."""
    if owner.every not in _EVERY:
        raise UnknownNameError(f"every of {type(owner).__name__}", owner.every, _EVERY)
    for name, width in widths.items():
        how = getattr(owner, name)
        if how is not None:
            _check_vary(type(owner).__name__, name, how, width)


def _check_vary(owner: str, name: str, how: Any, width: int) -> None:
    if not isinstance(how, Uniform | Normal | Choice):
        raise ConfigError(f"{owner}: {name} must be a Uniform, Normal or Choice, not {how!r}")
    numbers: tuple[Any, ...]
    if isinstance(how, Choice):
        numbers = how.options
    elif isinstance(how, Normal):
        numbers = (how.mean, how.std, how.low, how.high)
    else:
        numbers = (how.low, how.high)
    for value in numbers:
        if np.shape(value) not in ((), (width,)) or np.isnan(value).any():
            shape = "a number" if width == 1 else f"a number or {width} of them"
            raise ConfigError(f"{owner}: {name} takes {shape}, not {value!r}")
    if not numbers or (isinstance(how, Uniform) and (np.greater(how.low, how.high)).any()):
        raise ConfigError(f"{owner}: {name} is empty: {how!r}")


def _check_count(owner: Any, most: int) -> None:
    options = owner.count.options if isinstance(owner.count, Choice) else (owner.count,)
    ok = all(isinstance(k, int) and not isinstance(k, bool) and 0 <= k <= most for k in options)
    if not options or not ok:
        raise ConfigError(
            f"{type(owner).__name__}: count is a whole number or a Choice of them, 0 to {most}; got {owner.count!r}"
        )


def _check_textures(owner: Any) -> None:
    """Words are known here, files are opened when the environment is made."""
    if isinstance(owner.textures, str):
        raise ConfigError(f"{type(owner).__name__}: textures is a tuple of words and files, not one string")
    for word in owner.textures:
        if "." not in str(word) and str(word) not in TEXTURES:
            raise UnknownNameError("texture", word, TEXTURES, hint="An image file is a path that ends in .png.")
    if isinstance(owner, Surface) and not (owner.repeat and all(r > 0 for r in owner.repeat)):
        raise ConfigError(f"Surface: repeat must be positive numbers, not {owner.repeat!r}")


def _lowest(how: Vary) -> float:
    if isinstance(how, Choice):
        return float(np.min([np.min(v) for v in how.options]))
    return float(np.min(how.low))
