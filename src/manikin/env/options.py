"""The options of an environment, as one frozen dataclass. ``manikin.make`` takes them as keywords."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

from gymnasium.vector import AutoresetMode

from manikin.env import arguments
from manikin.env.observe import Observation, Vision
from manikin.errors import ConfigError
from manikin.render.api import BACKENDS
from manikin.scene.looks import Looks
from manikin.sense.imperfect import Imperfection, SensorSuite
from manikin.sim import torch_device
from manikin.spec.budget import Budget
from manikin.spec.control import Control, Whole, parse_controls

__all__ = ["AUTORESET", "OUT_OF_RANGE", "RECORDED", "REWARD", "EnvKeywords", "EnvOptions"]

AUTORESET = {
    "same_step": AutoresetMode.SAME_STEP,
    "next_step": AutoresetMode.NEXT_STEP,
    "disabled": AutoresetMode.DISABLED,
}
REWARD = ("normalized_dense", "dense", "sparse", "none")
OUT_OF_RANGE = ("clip", "refuse")
RECORDED = (
    *("robot", "control", "device", "budget", "deterministic", "observe", "vision", "sensors", "reward", "looks"),
    *("physics_hz", "control_hz", "horizon", "config", "terminate"),
)
"""The options that a fingerprint holds. An environment made with them plays the same episodes."""

Controls = str | Control | Whole | Sequence[str | Control | Whole]


@dataclass(frozen=True, kw_only=True)
class EnvOptions:
    """How a task is played. None leaves an option to the task.

    Attributes:
        num_envs: rows.
        robot: a robot word (``panda``, ``panda:menagerie``, ``ur5e+panda_hand``); default the task's first. A task for
            several robots takes a word for each, as a tuple or joined by commas, or the word of a team: ``baxter``.
        control: controller, a word like ``osc_pose`` or ``osc_pose:frame=tcp``, or one for each joint group,
            ``left_arm: osc_pose, base: base_vel``; default the task's. For several robots one for all, or one each:
            ``("osc_pose", "joint_pos")``, ``"osc_pose & joint_pos"``.
        observe: ``state`` (one flat tensor), ``policy`` (flat, without privileged state), ``state_dict``, or what
            cameras give: ``rgb``, ``depth``, ``segmentation``, ``normals``, ``pointcloud``, ``voxel`` joined by ``+``.
            Or a list of such words, further sources and stacks: ``["rgb", Imu(...), Stack(4)]``; see docs/sensing.md.
        sensors: noise, delay, dropout and rate by path in the observation: ``{"policy/qpos": [Noise(0.01)]}``.
        vision: which cameras, renderer, cloud and grid; see :class:`Vision`. ``sensors``, ``vision`` and ``looks`` may
            also be as a fingerprint describes them.
        renderer: draws the pictures: ``auto`` (OpenGL where it works), ``gl``, ``warp``, ``rays`` (works everywhere) or
            ``filament``. That is observations and :meth:`Env.image`. Where ``vision`` names one as well, it has to be
            the same.
        reward: ``normalized_dense`` (dense / its declared maximum), ``dense``, ``sparse`` (success - fail) or ``none``.
        autoreset: ``same_step`` (with ``final_obs`` and ``final_info``), ``next_step`` or ``disabled``.
        device: ``cpu``; ``cuda`` or ``cuda:1`` for a GPU; ``warp:cpu`` for the GPU path's kernels on the processor,
            slow, for tests.
        budget: room for contacts and constraints on a Warp device, by default as much as the task is found to need.
            It is found by playing the task for a few seconds on the CPU, once, and kept on disk. The CPU needs none.
        least_budget: room that there is at least, where ``budget`` is None.
        deterministic: on a Warp device, the same bits in every run, at a price; the CPU always gives them.
        graphs: on a GPU, record the control step as CUDA graphs; False runs it call by call, to debug.
        physics_hz, control_hz: rates [Hz], default the task's; control_hz must divide physics_hz.
        horizon: control steps until truncation; default the task's time.
        max_episode_steps: Gymnasium's name of ``horizon``.
        terminate: whether success or fail ends an episode; default the task's.
        config: numbers of the task that differ from its defaults. A mapping, or an instance of the task's Config.
        looks: how rows differ in looks, and in looks alone; see :class:`manikin.spec.looks.Looks`.
        out_of_range: what to do with actions beyond [-1, 1]: ``clip`` (counted in ``info["clipped"]``) or ``refuse``.
        threads: physics threads, 0 for all cores; never changes results.
        render_mode: ``rgb_array`` or None.
        layout_memory: of a task with layouts, the bytes up to which those that no row has stay compiled.
        poison: borrowed buffers are overwritten with NaN once they are no longer valid, to find code that keeps them.

    Raises:
        ConfigError: a value cannot work; says what can.
        UnknownNameError: a word is none of those that are valid; lists them.
        AssetError: what the device needs is not installed.
    """

    num_envs: int = 1
    robot: str | Sequence[str] | None = None
    control: Controls | None = None
    observe: str | Sequence[Any] | Observation = "state"
    reward: str = "normalized_dense"
    autoreset: str | AutoresetMode = "same_step"
    device: str = "cpu"
    budget: Budget | None = None
    least_budget: Budget | None = None
    deterministic: bool = False
    graphs: bool = True
    physics_hz: float | None = None
    control_hz: float | None = None
    horizon: int | None = None
    max_episode_steps: int | None = None
    terminate: bool | None = None
    config: Any = None
    looks: Looks | Mapping[str, Any] | None = None
    vision: Vision | Mapping[str, Any] | None = None
    renderer: str | None = None
    sensors: Mapping[str, Sequence[Imperfection]] | None = None
    out_of_range: str = "clip"
    threads: int = 0
    render_mode: str | None = None
    layout_memory: int = 2_000_000_000
    poison: bool = False

    def __post_init__(self) -> None:
        horizon = self.max_episode_steps if self.horizon is None else self.horizon
        horizon = None if horizon is None else arguments.positive_int("horizon (control steps)", horizon)
        if self.control is not None:
            parse_controls(self.control, None)
        observation = Observation.of(self.observe)
        torch_device(self.device)
        if self.sensors is not None:
            SensorSuite(self.sensors, control_hz=1.0)
        if not (self.config is None or isinstance(self.config, Mapping) or dataclasses.is_dataclass(self.config)):
            raise ConfigError(f"config must be a mapping or the task's Config, not {type(self.config).__name__}")
        arguments.one_of("reward mode", self.reward, REWARD)
        arguments.one_of("out_of_range", self.out_of_range, OUT_OF_RANGE)
        if self.render_mode is not None:
            arguments.one_of("render mode", self.render_mode, ("rgb_array",))
        autoreset: Any = self.autoreset
        if isinstance(autoreset, AutoresetMode):
            autoreset = next(word for word, mode in AUTORESET.items() if mode is autoreset)
        checked: dict[str, Any] = {
            "num_envs": arguments.positive_int("num_envs", self.num_envs),
            "robot": arguments.robot_word(self.robot),
            "autoreset": arguments.one_of("autoreset mode", autoreset, AUTORESET),
            "budget": arguments.room("budget", self.budget),
            "least_budget": arguments.room("least_budget", self.least_budget),
            "horizon": horizon,
            "max_episode_steps": None,  # said once
            "observe": observation if observation.sources or observation.stacks else observation.word,
            "looks": Looks.of(self.looks) if isinstance(self.looks, Mapping) else self.looks,
            "vision": self._vision(),
            "threads": arguments.whole("threads", self.threads, 0, 1024),
            "layout_memory": arguments.whole("layout_memory", self.layout_memory, 0, 2**63 - 1),
        }
        checked |= {name: arguments.flag(name, getattr(self, name)) for name in ("deterministic", "graphs", "poison")}
        for name in ("physics_hz", "control_hz"):
            if (value := getattr(self, name)) is not None:
                checked[name] = arguments.positive(name, value)
        if self.terminate is not None:
            checked["terminate"] = arguments.flag("terminate", self.terminate)
        if not (checked["looks"] is None or isinstance(checked["looks"], Looks)):
            raise ConfigError(f"looks must be a Looks, not {self.looks!r}")
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    def _vision(self) -> Vision:
        """The vision, with the renderer that draws."""
        vision = Vision.of(self.vision)
        if self.renderer is None:
            return vision
        arguments.one_of("renderer", self.renderer, BACKENDS)
        if vision.renderer not in ("auto", self.renderer):
            raise ConfigError(f"renderer={self.renderer!r}, but the vision says {vision.renderer!r}; give one of them")
        return dataclasses.replace(vision, renderer=self.renderer)

    @classmethod
    def of(cls, options: EnvOptions | None, given: Mapping[str, Any]) -> EnvOptions:
        """``options``, by default plain ones, with what is ``given`` by name in its place.

        Raises:
            UnknownNameError: there is no option of a name; lists those that there are. And as for the class.
        """
        names = tuple(field.name for field in dataclasses.fields(cls))
        for name in given:
            arguments.one_of("option of an environment", name, names)
        return cls(**given) if options is None else dataclasses.replace(options, **given)


class EnvKeywords(TypedDict, total=False):
    """The fields of :class:`EnvOptions` as keywords, for editors and type checkers; a test compares the two."""

    robot: str | Sequence[str] | None
    control: Controls | None
    observe: str | Sequence[Any] | Observation
    reward: str
    autoreset: str | AutoresetMode
    device: str
    budget: Budget | None
    least_budget: Budget | None
    deterministic: bool
    graphs: bool
    physics_hz: float | None
    control_hz: float | None
    horizon: int | None
    max_episode_steps: int | None
    terminate: bool | None
    config: Any
    looks: Looks | Mapping[str, Any] | None
    vision: Vision | Mapping[str, Any] | None
    renderer: str | None
    sensors: Mapping[str, Sequence[Imperfection]] | None
    out_of_range: str
    threads: int
    render_mode: str | None
    layout_memory: int
    poison: bool
