"""What commands are given: a task and a robot by word or file, numbers of the task, cameras, how Warp simulates."""

from __future__ import annotations

import ast
import dataclasses
import re
from collections.abc import Iterator, Set
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import tyro

from manikin.cli.common.documented import documented
from manikin.errors import ConfigError, ManikinError, UnknownNameError

if TYPE_CHECKING:
    from manikin.env.observe import Vision
    from manikin.env.options import EnvOptions
    from manikin.env.task import Task
    from manikin.spec.robot import GripperSpec, RobotSpec

__all__ = [
    "On",
    "PictureOptions",
    "RendererWord",
    "TaskOptions",
    "WarpOptions",
    "robot_in_file",
    "load_robot",
    "load_task",
    "register_robot_file",
]

OTHERWISE = {"num_envs", "robot", "config", "budget", "deterministic", "vision", "renderer"}
"""Options of an environment that the command line says in another way."""
ROBOT_FILES = (".py", ".xml", ".mjcf", ".urdf")

RendererWord = Literal["auto", "gl", "warp", "rays", "filament"]
"""What makes pictures, the words of :data:`manikin.render.api.BACKENDS`."""

On = Annotated[bool, tyro.conf.arg(help_behavior_hint="")]
"""A flag that is on unless ``--no-NAME`` is given. Its help says what that does; "default: True" would say the opposite
of the option that it stands beside."""


@dataclass(frozen=True, kw_only=True)
class PictureOptions:
    """Options of the commands that observe through cameras."""

    camera: tuple[str, ...] = ()
    """Cameras of the observations, by name (see manikin info); by default those recorded, else base_camera."""
    size: tuple[int, int] | None = None
    """Width and height of the pictures [pixels]."""
    renderer: Annotated[RendererWord | None, documented("renderer")] = None

    def vision(self) -> Vision | None:
        """What was chosen; None for nothing."""
        from manikin.env.observe import Vision

        if not self.camera and self.size is None and self.renderer is None:
            return None
        return Vision(cameras=self.camera or None, size=self.size, renderer=self.renderer or "auto")


@dataclass(frozen=True, kw_only=True)
class WarpOptions:
    """Options of the commands that may simulate on a Warp device (cuda, cuda:1, warp:cpu); the CPU needs neither."""

    budget: Annotated[
        str | None,
        documented("budget", "Written nconmax=48,njmax=192; a recording is played with at least what it had."),
    ] = None
    deterministic: Annotated[bool, documented("deterministic", "Always so for a recording that was made with it.")] = (
        False
    )

    def warp(self) -> dict[str, Any]:
        """What was chosen, as options of ``manikin.make``.

        Raises:
            ConfigError: the budget is none.
        """
        from manikin.spec.budget import read_budget

        chosen: dict[str, Any] = {} if self.budget is None else {"budget": read_budget(self.budget)}
        return chosen | ({"deterministic": True} if self.deterministic else {})


@dataclass(frozen=True, kw_only=True)
class TaskOptions:
    """Options of the commands that make a task."""

    otherwise: ClassVar[Set[str]] = OTHERWISE

    robot: Annotated[
        str | None, documented("robot", "Or the file of your own robot: my_arm.py, my_arm.urdf+rethink.")
    ] = None
    config: Annotated[
        tuple[str, ...],
        documented("config", "Written key=value: --config cube_half_size=0.03 spawn_half_size=0.05 (see info)."),
    ] = ()

    def chosen(self, task: type[Task]) -> dict[str, Any]:
        """What was chosen, as options of ``manikin.make``.

        Raises:
            UnknownNameError: the task has no such number, or there is no such robot file's part.
            ConfigError: a value cannot be read, or the robot's file cannot.
        """
        out: dict[str, Any] = {} if self.robot is None else {"robot": load_robot(self.robot)}
        return out | ({"config": _config(task, self.config)} if self.config else {})

    def env_options(self, task: type[Task], **more: Any) -> EnvOptions:
        """The options of the environment: fields of the command that are called as those of
        :class:`~manikin.env.options.EnvOptions`, where they are given, and ``more``, which wins.

        Raises as :meth:`chosen` and :class:`~manikin.env.options.EnvOptions`.
        """
        from manikin.env.options import EnvOptions

        names = [field.name for field in dataclasses.fields(EnvOptions) if field.name not in self.otherwise]
        given = {name: getattr(self, name) for name in names if getattr(self, name, None) is not None}
        warp = self.warp() if isinstance(self, WarpOptions) else {}
        return EnvOptions(**{**given, **warp, **self.chosen(task), **more})


