"""An evaluation protocol: everything that may change a success rate, frozen in one TOML file and hashed.

    format = 1
    name = "pick-cube"
    tasks = ["PickCube-v2"]
    robot = "panda"                # left out: the task's first robot
    control = "joint_delta_pos"
    observe = "state"
    success = "once"               # or "at_end", or "held" (for held_s seconds without a break)
    held_s = 0.5
    terminate = false              # episodes run to the horizon, so that "at the end" means something
    horizon = 100                  # [control steps]; left out: the task's own
    # of a policy that sees: observe = "rgb", and
    # cameras = ["base_camera", { name = "top", pos = [0.3, 0, 0.8], target = [0, 0, 0], fovy = 1.0 }]
    # size = [128, 128]; renderer = "rays"; stages = [{ kind = "Resize", ... }]

    [episodes]
    first_seed = 1_000_000         # or: seeds = [3, 14, 15]
    count = 64

    [config."PickCube-v2"]         # options of the task that differ from its defaults
    goal_radius = 0.025

How many environments run at once is no part of it: the result does not depend on that. The hash is SHA-256 over
canonical JSON (sorted keys, no spaces, defaults filled in, seeds listed out), so that spelling, order and comments do
not count, and neither do ``name`` and ``description``. A task of one's own is in it with its
code and its configuration.
"""

from __future__ import annotations

import dataclasses
import difflib
import hashlib
import json
import math
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Any

from manikin.env.options import EnvOptions
from manikin.env.registry import is_own, task_class
from manikin.env.state.provenance import task_code
from manikin.errors import ConfigError
from manikin.eval.picture_options import cameras_of, hashed_picture_options, picture_options, without_none
from manikin.sense.kinds import describe
from manikin.spec.camera import CameraSpec
from manikin.spec.looks import Looks

__all__ = ["FORMAT", "SUCCESS_RULES", "Protocol", "load_protocol", "shipped_protocols"]

