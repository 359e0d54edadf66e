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

    [episodes."PushCube-v2"]       # of a task with other episodes than the rest: count, or seeds
    count = 24

    [config."PickCube-v2"]         # options of the task that differ from its defaults
    goal_radius = 0.025

    [variants."PickCube-v2#darker"]  # looks of this setting, in place of those of all
    lights = { intensity = { Choice = { options = [0.5] } } }

A task may be there several times with other options: ``"PickCube-v2#near"`` and ``"PickCube-v2#far"`` are two settings
of one task, each with its own tables of options and episodes.

How many environments run at once is no part of it: the result does not depend on that. The hash is SHA-256 over
canonical JSON (sorted keys, no spaces, defaults filled in, seeds listed out), so that spelling, order and comments do
not count, and neither do ``name``, ``description`` and ``shift``. A task of one's own is in it with its
code and its configuration.
"""

from __future__ import annotations

import dataclasses
import difflib
import hashlib
import itertools
import json
import math
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Any

from manikin.env.options import EnvOptions
from manikin.env.registry import is_own, task_class
from manikin.env.state.provenance import task_code
from manikin.errors import ConfigError
from manikin.eval.picture_options import hashed_picture_options, picture_options, without_none
from manikin.eval.protocol_values import KINDS, int_of, sequence_of, toml_of
from manikin.robots import identified
from manikin.spec.camera import CameraSpec
from manikin.spec.looks import Looks

__all__ = ["FORMAT", "SUCCESS_RULES", "Protocol", "load_protocol", "setting_of", "shipped_protocols", "task_of"]

FORMAT = 1
SUCCESS_RULES = ("once", "at_end", "held")
_NOT_HASHED = ("name", "description", "shift", "size", "renderer", "stages", "looks", "variants")
_EPISODE_KEYS = ("first_seed", "count", "seeds")
_IF_ANY = ("stages", "shift", "paraphrases", "variants")  # are left out of a file where they are empty
_MAX_EPISODES = 1_000_000


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """A frozen evaluation. Make it from a file with :func:`load_protocol`, or here for one of your own.

    Attributes:
        name: for people; not hashed.
        tasks: ids with versions, for example ``("PickCube-v2",)``; with ``#`` and a word where a task has several
            settings.
        seeds: the episode seed of every episode, each run once (at episode index 0) per task.
        episodes: by task, the seeds of a task that has others.
        description: for people; not hashed.
        shift: where this protocol is a variant of another one, what it changes ("lighting"); not hashed.
        paraphrases: by instruction, sentences one of which an episode's policy is told instead: that whose place is
            the episode's seed, modulo their number.
        robot, control, reward, terminate, horizon, physics_hz, control_hz: as options of ``manikin.make``;
            None leaves the task's own.
        observe: a word; or a list of words and descriptions of sources and stacks, ``{"kind": "Stack", "frames": 4}``.
        cameras: those whose pictures the policy is shown: names of the task's, or further ones as
            :class:`~manikin.spec.camera.CameraSpec`, in a file as tables with its fields.
        size: width and height of the pictures [pixels]. renderer: makes them. stages: of the pictures, described, see
            :mod:`manikin.sense.stages`. looks: how episodes differ in looks, as :meth:`Looks.describe` describes it.
        variants: by task, looks of a setting, described likewise, in place of ``looks``; see
            :mod:`manikin.eval.variants`.
        success: the rule the headline follows. All three are always reported.
        held_s: how long success must last without a break under the rule ``held`` [s].
        confidence: of the intervals.
        config: per task, options that differ from the task's defaults.
    """

    name: str
    tasks: tuple[str, ...]
    seeds: tuple[int, ...]
    description: str = ""
    shift: str = ""
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
    variants: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    horizon: int | None = None
    physics_hz: float | None = None
    control_hz: float | None = None
    success: str = "once"
    held_s: float = 0.5
    confidence: float = 0.95
    config: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    episodes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    paraphrases: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for f in dataclasses.fields(self):
            value, (expected, convert) = getattr(self, f.name), KINDS[f.name]
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
        self._check_seeds()
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
        if extra := set(self.variants) - set(self.tasks):
            raise ConfigError(
                f"protocol {self.name!r}: [variants] names {_listed(extra)}, not among its tasks {_listed(self.tasks)}"
            )
        if empty := [said for said, others in self.paraphrases.items() if not others]:
            raise ConfigError(f"protocol {self.name!r}: no paraphrase of {empty[0]!r}; list at least one sentence")
        try:
            _canonical(self._content())
        except (TypeError, ValueError) as error:
            raise ConfigError(f"protocol {self.name!r}: [config] holds a value JSON cannot: {error}") from None

    def _check_seeds(self) -> None:
        if extra := set(self.episodes) - set(self.tasks):
            raise ConfigError(
                f"protocol {self.name!r}: [episodes] names {_listed(extra)}, not among its tasks {_listed(self.tasks)}"
            )
        for word in self.tasks:
            seeds = self.seeds_of(word)
            if not seeds or len(seeds) > _MAX_EPISODES:
                raise ConfigError(f"protocol {self.name!r}: 1 to {_MAX_EPISODES} episodes, got {len(seeds)} of {word}")
            if len(set(seeds)) != len(seeds):
                twice = next(seed for place, seed in enumerate(seeds) if seed in seeds[:place])
                raise ConfigError(
                    f"protocol {self.name!r}: seed {twice} of {word} is listed twice; the same episode would count "
                    "twice"
                )
            if any(not 0 <= s < 2**63 for s in seeds):
                raise ConfigError(f"protocol {self.name!r}: seeds must be between 0 and 2^63 - 1")
        for first, second in itertools.combinations(self.tasks, 2):
            same = task_of(first) == task_of(second) and self._setting(first) == self._setting(second)
            if same and (both := set(self.seeds_of(first)) & set(self.seeds_of(second))):
                raise ConfigError(
                    f"protocol {self.name!r}: {first} and {second} are one setting, and seed {min(both)} is listed "
                    'for both; the same episode would count twice. Give them other [config."..."] or other episodes'
                )

    def seeds_of(self, task: str) -> tuple[int, ...]:
        """Seeds of the episodes of a task, by the protocol's word for it."""
        return self.episodes.get(task, self.seeds)

    def _setting(self, task: str) -> tuple[Any, ...]:
        return self.config.get(task), self.variants.get(task)

    @property
    def trials(self) -> int:
        """Episodes of all tasks."""
        return sum(len(self.seeds_of(task)) for task in self.tasks)

    def _content(self) -> dict[str, Any]:
        """What is hashed of the file."""
        content = {k: v for k, v in dataclasses.asdict(self).items() if k not in _NOT_HASHED}
        lists = [self.seeds_of(task) for task in self.tasks]
        content["seeds"], content["episodes"] = (lists[0], None) if len(set(lists)) == 1 else (None, lists)
        for key in ("episodes", "paraphrases"):  # a protocol without them has the hash that it had before they existed
            if not content[key]:
                del content[key]
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
            task = task_class(task_of(word))
            code, config = task_code(task), task(self.config.get(word)).config
            if code is not None:
                named = f"{task.id}#{setting_of(word)}" if setting_of(word) else task.id
                found[word] = {"id": named, "code": code, "config": dataclasses.asdict(config)}
        ids = [found[word]["id"] if word in found else word for word in self.tasks]
        if len(set(ids)) < len(ids):
            raise ConfigError(f"protocol {self.name!r}: two of its tasks have the same id: {_listed(ids)}")
        return found

    def canonical(self) -> str:
        """The text that is hashed: one line of JSON. Tasks of one's own are in it by id, code and configuration, robots
        of ``manikin sysid`` by what was identified; where files lie is not.

        Raises:
            ManikinError: as :attr:`own_tasks`.
        """
        content = self._content() | hashed_picture_options(self)
        if self.variants:
            varied = {task: without_none(Looks.of(looks).describe()) for task, looks in self.variants.items()}
            content["variants"] = varied
        if self.robot is not None and identified.ENDING in self.robot:
            content["robot"] = [identified.hashed(word) for word in self.robot.split(",")]
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
        if task in self.variants:
            options["looks"] = Looks.of(self.variants[task])
        if self.config.get(task):
            options["config"] = dict(self.config[task])
        return EnvOptions(**options, **where)

    def check_tasks(self, valid: Iterable[str]) -> None:
        """Refuse tasks, or versions of tasks, that do not exist. A user's own (``file.py:Class``) is left to ``make``.

        Raises:
            ConfigError: lists the versions that exist, or the nearest names.
        """
        known = sorted(valid)
        for task in map(task_of, self.tasks):
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
            if f.name not in ("seeds", "config", "episodes") and value is not None and (value or f.name not in _IF_ANY):
                lines.append(f"{f.name} = {toml_of(value)}")
        lines += ["", "[episodes]", *_seed_lines(self.seeds)]
        for task, seeds in self.episodes.items():
            lines += ["", f"[episodes.{json.dumps(task)}]", *_seed_lines(seeds)]
        for task, options in self.config.items():
            lines += ["", f"[config.{json.dumps(task)}]"]
            lines += [f"{json.dumps(key)} = {toml_of(value)}" for key, value in options.items()]
        return "\n".join(lines) + "\n"