def _config(task: type[Task], words: tuple[str, ...]) -> dict[str, Any]:
    fields, out = {f.name: f for f in dataclasses.fields(task.Config)}, {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals:
            raise ConfigError(f"--config takes key=value, not {word!r}; {task.id} has: {', '.join(fields) or 'none'}")
        if name not in fields:
            raise UnknownNameError(f"option of {task.id}", name, fields)
        default = fields[name].default
        try:
            out[name] = _value(text, default)
        except (ValueError, SyntaxError):
            like = f"{name}={_written(default)}"
            raise ConfigError(f"--config {word}: {task.id} takes a value like {like}") from None
    return out


def _value(text: str, default: Any) -> Any:
    """A word as the kind of value that an option has by default."""
    if isinstance(default, bool):
        return {"true": True, "false": False}[text.lower()] if text.lower() in ("true", "false") else _wrong(text)
    if isinstance(default, int | float):
        return type(default)(text)
    if isinstance(default, str):
        return text
    if isinstance(default, tuple):
        parts = text.strip("()[] ").split(",")
        kinds = default if len(default) == len(parts) else default[:1] * len(parts)
        return tuple(_value(part.strip(), kind) for part, kind in zip(parts, kinds or parts, strict=True))
    return ast.literal_eval(text)


def _wrong(text: str) -> Any:
    raise ValueError(text)


def _written(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def load_robot(word: str) -> str:
    """A robot word in which files of own robots are replaced by their names, by which they are known from here on.

    Raises as :func:`robot_in_file` does, and :class:`ConfigError` for a robot that has the name of a built-in one.
    """
    from manikin.robots import register

    out = []
    for one in word.split(","):
        path, *rest = re.split("([+@])", one.strip())
        if path.lower().endswith(ROBOT_FILES):
            arm, hand = robot_in_file(path)
            register(arm, gripper=hand)
            path = arm.name
        out.append(path + "".join(rest))
    return ",".join(out)


def register_robot_file(path: str | None) -> None:
    """Make the robot of a file known, for the commands whose recording or protocol names it.

    Raises as :func:`load_robot` does, and :class:`ConfigError` for what is no file.
    """
    if path is not None and not path.lower().endswith(ROBOT_FILES):
        raise ConfigError(
            f"--robot takes a robot file here (*{', *'.join(ROBOT_FILES)}), not {path!r}; the command takes built-in "
            "robots from the recording or protocol"
        )
    if path is not None:
        load_robot(path)


def robot_in_file(path: str | Path) -> tuple[RobotSpec, GripperSpec | None]:
    """The robot that a file declares, and its own gripper if it has one: of a Python file, which is run, ``ARM`` or
    ``ROBOT``, and ``GRIPPER``; of an MJCF or URDF what :func:`manikin.robots.from_file` makes of it.

    Raises:
        AssetError: no such file.
        ConfigError: the file cannot be run or declares no arm.
    """
    from manikin.assets.python_file import run_file
    from manikin.robots import from_file
    from manikin.spec.robot import RobotSpec

    path = Path(path).expanduser()
    if path.suffix.lower() != ".py":
        return from_file(path), None
    with _importing(str(path)):
        space = vars(run_file(path))
    declared = space.get("ROBOT", space.get("ARM"))
    if not isinstance(declared, RobotSpec):
        line = "ARM = from_file(...)"
        if "GRIPPER" in space:  # a gripper moves and grasps on an arm only
            line = "ARM = manikin.robots.arm('panda') to try GRIPPER on that arm"
        raise ConfigError(f"{path} declares no ArmSpec called ARM and no RobotSpec called ROBOT; write {line}")
    return declared, space.get("GRIPPER")


def load_task(word: str) -> type[Task]:
    """The task class for an id, ``module:Class`` or ``file.py:Class``.

    Raises:
        UnknownNameError: no such task; lists what there is.
        AssetError: no such file.
        ConfigError: the file or module cannot be imported; says where it fails.
    """
    from manikin.env.registry import task_class

    with _importing(word):
        return task_class(word)


@contextmanager
def _importing(word: str) -> Iterator[None]:
    """What a user's file raises comes as a :class:`ConfigError` that says where."""
    try:
        yield
    except ManikinError:
        raise
    except SyntaxError as error:
        raise ConfigError(f"{error.filename}, line {error.lineno}: {error.msg}") from error
    except Exception as error:  # importing a user's file may raise anything
        import traceback

        last = traceback.extract_tb(error.__traceback__)[-1]
        said = f"{type(error).__name__}: {error}"
        raise ConfigError(f"{word} cannot be imported: {said} ({last.filename}, line {last.lineno})") from error


def file_name(words: str) -> str:
    """Words as part of the name of a file on any system: ``PickCube-v2-remote-127.0.0.1-18101``."""
    return re.sub(r"[^A-Za-z0-9._+-]+", "-", words).strip("-.")
