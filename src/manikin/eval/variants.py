"""One task under several looks: SIMPLER's variant aggregation, for any task.

The word ``simpler`` stands for the variants of SIMPLER (arXiv 2405.05941, appendix): the scene as it is, two other
backgrounds, brighter and darker light, fewer and more distractors, two other surfaces of the table. Tasks with drawers
have no distractors there, and two other cabinets for the table. Moving near has one variant instead of distractors,
without the third object. SIMPLER's own tasks have its brighter and darker lamps, other tasks a factor for all lights.
``simpler-shifts`` adds two camera poses, which the paper tells apart from the average. What stands in for what manikin
has no meshes of is said in each variant.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from manikin.errors import ConfigError, UnknownNameError
from manikin.eval.agreement.trials import Metric, delta_success_interval
from manikin.eval.protocol import Protocol, setting_of, task_of
from manikin.spec.looks import Background, CameraLook, Distractors, LightLook, Looks, Surface
from manikin.spec.vary import Choice, Uniform

__all__ = ["SETS", "Variant", "shifts", "variants_in", "variants_of", "vary"]

_BASE = "base"
_MOVE_NEAR = "GoogleMoveNear"
_DRAWERS = ("GoogleOpenDrawer", "GoogleCloseDrawer", "GooglePlaceApple")
_LIT = ("GooglePick", _MOVE_NEAR, *_DRAWERS)
_TABLES = ("table", "counter", "tabletop", "top")  # what tasks call the thing that objects stand on


@dataclass(frozen=True, kw_only=True)
class Variant:
    """One setting of a task.

    Attributes:
        name: of the setting.
        shift: what it changes: ``background``, ``lighting``, ``distractors``, ``table``, ``camera``; "" for the scene
            as it is.
        looks: how.
        config: options of the task that it changes.
        averaged: whether it is in the mean over variants.
        stand_in: what it is in place of; "" where it is what the paper has.
    """

    name: str
    shift: str
    looks: Looks
    config: Mapping[str, Any] = field(default_factory=dict)
    averaged: bool = True
    stand_in: str = ""


def _always(*values: float) -> Choice:
    return Choice((values if len(values) > 1 else values[0],))


def _room(name: str, walls: tuple[float, ...], floor: tuple[float, ...], texture: str) -> Variant:
    looks = Looks(
        background=Background(colour=_always(*walls), textures=(texture,)),
        surfaces={"floor": Surface(colour=_always(*floor), textures=("plain",), required=False)},
    )
    return Variant(name=name, shift="background", looks=looks, stand_in="walls and floor in place of a scanned room")


def _light(name: str, factor: float) -> Variant:
    looks = Looks(lights=LightLook(intensity=_always(factor)))
    return Variant(name=name, shift="lighting", looks=looks, stand_in="one factor for all lights of the scene")


def _clutter(name: str, count: int) -> Variant:
    looks = Looks(
        distractors=Distractors(
            count=count, size=Uniform(0.02, 0.06), keep_out=(), around=("", 0.3, 0.25), low=(-0.65, -0.7)
        )
    )
    return Variant(
        name=name,
        shift="distractors",
        looks=looks,
        stand_in="primitives that are seen only, in place of cans and fruit",
    )


def _table(name: str, colour: tuple[float, ...], texture: str) -> Variant:
    surface = Surface(colour=_always(*colour), textures=(texture,), repeat=(4.0,), required=False)
    looks = Looks(surfaces=dict.fromkeys(_TABLES, surface))
    return Variant(name=name, shift="table", looks=looks, stand_in="a procedural texture in place of another cabinet")


def _camera(name: str, pitch: float) -> Variant:
    looks = Looks(cameras=CameraLook(turn=_always(pitch, 0.0, 0.0)))
    return Variant(name=name, shift="camera", looks=looks, averaged=False)


# Light: the sum of the paper's lamps, 6.2 (brighter) and 1.6 (darker) over 3.6. Camera: the head of the Google robot
# tilted by 0.15 rad down and 0.12 rad up. Distractors: 4 and 6, within 0.3 m of the object and 0.25 m away from it.
_SIMPLER = (
    Variant(name=_BASE, shift="", looks=Looks()),
    _room("background-1", (0.82, 0.76, 0.66), (0.45, 0.33, 0.22), "plain"),
    _room("background-2", (0.42, 0.5, 0.58), (0.3, 0.3, 0.32), "tiles"),
    _light("brighter", 6.2 / 3.6),
    _light("darker", 1.6 / 3.6),
    _clutter("distractors-less", 4),
    _clutter("distractors-more", 6),
    _table("table-solid", (0.86, 0.84, 0.8), "plain"),
    _table("table-patterned", (0.6, 0.42, 0.3), "checker"),
)
_LAMPS = tuple(
    Variant(name=name, shift="lighting", looks=Looks(), config={"light": name}) for name in ("brighter", "darker")
)
_ALONE = Variant(name="no-distractor", shift="distractors", looks=Looks(), config={"third": False})
_CABINETS = (
    Variant(name="cabinet-plain", shift="table", looks=Looks(), config={"cabinet": "mk_station2"}),
    Variant(
        name="cabinet-stone",
        shift="table",
        looks=Looks(),
        config={"cabinet": "mk_station3"},
        stand_in="one grey in place of a scanned slab of stone",
    ),
)
_CAMERAS = (_camera("camera-lower", -0.15), _camera("camera-higher", 0.12))
SETS: Mapping[str, tuple[Variant, ...]] = {"simpler": _SIMPLER, "simpler-shifts": (*_SIMPLER, *_CAMERAS)}
"""Variants by word."""


def variants_of(word: str, task: str) -> tuple[Variant, ...]:
    """The variants of a task, by the word of the set.

    Raises:
        UnknownNameError: there is no such set.
    """
    if word not in SETS:
        raise UnknownNameError("set of variants", word, SETS)
    near, drawers = task.startswith(_MOVE_NEAR), task.startswith(_DRAWERS)
    own = {
        "lighting": _LAMPS if task.startswith(_LIT) else None,
        "distractors": (_ALONE,) if near else () if drawers else None,
        "table": _CABINETS if drawers else None,
    }
    shared = (one for one in SETS[word] if own.get(one.shift) is None)
    return (*shared, *(one for instead in own.values() for one in instead or ()))


def vary(protocol: Protocol, word: str) -> Protocol:
    """The protocol with every task in all its variants, each a setting: ``PickCube-v2#darker``.

    Raises:
        UnknownNameError: there is no such set.
        ConfigError: the protocol has variants already.
    """
    if protocol.variants:
        raise ConfigError(f"protocol {protocol.name!r} has variants already; vary the one that it was made of")
    config: dict[str, Any] = {}
    episodes: dict[str, tuple[int, ...]] = {}
    looks: dict[str, Any] = {}
    for task in protocol.tasks:
        for variant in variants_of(word, task_of(task)):
            name = f"{task}{'-' if setting_of(task) else '#'}{variant.name}"
            given = {key: value for key, value in variant.looks.describe().items() if value}
            looks[name] = {**(protocol.looks or {}), **given}
            if options := {**protocol.config.get(task, {}), **variant.config}:
                config[name] = options
            if task in protocol.episodes:
                episodes[name] = protocol.episodes[task]
    return dataclasses.replace(
        protocol,
        name=f"{protocol.name}-{word}",
        tasks=tuple(looks),
        config=config,
        episodes=episodes,
        variants=looks,
        looks=None,
    )


def shifts(word: str, outcomes: Mapping[str, Mapping[Any, bool]], *, confidence: float = 0.95) -> list[dict[str, Any]]:
    """What the variants of each task say together.

    Args:
        word: of the set.
        outcomes: by the protocol's word for a setting, success of each episode by a word for it; tasks of which a
            variant is missing are left out.
        confidence: of the intervals.

    Returns:
        Per task ``{"task", "base", "mean", "variants", "delta_success", "interval"}``: the mean over the variants that
        are averaged, how many those are, by shift the mean absolute change against the scene as it is, and by shift the
        ends of its bootstrap interval. Where all variants have the same episodes, these are drawn together.
    """
    rates = {name: sum(one.values()) / len(one) for name, one in outcomes.items()}
    found = []
    for base, variants in variants_in(word, rates).items():
        by_shift: dict[str, list[str]] = {}
        for variant, name in variants:
            by_shift.setdefault(variant.shift, []).append(name)
        measured = {shift: _measured(outcomes, base, names, confidence) for shift, names in by_shift.items()}
        mean = [rates[base], *(rates[name] for variant, name in variants if variant.averaged)]
        found.append(
            {
                "task": base[: -len(_BASE) - 1],
                "base": rates[base],
                "mean": sum(mean) / len(mean),
                "variants": len(mean),
                "delta_success": {shift: one.value for shift, one in measured.items()},
                "interval": {shift: [one.low, one.high] for shift, one in measured.items()},
            }
        )
    return found


def _measured(outcomes: Mapping[str, Mapping[Any, bool]], base: str, names: Sequence[str], confidence: float) -> Metric:
    lists = [outcomes[name] for name in (base, *names)]
    paired = all(one.keys() == lists[0].keys() for one in lists)
    before, *after = ([one[key] for key in (lists[0] if paired else one)] for one in lists)
    return delta_success_interval(
        base=before, shifts=after, clusters=list(lists[0]) if paired else None, confidence=confidence
    )


def variants_in(word: str, settings: Iterable[str]) -> dict[str, list[tuple[Variant, str]]]:
    """Which settings of a protocol are variants of which: by the word of the scene as it is, each variant and its word.
    Tasks of which a variant is missing are left out.

    Raises:
        UnknownNameError: there is no such set.
    """
    there, found = set(settings), {}
    for base in (name for name in settings if name.endswith(("#" + _BASE, "-" + _BASE))):
        of = base.removesuffix(_BASE)
        variants = [(one, of + one.name) for one in variants_of(word, task_of(of[:-1])) if one.shift]
        if all(name in there for _, name in variants):
            found[base] = variants
    return found