FORMAT = 1
SUCCESS_RULES = ("once", "at_end", "held")
_NOT_HASHED = ("name", "description", "size", "renderer", "stages", "looks")  # the last four in another form
_EPISODE_KEYS = ("first_seed", "count", "seeds")
_MAX_EPISODES = 1_000_000


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """A frozen evaluation. Make it from a file with :func:`load_protocol`, or here for one of your own.

    Attributes:
        name: for people; not hashed.
        tasks: ids with versions, for example ``("PickCube-v2",)``.
        seeds: the episode seed of every episode, each run once (at episode index 0) per task.
        description: for people; not hashed.
        robot, control, reward, terminate, horizon, physics_hz, control_hz: as options of ``manikin.make``;
            None leaves the task's own.
        observe: a word; or a list of words and descriptions of sources and stacks, ``{"kind": "Stack", "frames": 4}``.
        cameras: those whose pictures the policy is shown: names of the task's, or further ones as
            :class:`~manikin.spec.camera.CameraSpec`, in a file as tables with its fields.
        size: width and height of the pictures [pixels]. renderer: makes them. stages: of the pictures, described, see
            :mod:`manikin.sense.stages`. looks: how episodes differ in looks, as :meth:`Looks.describe` describes it.
        success: the rule the headline follows. All three are always reported.
        held_s: how long success must last without a break under the rule ``held`` [s].
        confidence: of the intervals.
        config: per task, options that differ from the task's defaults.
    """

    name: str
    tasks: tuple[str, ...]
    seeds: tuple[int, ...]
    description: str = ""
    robot: str | None = None
    control: str | None = None
    observe: str | tuple[Any, ...] = "state"
    reward: str = "normalized_dense"
    terminate: bool = False
    cameras: tuple[str | CameraSpec, ...] = ()
    size: tuple[int, int] | None = None
    renderer: str | None = None
    stages: tuple[Mapping[str, Any], ...] = ()
    looks: Mapping[str, Any] | None = None
    horizon: int | None = None
    physics_hz: float | None = None
    control_hz: float | None = None
    success: str = "once"
    held_s: float = 0.5
    confidence: float = 0.95
    config: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for f in dataclasses.fields(self):
            value, (expected, convert) = getattr(self, f.name), _KINDS[f.name]
            if value is None and f.default is None:
                continue
            try:
                object.__setattr__(self, f.name, convert(value))
            except ConfigError as error:
                raise ConfigError(f"protocol {self.name!r}: {error}") from None
            except (TypeError, ValueError, OverflowError):
                raise ConfigError(f"a protocol's {f.name} must be {expected}, got {value!r:.80}") from None
        if not self.tasks or len(set(self.tasks)) != len(self.tasks):
            raise ConfigError(f"protocol {self.name!r}: needs at least one task and none twice, got {list(self.tasks)}")
        if not self.seeds or len(self.seeds) > _MAX_EPISODES:
            raise ConfigError(f"protocol {self.name!r}: 1 to {_MAX_EPISODES} episodes, got {len(self.seeds)}")
        if len(set(self.seeds)) != len(self.seeds):
            raise ConfigError(f"protocol {self.name!r}: a seed is listed twice; the same episode would count twice")
        if any(not 0 <= s < 2**63 for s in self.seeds):
            raise ConfigError(f"protocol {self.name!r}: seeds must be between 0 and 2^63 - 1")
        if self.success not in SUCCESS_RULES:
            raise ConfigError(f"protocol {self.name!r}: success {self.success!r} is none of {', '.join(SUCCESS_RULES)}")
        if not 0 < self.confidence < 1:
            raise ConfigError(f"protocol {self.name!r}: confidence {self.confidence} must lie between 0 and 1")
        for key in ("held_s", "horizon", "physics_hz", "control_hz"):
            value = getattr(self, key)
            if value is not None and not 0 < value < math.inf:
                raise ConfigError(f"protocol {self.name!r}: {key} must be positive, got {value}")
        if extra := set(self.config) - set(self.tasks):
            raise ConfigError(
                f"protocol {self.name!r}: [config] names {_listed(extra)}, not among its tasks {_listed(self.tasks)}"
            )
        try:
            _canonical(self._content())
        except (TypeError, ValueError) as error:
            raise ConfigError(f"protocol {self.name!r}: [config] holds a value JSON cannot: {error}") from None

    def _content(self) -> dict[str, Any]:
        """What is hashed of the file."""
        content = {k: v for k, v in dataclasses.asdict(self).items() if k not in _NOT_HASHED}
        content["format"] = FORMAT
        # 20 and 20.0 in a file mean the same rate
        for key in ("held_s", "confidence", "physics_hz", "control_hz"):
            content[key] = None if content[key] is None else float(content[key])
        return content

    @cached_property
    def own_tasks(self) -> Mapping[str, Mapping[str, Any]]:
        """Of each task of one's own, by the word that names it: its ``id``, the SHA-256 of its ``code`` and its
        ``config`` with defaults. As they are when this is asked first: the files are loaded then.

        Raises:
            ConfigError: the code cannot be read, the configuration holds what JSON cannot, or two have one id.
            ManikinError: there is no such file or task, or it has no such options.
        """
        found: dict[str, Mapping[str, Any]] = {}
        for word in filter(is_own, self.tasks):
            task = task_class(word)
            code, config = task_code(task), task(self.config.get(word)).config
            if code is not None:
                found[word] = {"id": task.id, "code": code, "config": dataclasses.asdict(config)}
        ids = [found[word]["id"] if word in found else word for word in self.tasks]
        if len(set(ids)) < len(ids):
            raise ConfigError(f"protocol {self.name!r}: two of its tasks have the same id: {_listed(ids)}")
        return found

    def canonical(self) -> str:
        """The text that is hashed: one line of JSON. Tasks of one's own are in it by id, code and configuration; where
        their files lie is not.

        Raises:
            ManikinError: as :attr:`own_tasks`.
        """
        content = self._content() | hashed_picture_options(self)
        if own := self.own_tasks:
            content["tasks"] = [own[word]["id"] if word in own else word for word in self.tasks]
            content["config"] = {word: value for word, value in content["config"].items() if word not in own}
            content["own"] = sorted(own.values(), key=lambda one: str(one["id"]))
        try:
            return _canonical(content)
        except (TypeError, ValueError) as error:
            raise ConfigError(f"protocol {self.name!r}: a task's config holds a value JSON cannot: {error}") from None

    @property
    def hash(self) -> str:
        """64 hex digits. Two results are comparable only when this is equal. Raises as :attr:`own_tasks`."""
        return hashlib.sha256(self.canonical().encode()).hexdigest()

    def held_steps(self, control_hz: float) -> int:
        """Control steps that success must last under the rule ``held`` (at least 1)."""
        return max(1, round(self.held_s * control_hz))

    def make_options(self, task: str, **where: Any) -> EnvOptions:
        """Options of the environment that a task is evaluated in, for ``manikin.make(task, options=...)``, with those
        that are no part of a protocol: ``num_envs``, ``device``, ``budget``, ``deterministic``.

        Raises as :func:`manikin.eval.picture_options.picture_options` and :class:`~manikin.env.options.EnvOptions`.
        """
        options: dict[str, Any] = {**picture_options(self), **{k: getattr(self, k) for k in ("reward", "terminate")}}
        options["autoreset"] = "disabled"
        for key in ("robot", "control", "horizon", "physics_hz", "control_hz"):
            if getattr(self, key) is not None:
                options[key] = getattr(self, key)
        if self.config.get(task):
            options["config"] = dict(self.config[task])
        return EnvOptions(**options, **where)

    def check_tasks(self, valid: Iterable[str]) -> None:
        """Refuse tasks, or versions of tasks, that do not exist. A user's own (``file.py:Class``) is left to ``make``.

        Raises:
            ConfigError: lists the versions that exist, or the nearest names.
        """
        known = sorted(valid)
        for task in self.tasks:
            if task in known or ":" in task or task.endswith(".py"):
                continue
            stem = task.rpartition("-v")[0] or task
            versions = [k for k in known if k.rpartition("-v")[0] == stem]
            if versions:
                raise ConfigError(f"protocol {self.name!r}: {task} does not exist; valid: {', '.join(versions)}")
            hint = f"{_near(task, known)} Valid: {_listed(known)}"
            raise ConfigError(f"protocol {self.name!r}: unknown task {task!r}.{hint}")

    @classmethod
    def from_toml(cls, text: str, *, source: str = "protocol") -> Protocol:
        """Read a protocol; nothing unknown is ignored.

        Raises:
            ConfigError: not TOML, an unknown or missing key, a value of the wrong kind. ``source`` is named.
        """
        try:
            table = tomllib.loads(text)
        except (ValueError, RecursionError) as error:  # also numbers and nesting beyond what Python reads
            raise ConfigError(f"{source}: not valid TOML: {error}") from None
        return cls(**_read_table(table, source))

    def to_toml(self) -> str:
        """A file that reads back to an equal protocol."""
        lines = [f"format = {FORMAT}"]
        for f in dataclasses.fields(self):
            value = without_none(getattr(self, f.name))
            if f.name not in ("seeds", "config") and value is not None and (f.name != "stages" or value):
                lines.append(f"{f.name} = {_toml(value)}")
        first, count = self.seeds[0], len(self.seeds)
        lines += ["", "[episodes]"]
        if self.seeds == tuple(range(first, first + count)):
            lines += [f"first_seed = {first}", f"count = {count}"]
        else:
            lines.append(f"seeds = {_toml(self.seeds)}")
        for task, options in self.config.items():
            lines += ["", f"[config.{json.dumps(task)}]"]
            lines += [f"{json.dumps(key)} = {_toml(value)}" for key, value in options.items()]
        return "\n".join(lines) + "\n"