def task_of(word: str) -> str:
    """The task that a protocol's word names: ``PickCube-v2`` of ``PickCube-v2#near``."""
    return word.partition("#")[0]


def setting_of(word: str) -> str:
    """The setting that a protocol's word names: ``near`` of ``PickCube-v2#near``; "" where there is none."""
    return word.partition("#")[2]


def _seed_lines(seeds: tuple[int, ...]) -> list[str]:
    if seeds and seeds == tuple(range(seeds[0], seeds[0] + len(seeds))):
        return [f"first_seed = {seeds[0]}", f"count = {len(seeds)}"]
    return [f"seeds = {toml_of(seeds)}"] if seeds else []


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
    values = _read_episodes(episodes, source)
    for key, value in table.items():
        expected, convert = KINDS[key]
        try:
            values[key] = convert(value)
        except ConfigError as error:
            raise ConfigError(f"{source}: {error}") from None
        except (TypeError, ValueError, OverflowError):
            raise ConfigError(f"{source}: {key} must be {expected}, got {value!r}") from None
    return values


def _read_episodes(table: object, source: str) -> dict[str, Any]:
    """``seeds`` of all tasks, and ``episodes`` of those that have others."""
    if not isinstance(table, dict):
        raise ConfigError(f"{source}: [episodes] must be a table with first_seed and count, or seeds")
    others = {task: value for task, value in table.items() if isinstance(value, dict)}
    general = {key: value for key, value in table.items() if key not in others}
    seeds = _read_seeds(general, f"{source}: [episodes]") if general or not others else ()
    first = general.get("first_seed", 0)
    read = {}
    for task, value in others.items():
        given = {"first_seed": first, **value} if "count" in value else value
        read[task] = _read_seeds(given, f"{source}: [episodes.{json.dumps(task)}]")
    return {"seeds": seeds, "episodes": read}


def _read_seeds(table: dict[str, Any], where: str) -> tuple[int, ...]:
    _refuse_unknown(table, _EPISODE_KEYS, where, "key")
    if set(table) not in ({"seeds"}, {"first_seed", "count"}):
        raise ConfigError(f"{where} has either first_seed and count, or seeds; got {_listed(table)}")
    try:
        if "seeds" in table:
            return tuple(int_of(s) for s in sequence_of(table["seeds"]))
        first, count = int_of(table["first_seed"]), int_of(table["count"])
    except TypeError:
        raise ConfigError(f"{where} takes whole numbers, got {table}") from None
    if not 0 < count <= _MAX_EPISODES:
        raise ConfigError(f"{where} count must be 1 to {_MAX_EPISODES}, got {count}")
    return tuple(range(first, first + count))


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
