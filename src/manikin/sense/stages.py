"""Stages change a picture after it is drawn and before the policy sees it. They run in the order of the list::

    Vision(stages=[Photograph("kitchen.png", keep=("robot", "cube")), Jitter(brightness=0.2), Delay(1), Resize(64, 64)])

A :class:`Stage` is a function of the picture and of the episode's random numbers. Effects with memory are imperfections
of :mod:`manikin.sense.imperfect`: ``Delay``, ``Rate`` and ``Dropout`` hold back a picture with its ``K`` and ``T``.
``On`` limits an effect to some outputs or cameras. Noise needs that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from torch import Tensor

from manikin.errors import ConfigError, UnknownNameError
from manikin.render.segmentation import SegmentationTable
from manikin.rng import EpisodeRng
from manikin.scene.handles import Variable
from manikin.sense.imperfect import Carry, Imperfection, Noise, SensorModel
from manikin.sense.kinds import built_in, describe
from manikin.spec.camera import CameraSpec

__all__ = ["On", "Picture", "PictureStages", "Shot", "Stage", "checked_stages"]

Picture = dict[str, Tensor]
"""What a camera gave: outputs (n, H, W, ...), ``K`` (n, 3, 3) and ``T`` (n, 4, 4)."""


class Shot:
    """What a stage knows about its picture.

    Attributes:
        camera: the camera that took it.
        table: the meaning of the numbers in ``segmentation``.
        name: the stage's name for random streams. Begin the names of all draws with it.
    """

    def __init__(
        self,
        camera: CameraSpec,
        table: SegmentationTable,
        name: str,
        episode: EpisodeRng,
        step: EpisodeRng,
        h: Any = None,
    ) -> None:
        self.camera, self.table, self.name = camera, table, name
        self._episode, self._step, self._h = episode, step, h

    @property
    def episode(self) -> EpisodeRng:
        """Random numbers of the episode: the same in each step. Each access returns fresh streams."""
        return _fresh(self._episode)

    @property
    def step(self) -> EpisodeRng:
        """Random numbers of this control step. They depend only on the episode and the step."""
        return _fresh(self._step)

    def variable(self, name: str) -> Tensor:
        """(n, ...) the task's variable that its handles call ``name``.

        Raises:
            UnknownNameError: the task has no such variable; lists those that it has.
        """
        have = {key: value for key, value in vars(self._h).items() if isinstance(value, Variable)}
        if name not in have:
            raise UnknownNameError("variable of the task", name, have)
        return have[name].value


@dataclass(frozen=True, kw_only=True)
class Stage:
    """One step between the renderer and the policy. Derive a frozen dataclass from it. The fields are the settings.

    Attributes:
        cameras: names of the cameras whose pictures it changes; None for all.
        needs: outputs that it reads in addition to the observed ones. manikin then draws them.
        unhashed: fields that the hash of a protocol leaves out, such as the path of a file.
    """

    cameras: tuple[str, ...] | None = None
    needs: ClassVar[tuple[str, ...]] = ()
    unhashed: ClassVar[tuple[str, ...]] = ()

    def apply(self, picture: Picture, shot: Shot) -> Picture:
        """Return the changed picture as a new dict. Do not write into the tensors of ``picture``."""
        raise NotImplementedError(f"{type(self).__name__}.apply")

    def describe(self) -> dict[str, Any]:
        """Plain values for JSON: ``kind`` and the settings; see :mod:`manikin.sense.kinds`."""
        return describe(self)


@built_in
@dataclass(frozen=True)
class On:
    """Limits an imperfection to some outputs: ``On(Noise(4.0), outputs=("rgb",))``.

    Attributes:
        effect: noise, delay, rate, dropout, or one of your own.
        outputs: ``rgb``, ``depth``, ...; empty for all, with ``K`` and ``T``.
        cameras: names; None for all.
    """

    effect: Imperfection
    outputs: tuple[str, ...] = ()
    cameras: tuple[str, ...] | None = None


def checked_stages(stages: Any, cameras: Sequence[str]) -> tuple[Any, ...]:
    """``stages`` as a tuple.

    Raises:
        ConfigError: something else is in it, or noise of everything.
        UnknownNameError: a stage names a camera that is not looked through.
    """
    if isinstance(stages, str | bytes) or not isinstance(stages, Sequence):
        raise ConfigError(f"Vision: stages must be a list, such as [Jitter(brightness=0.2)], not {stages!r:.80}")
    for stage in stages:
        effect = stage.effect if isinstance(stage, On) else stage
        if not (isinstance(stage, Stage) or callable(getattr(effect, "apply", None))) or isinstance(stage, type):
            raise ConfigError(f"Vision: a stage must be a Stage or an imperfection, not {stage!r:.80}")
        if isinstance(stage, Noise) or (isinstance(effect, Noise) and not stage.outputs):
            raise ConfigError("Vision: say which outputs an imperfection changes: On(Noise(...), outputs=('rgb',))")
        for name in getattr(stage, "cameras", None) or ():
            if name not in cameras:
                raise UnknownNameError(f"camera of {type(stage).__name__}", name, cameras)
    return tuple(stages)


class PictureStages:
    """The stages of all cameras. ``carry`` is as that of a SensorSuite.

    Args:
        stages: see :func:`checked_stages`.
        cameras: that are looked through.
        table: of the scene.
        control_hz: control steps per second [1/s].
        h: the task's handles.
    """

    def __init__(
        self,
        stages: Sequence[Any],
        cameras: Sequence[CameraSpec],
        table: SegmentationTable,
        *,
        control_hz: float,
        h: Any = None,
    ) -> None:
        self._h = h
        self._cameras, self._table = {camera.name: camera for camera in cameras}, table
        self._lines = {
            name: [
                (
                    f"stages/{name}/{k}",
                    stage,
                    None if isinstance(stage, Stage) else self._model(stage, name, k, control_hz),
                )
                for k, stage in enumerate(stages)
                if getattr(stage, "cameras", None) is None or name in stage.cameras
            ]
            for name in self._cameras
        }
        self.remembers = any(model is not None for line in self._lines.values() for _, _, model in line)

    @staticmethod
    def _model(stage: Any, camera: str, k: int, control_hz: float) -> SensorModel:
        effect = stage.effect if isinstance(stage, On) else stage
        return SensorModel([effect], control_hz=control_hz, name=f"stages/{camera}/{k}")

    def start(self, pictures: Mapping[str, Picture], episode: EpisodeRng, step: EpisodeRng) -> Carry:
        """What is remembered at the start of episodes, from their first pictures."""
        carry: Carry = {}
        if self.remembers:
            for name, picture in pictures.items():
                self._run(name, picture, episode, step, None, None, carry)
        return carry

    def __call__(
        self,
        carry: Mapping[str, Tensor],
        pictures: Mapping[str, Picture],
        episode: EpisodeRng,
        step: EpisodeRng,
        active: Tensor | None,
    ) -> tuple[dict[str, Picture], Carry]:
        """The pictures that come out, and the next carry; rows that are not ``active`` (n,) keep theirs."""
        out: Carry = {}
        seen = {name: self._run(name, picture, episode, step, carry, active, out) for name, picture in pictures.items()}
        return seen, out

    def _run(
        self,
        camera: str,
        picture: Picture,
        episode: EpisodeRng,
        step: EpisodeRng,
        carry: Mapping[str, Tensor] | None,
        active: Tensor | None,
        out: Carry,
    ) -> Picture:
        """One camera's picture through its stages; what is remembered goes into ``out``."""
        for name, stage, model in self._lines[camera]:
            if model is None:
                shot = Shot(self._cameras[camera], self._table, name, episode, step, self._h)
                picture = _checked(stage.apply(dict(picture), shot), picture, stage)
                continue
            wanted = stage.outputs if isinstance(stage, On) else ()
            picture = dict(picture)
            for output, value in picture.items():
                if wanted and output not in wanted:
                    continue
                where = f"{name}/{output}|"
                if carry is None:
                    made = model.start(value, _fresh(episode))
                else:
                    mine = {k.removeprefix(where): v for k, v in carry.items() if k.startswith(where)}
                    picture[output], made = model(mine, value, _fresh(step), active)
                out |= {where + key: v for key, v in made.items()}
        return picture


def _checked(found: Any, before: Picture, stage: Any) -> Picture:
    n = len(before["K"])
    good = isinstance(found, Mapping) and found.keys() >= {"K", "T"}
    if not good or not all(isinstance(value, Tensor) and len(value) == n for value in found.values()):
        shapes = {k: tuple(np.shape(v)) for k, v in found.items()} if isinstance(found, Mapping) else f"{found!r:.80}"
        raise ConfigError(f"{type(stage).__name__}.apply must return a Picture of {n} rows with K and T, not {shapes}")
    return dict(found)


def _fresh(rng: EpisodeRng) -> EpisodeRng:
    """The same streams, each from its beginning."""
    return rng.to(rng.device)