def shipped_protocols() -> list[str]:
    """Names of the protocols that come with manikin."""
    folder = resources.files("manikin.eval") / "protocols"
    return sorted(p.name.removesuffix(".toml") for p in folder.iterdir() if p.name.endswith(".toml"))


def load_protocol(path: str | Path) -> Protocol:
    """Read a protocol file, or one that is shipped by its bare name (``"core"``).

    Raises:
        ConfigError: no such file (names the shipped ones), or anything :meth:`Protocol.from_toml` refuses.
    """
    file = Path(path)
    try:
        content = file.read_bytes() if file.is_file() else None
    except OSError as error:
        raise ConfigError(f"the protocol file {str(path)[:200]!r} cannot be read: {error.strerror}") from None
    if content is not None:
        try:
            text = content.decode("utf-8")
        except UnicodeDecodeError as error:
            raise ConfigError(
                f"{file}: not UTF-8, as TOML must be: byte {error.start} is {content[error.start]:#04x}"
            ) from None
        return Protocol.from_toml(text, source=str(file))
    if str(path) in shipped_protocols():
        text = (resources.files("manikin.eval") / "protocols" / f"{path}.toml").read_text(encoding="utf-8")
        return Protocol.from_toml(text, source=f"shipped protocol {path}")
    shipped = _listed(shipped_protocols())
    raise ConfigError(f"no protocol file {str(path)!r}; give a .toml file or a shipped name: {shipped}")


