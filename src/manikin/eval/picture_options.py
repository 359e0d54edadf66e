"""What a protocol shows the policy: observation, cameras, renderer, stages and looks, as plain values of its file."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from manikin.env.observe import Observation, Vision
from manikin.env.state.provenance import task_code
from manikin.errors import ConfigError, UnknownNameError
from manikin.render.api import BACKENDS
from manikin.sense.kinds import hashed, made
from manikin.spec.camera import CameraSpec
from manikin.spec.looks import Looks

__all__ = ["Shown", "cameras_of", "hashed_picture_options", "picture_options", "without_none"]

_RENDERERS = tuple(word for word in BACKENDS if word != "auto")


class Shown(Protocol):
    """What of a protocol this module reads; its fields are documented in :mod:`manikin.eval.protocol`."""

    @property
    def name(self) -> str: ...
    @property
    def observe(self) -> str | tuple[Any, ...]: ...
    @property
    def cameras(self) -> tuple[str | CameraSpec, ...]: ...
    @property
    def size(self) -> tuple[int, int] | None: ...
    @property
    def renderer(self) -> str | None: ...
    @property
    def stages(self) -> tuple[Mapping[str, Any], ...]: ...
    @property
    def looks(self) -> Mapping[str, Any] | None: ...


def picture_options(protocol: Shown, *, kind: str = "protocol") -> dict[str, Any]:
    """Options of ``manikin.make`` for what the policy is shown. ``kind`` is what errors call it.

    Raises:
        ConfigError: pictures are described and none observed, or no renderer is named for them.
        UnknownNameError: no such observation, renderer or stage; lists what there is.
        ManikinError: a stage's file is not there, or not the one that was described.
    """
    who = f"{kind} {protocol.name!r}"
    observation = _observation(protocol)
    options: dict[str, Any] = {"observe": protocol.observe if isinstance(protocol.observe, str) else observation}
    described = {"cameras": protocol.cameras, "size": protocol.size, "stages": protocol.stages}
    given = [name for name, value in described.items() if value]
    if given and not observation.needs:
        raise ConfigError(
            f"{who}: {' and '.join(given)} need pictures, but observe = {protocol.observe!r} has none; write observe "
            "= 'rgb' or 'rgb+state'"
        )
    if protocol.renderer is not None and protocol.renderer not in _RENDERERS:
        raise UnknownNameError(f"renderer of a {kind}", protocol.renderer, _RENDERERS)
    if given and protocol.renderer is None:
        raise ConfigError(
            f"{who}: a {kind} with pictures must name its renderer; write renderer = one of {', '.join(_RENDERERS)} "
            "(rays works on every machine)"
        )
    if given or protocol.renderer is not None:
        options["vision"] = Vision(
            cameras=protocol.cameras or None,
            size=protocol.size,
            renderer=protocol.renderer or "auto",
            stages=[made(stage, object, "stage of pictures") for stage in protocol.stages],
        )
    if protocol.looks is not None:
        options["looks"] = Looks.of(protocol.looks)
    return options


def hashed_picture_options(protocol: Shown) -> dict[str, Any]:
    """What of it is hashed: nothing that is left out, so that protocols without it keep their hash. Of classes of one's
    own the name and the SHA-256 of their code count, of photographs their SHA-256; where files lie does not.

    Raises as :func:`picture_options`.
    """
    content: dict[str, Any] = {}
    if not isinstance(protocol.observe, str):
        observation = _observation(protocol)
        some = (*observation.sources, *observation.stacks)
        content["observe"] = [observation.word, *(hashed(one, task_code) for one in some)]
    for name in ("renderer", "size", "looks"):
        if (value := getattr(protocol, name)) is not None:
            content[name] = without_none(Looks.of(value).describe()) if name == "looks" else value
    if protocol.stages:
        content["stages"] = [hashed(made(one, object, "stage of pictures"), task_code) for one in protocol.stages]
    return content


def cameras_of(value: Any) -> tuple[str | CameraSpec, ...]:
    """Cameras as a file gives them: names of the task's, and tables with the fields of
    :class:`~manikin.spec.camera.CameraSpec`.

    Raises:
        TypeError: it is no list of names and tables.
        ConfigError: a table describes no camera; says what is wrong with it.
    """
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise TypeError
    return tuple(_camera(one) for one in value)


def _camera(given: Any) -> str | CameraSpec:
    if isinstance(given, str):
        return given
    if isinstance(given, CameraSpec):
        given = without_none(given)
    if not isinstance(given, Mapping):
        raise TypeError
    known = [one.name for one in dataclasses.fields(CameraSpec)]
    if wrong := [name for name in given if name not in known]:
        raise ConfigError(f"a camera's table has no {wrong[0]!r}; it has {', '.join(known)}")
    name = given.get("name")
    if not (isinstance(name, str) and name):
        raise ConfigError(f"a camera's table needs a name, {{name = 'top', ...}}, got {dict(given)!r:.80}")
    return CameraSpec(**{key: _camera_value(name, key, value) for key, value in given.items()})


def _camera_value(name: str, key: str, value: Any) -> Any:
    """As a camera has it: 1 and 1.0 in a file mean the same."""
    wanted = {"pos": 3, "target": 3, "quat": 4, "intrinsics": 4}.get(key)
    try:
        if wanted is not None:
            numbers = tuple(_number(one) for one in value)
            return numbers if len(numbers) == wanted else _not()
        if key in ("width", "height"):
            return value if type(value) is int else _not()
        return _number(value) if key == "fovy" else value if isinstance(value, str) else _not()
    except TypeError:
        kind = f"{wanted} numbers" if wanted else {"fovy": "a number [rad]", "on": "a name"}.get(key, "a whole number")
        raise ConfigError(f"camera {name!r}: {key} must be {kind}, got {value!r:.60}") from None


def _number(value: Any) -> float:
    return _not() if isinstance(value, bool | str) else float(value)


def _not() -> Any:
    raise TypeError


def _observation(protocol: Shown) -> Observation:
    found = protocol.observe
    try:
        return Observation.of(found)
    except TypeError as error:
        raise ConfigError(f"protocol {protocol.name!r}: observe = {found!r:.80} is not valid: {error}") from error


def without_none(value: Any) -> Any:
    """Nested plain values without what is None, which TOML cannot say."""
    if isinstance(value, CameraSpec):
        value = dataclasses.asdict(value)
    if isinstance(value, Mapping):
        return {key: without_none(one) for key, one in value.items() if one is not None}
    return [without_none(one) for one in value] if isinstance(value, list | tuple) else value