def _canonical(content: Mapping[str, Any]) -> str:
    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def _read_table(table: dict[str, Any], source: str) -> dict[str, Any]:
    fields = {f.name for f in dataclasses.fields(Protocol)}
    _refuse_unknown(table, (fields - {"seeds"}) | {"format", "episodes"}, source, "key")
    version = table.pop("format", None)
    if version != FORMAT:
        raise ConfigError(f"{source}: format {version!r}, this manikin reads format = {FORMAT}")
    episodes = table.pop("episodes", None)
    for key, value in (("name", table.get("name")), ("tasks", table.get("tasks")), ("[episodes]", episodes)):
        if value is None:
            raise ConfigError(f"{source}: {key} is missing")
    values: dict[str, Any] = {"seeds": _read_episodes(episodes, source)}
    for key, value in table.items():
        expected, convert = _KINDS[key]
        try:
            values[key] = convert(value)
        except ConfigError as error:
            raise ConfigError(f"{source}: {error}") from None
        except (TypeError, ValueError, OverflowError):
            raise ConfigError(f"{source}: {key} must be {expected}, got {value!r}") from None
    return values


def _read_episodes(table: object, source: str) -> tuple[int, ...]:
    if not isinstance(table, dict):
        raise ConfigError(f"{source}: [episodes] must be a table with first_seed and count, or seeds")
    _refuse_unknown(table, _EPISODE_KEYS, f"{source}: [episodes]", "key")
    if set(table) not in ({"seeds"}, {"first_seed", "count"}):
        raise ConfigError(f"{source}: [episodes] has either first_seed and count, or seeds; got {_listed(table)}")
    try:
        if "seeds" in table:
            return tuple(_int(s) for s in _sequence(table["seeds"]))
        first, count = _int(table["first_seed"]), _int(table["count"])
    except TypeError:
        raise ConfigError(f"{source}: [episodes] takes whole numbers, got {table}") from None
    if not 0 < count <= _MAX_EPISODES:
        raise ConfigError(f"{source}: [episodes] count must be 1 to {_MAX_EPISODES}, got {count}")
    return tuple(range(first, first + count))


def _int(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError
    return value


def _bool(value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError
    return value


def _float(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError
    return float(value)


def _str(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _sequence(value: object) -> list[Any]:
    if not isinstance(value, list | tuple | range):
        raise TypeError
    return list(value)


def _names(value: object) -> tuple[str, ...]:
    return tuple(_str(v) for v in _sequence(value))


def _tables(value: object) -> dict[str, dict[str, Any]]:
    if not isinstance(value, Mapping) or not all(isinstance(v, Mapping) for v in value.values()):
        raise TypeError
    return {_str(task): {_str(name): option for name, option in options.items()} for task, options in value.items()}


def _observed(value: object) -> str | tuple[Any, ...]:
    if isinstance(value, str):
        return value
    found = [one.describe() if hasattr(one, "describe") else one for one in _sequence(value)]
    if not all(isinstance(one, str | Mapping) for one in found):
        raise TypeError
    return tuple(found)


def _size(value: object) -> tuple[int, int]:
    width, height = (_int(side) for side in _sequence(value))
    if min(width, height) < 1:
        raise ValueError
    return width, height


def _stages(value: object) -> tuple[Mapping[str, Any], ...]:
    found = [one if isinstance(one, Mapping) else describe(one) for one in _sequence(value)]
    return tuple(dict(one) for one in found)


def _looks(value: object) -> dict[str, Any]:
    found = value.describe() if isinstance(value, Looks) else value
    if not isinstance(found, Mapping):
        raise TypeError
    return dict(found)


_KINDS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    **dict.fromkeys(("name", "description", "robot", "control", "reward", "success", "renderer"), ("a string", _str)),
    "observe": ("a word, or a list of words and tables", _observed),
    "size": ("width and height in pixels, [128, 128]", _size),
    "stages": ('a list of tables, [{ kind = "Jitter", brightness = 0.2 }]', _stages),
    "looks": ("a table", _looks),
    "terminate": ("true or false", _bool),
    "seeds": ("a list of whole numbers", lambda value: tuple(_int(seed) for seed in _sequence(value))),
    "tasks": ("a list of strings", _names),
    "cameras": (
        'a list of names and tables, ["base_camera", { name = "top", pos = [...], target = [...] }]',
        cameras_of,
    ),
    **dict.fromkeys(("physics_hz", "control_hz", "held_s", "confidence"), ("a number", _float)),
    "horizon": ("a whole number of control steps", _int),
    "config": ('tables of options, [config."Task-v1"]', _tables),
}


def _refuse_unknown(table: Mapping[str, Any], valid: Iterable[str], source: str, kind: str) -> None:
    known = sorted(valid)
    for key in table:
        if key not in known:
            raise ConfigError(f"{source}: unknown {kind} {key!r}.{_near(key, known)} Valid: {_listed(known)}")


def _near(name: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    return f" Did you mean {near[0]!r}?" if near else ""


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "(none)"


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple | list):
        return "[" + ", ".join(_toml(v) for v in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(k)} = {_toml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return repr(value)
