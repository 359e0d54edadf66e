"""A recipe: everything that a training run depends on besides its seed, as a TOML file with a hash."""

from __future__ import annotations

import dataclasses
import hashlib
import importlib
import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

from manikin.env.options import EnvOptions
from manikin.errors import ConfigError, UnknownNameError
from manikin.eval.picture_options import cameras_of, picture_options
from manikin.policy.choices import find_trained
from manikin.policy.trained import read_about
from manikin.spec.camera import CameraSpec

__all__ = [
    "ALGORITHMS",
    "FILES",
    "ROWS",
    "STEPS",
    "Recipe",
    "load_recipe",
    "recipe_for",
    "settings_class",
    "shipped_recipes",
    "trainer_class",
]

ALGORITHMS: dict[str, tuple[str, str]] = {
    "ppo": ("manikin.learn.ppo", "PPO"),
    "sac": ("manikin.learn.sac", "SAC"),
    "tdmpc2": ("manikin.learn.tdmpc2", "TDMPC2"),
    "bc": ("manikin.learn.bc", "BC"),
    "diffusion": ("manikin.learn.diffusion", "Diffusion"),
    "act": ("manikin.learn.act", "ACT"),
    "voxel": ("manikin.learn.voxel", "Voxel"),
    "distill": ("manikin.learn.distill", "Distill"),
}
"""Algorithm -> the module of its file, and the class of its trainer. The module's ``Config`` has the settings."""

ROWS = {"ppo": 256, "sac": 64, "tdmpc2": 16, "distill": 64}
"""Environments of an algorithm that steps them, in the recipe of a task that has none of its own."""

STEPS = {"bc": 8_000, "diffusion": 6_000, "act": 6_000, "voxel": 1_600, "distill": 48_000}
"""Steps of such a recipe, where the learning rate falls over the run: by time, each run would be another one."""

FILES = ("demos", "demonstrations_of", "teacher", "begin_from")
"""Settings that name a file, which counts by its content and not by its place."""

_ENV = ("num_envs", "robot", "control", "observe", "reward", "physics_hz", "control_hz", "horizon", "terminate")
_RATES = ("physics_hz", "control_hz")
_PICTURES = ("cameras", "size", "renderer", "stages", "looks")
_KEYS = (*_ENV, "config", *_PICTURES)


@dataclass(frozen=True, kw_only=True)
class RecipePictures:
    """What a recipe shows the policy, by the names that a protocol has for it."""

    name: str
    observe: Any = "state"
    cameras: tuple[str | CameraSpec, ...] = ()
    size: tuple[int, int] | None = None
    renderer: str | None = None
    stages: tuple[Mapping[str, Any], ...] = ()
    looks: Mapping[str, Any] | None = None


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How a policy is trained.

    Attributes:
        algorithm: one of ``ALGORITHMS``.
        task: id with version.
        env: options of the environment that trains: num_envs, robot, control, observe, reward, physics_hz,
            control_hz, horizon, terminate, config; and, as in a protocol, cameras, size, renderer, stages, looks.
        settings: of the algorithm; what is left out has the default of its ``Config``.
        sha256: of the files that settings name (``FILES``), by the setting's name. Where it is known it is hashed in
            place of the path.
        minutes: the run ends after so many minutes; 0 for no limit.
        steps: it ends after so many control steps of all rows, or, where the algorithm learns from demonstrations,
            gradient steps; 0 for no limit.
        validate_every: iterations between two validations.
        validation_episodes: of each. test_episodes: of the final number.
        stop_at: the run ends once so large a share of validation episodes succeeded; above 1 never.
        description: for people; not hashed.
    """

    algorithm: str
    task: str
    env: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    sha256: Mapping[str, str] = field(default_factory=dict)
    minutes: float = 20.0
    steps: int = 0
    validate_every: int = 10
    validation_episodes: int = 128
    test_episodes: int = 512
    stop_at: float = 1.0
    description: str = ""

    def __post_init__(self) -> None:
        if self.algorithm not in ALGORITHMS:
            raise UnknownNameError("algorithm", self.algorithm, ALGORITHMS)
        for name in self.env:
            if name not in _KEYS:
                raise ConfigError(f"a recipe's [env] has no key {name!r}; valid: {', '.join(_KEYS)}")
        for name in ("minutes", "steps", "stop_at"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
                raise ConfigError(f"a recipe's {name} must be a number, 0 or more; got {value!r}")
        for name in ("validate_every", "validation_episodes", "test_episodes"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ConfigError(f"a recipe's {name} must be a whole number, 1 or more; got {value!r}")
        if not self.minutes and not self.steps:
            raise ConfigError("a recipe needs minutes or steps, or the run would never end")
        # 40 and 40.0 are the same recipe, and have the same hash
        for name in ("minutes", "stop_at"):
            object.__setattr__(self, name, float(getattr(self, name)))
        plain = {name: float(value) if _is_rate(name, value) else value for name, value in self.env.items()}
        object.__setattr__(self, "env", plain)
        object.__setattr__(self, "settings", checked_settings(self.algorithm, self.settings))
        for name, value in self.sha256.items():
            if name not in FILES or not self.settings.get(name):
                raise ConfigError(f"a recipe's [sha256] has {name!r}; valid are settings that name a file: {FILES}")
            if not isinstance(value, str):
                raise ConfigError(f"a recipe's [sha256] must hold text, got {name} = {value!r}")
        self.env_options()  # raises where a value cannot work

    def env_options(self, **more: Any) -> EnvOptions:
        """The options of the environment, and ``more``, which wins.

        Raises as :class:`~manikin.env.options.EnvOptions` and :func:`~manikin.eval.picture_options.picture_options`.
        """
        plain = {name: value for name, value in self.env.items() if name not in (*_PICTURES, "observe")}
        return EnvOptions(**{**plain, **picture_options(self.pictures, kind="recipe"), **more})

    @property
    def pictures(self) -> RecipePictures:
        """What the policy is shown. Raises :class:`ConfigError` for what is no camera."""
        given = {name: self.env[name] for name in (*_PICTURES, "observe") if name in self.env}
        try:
            for name, brought in (("cameras", cameras_of), ("size", tuple), ("stages", tuple)):
                if name in given:
                    given[name] = brought(given[name])
        except TypeError:
            raise ConfigError(
                'a recipe\'s cameras must be a list of names and tables, ["base_camera", {name = "top", pos = [...], '
                "target = [...]}], its size [width, height], its stages a list"
            ) from None
        return RecipePictures(name=f"{self.algorithm} on {self.task}", **given)

    @property
    def hash(self) -> str:
        """SHA-256 of all but the description. A file that a setting names counts by its content, where that is known
        (:func:`~manikin.learn.run.contents.with_contents`), and by its path otherwise."""
        content = {k: v for k, v in dataclasses.asdict(self).items() if k != "description"}
        content["settings"] |= content.pop("sha256")
        text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def config(self) -> Any:
        """The algorithm's ``Config`` with these settings."""
        return settings_class(self.algorithm)(**self.settings)

    def replace(self, *, settings: Mapping[str, Any] | None = None, **given: Any) -> Recipe:
        """Another recipe, with these fields and settings in place. In ``env``, ``{"config.NAME": value}`` sets one
        number of the task and leaves the others."""
        merged = {**self.settings, **(settings or {})}
        env = dict(self.env)
        for name, value in given.pop("env", {}).items():
            table, _, key = name.partition(".")
            if table == "config" and key:
                env["config"] = {**env.get("config", {}), key: value}
            else:
                env[name] = value
        same = {name: value for name, value in self.sha256.items() if merged.get(name) == self.settings[name]}
        return dataclasses.replace(self, **{"settings": merged, "env": env, "sha256": same, **given})

    @classmethod
    def from_toml(cls, text: str, *, source: str = "recipe") -> Recipe:
        """Read a recipe; nothing unknown is ignored.

        Raises:
            ConfigError: not TOML, an unknown or missing key, a value of the wrong kind; names ``source``.
        """
        try:
            table = tomllib.loads(text)
        except (ValueError, RecursionError) as error:
            raise ConfigError(f"{source}: not valid TOML: {error}") from None
        names = [f.name for f in dataclasses.fields(cls)]
        for key in table:
            if key not in names:
                raise ConfigError(f"{source}: unknown key {key!r}; valid: {', '.join(names)}")
        for key in ("algorithm", "task"):
            if not isinstance(table.get(key), str):
                raise ConfigError(f"{source}: {key} is missing, or is not text")
        for key in ("env", "settings", "sha256"):
            if not isinstance(table.get(key, {}), dict):
                raise ConfigError(f"{source}: [{key}] must be a table")
        try:
            return cls(**table)
        except ConfigError as error:
            raise ConfigError(f"{source}: {error}") from None

    def to_toml(self) -> str:
        """A file that reads back to an equal recipe."""
        plain, tables = [], []
        for f in dataclasses.fields(self):
            value = getattr(self, f.name)
            if isinstance(value, Mapping) and value:
                tables += ["", f"[{f.name}]", *(f"{key} = {_toml(one)}" for key, one in value.items())]
            elif not isinstance(value, Mapping) and value != "":
                plain.append(f"{f.name} = {_toml(value)}")
        return "\n".join([*plain, *tables]) + "\n"


def _is_rate(name: str, value: Any) -> bool:
    return name in _RATES and isinstance(value, int) and not isinstance(value, bool)


def trainer_class(algorithm: str) -> Any:
    """The class of an algorithm's trainer. Raises :class:`UnknownNameError`."""
    module, name = _place(algorithm)
    return getattr(importlib.import_module(module), name)


def settings_class(algorithm: str) -> Any:
    """The frozen dataclass of an algorithm's settings. Raises :class:`UnknownNameError`."""
    return importlib.import_module(_place(algorithm)[0]).Config


def _place(algorithm: str) -> tuple[str, str]:
    if algorithm not in ALGORITHMS:
        raise UnknownNameError("algorithm", algorithm, ALGORITHMS)
    return ALGORITHMS[algorithm]


def checked_settings(algorithm: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """All settings of an algorithm, those ``given`` in place of its defaults.

    Raises:
        ConfigError: there is no setting of a name, or a value is of another kind; lists what is valid.
    """
    kind = settings_class(algorithm)
    own = vars(kind)["__annotations__"]  # before those that several algorithms share
    names = sorted((f.name for f in dataclasses.fields(kind)), key=lambda name: name not in own)
    hints = get_type_hints(kind)
    for name, value in given.items():
        if name not in names:
            raise ConfigError(f"{algorithm} has no setting {name!r}; valid: {', '.join(names)}")
        if not _fits(value, hints[name]):
            raise ConfigError(f"{algorithm}'s {name} must be {_said(hints[name])}, got {value!r}")
    made = dataclasses.asdict(kind(**{name: _brought(value, hints[name]) for name, value in given.items()}))
    return {name: list(made[name]) if isinstance(made[name], tuple) else made[name] for name in names}


def _fits(value: Any, hint: Any) -> bool:
    if get_origin(hint) is tuple:
        return isinstance(value, list | tuple) and all(_fits(one, get_args(hint)[0]) for one in value)
    if hint is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    return isinstance(value, hint) and (hint is bool or not isinstance(value, bool))


def _brought(value: Any, hint: Any) -> Any:
    return tuple(value) if get_origin(hint) is tuple else float(value) if hint is float else value


def _said(hint: Any) -> str:
    words = {float: "a number", int: "a whole number", bool: "true or false", str: "text"}
    return words.get(hint, "a list of texts" if get_args(hint)[:1] == (str,) else "a list of whole numbers")


def shipped_recipes() -> dict[tuple[str, str], str]:
    """(algorithm, task) -> file name of the recipes that come with manikin."""
    found = {}
    for file in sorted(p.name for p in _folder().iterdir() if p.name.endswith(".toml")):
        algorithm, _, task = file.removesuffix(".toml").partition("-")
        found[algorithm, task] = file
    return found


def recipe_for(
    algorithm: str, task: str, *, demos: bool = False, begin_from: str = "", observe: Any = None
) -> tuple[Recipe, bool]:
    """The recipe of a task that comes with manikin, or the algorithm's defaults; and whether it is the task's own.

    With ``demos``, of an algorithm that learns otherwise where it has demonstrations, its recipe for that, the task's
    own or one for any task: ``recipes/with_demos``. With ``begin_from``, a policy of ``bc``, that of
    ``recipes/from_clone``: in the environment that the clone was trained for, and with layers as it has them. With
    ``observe="depth"`` that of ``recipes/from_depth``.

    Raises:
        AssetError, DataError: no such policy to begin from.
    """
    if algorithm not in ALGORITHMS:
        raise UnknownNameError("algorithm", algorithm, ALGORITHMS)
    if observe == "depth" and (found := _from_folder("from_depth", algorithm, task)) is not None:
        return found
    if demos and (found := _from_folder("with_demos", algorithm, task)) is not None:
        return found
    about = read_about(find_trained(begin_from)) if begin_from else {}
    cloned = about.get("algorithm") == "bc"
    if cloned and (found := _from_folder("from_clone", algorithm, task)) is not None:
        clone = Recipe.from_toml(about["recipe"], source=f"the recipe of {begin_from}")
        env = {name: value for name, value in clone.env.items() if name != "num_envs" and clone.task == task}
        layers = {name: clone.settings[name] for name in ("hidden", "activation")}
        return found[0].replace(env=env, settings=layers), True
    shipped = shipped_recipes()
    if (algorithm, task) in shipped:
        name = shipped[algorithm, task]
        return Recipe.from_toml((_folder() / name).read_text(encoding="utf-8"), source=f"shipped recipe {name}"), True
    env = {"num_envs": ROWS[algorithm]} if algorithm in ROWS else {}
    ends: dict[str, Any] = {"minutes": 0.0, "steps": STEPS[algorithm]} if algorithm in STEPS else {}
    return Recipe(algorithm=algorithm, task=task, env=env, **ends), False


def load_recipe(path: str | Path) -> Recipe:
    """A recipe from a file.

    Raises:
        ConfigError: no such file, or anything that :meth:`Recipe.from_toml` refuses.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"the recipe {str(path)!r} cannot be read: {error}") from None
    return Recipe.from_toml(text, source=str(path))


def _from_folder(folder: str, algorithm: str, task: str) -> tuple[Recipe, bool] | None:
    """The algorithm's recipe in a folder whose files say how the ids of their tasks begin, ``ALGORITHM-Home.toml``, or
    are for any task, ``ALGORITHM.toml``; and whether this one says so. Of several it is the one that says most."""
    fits = []
    for file in (_folder() / folder).iterdir():
        of, _, begin = file.name.removesuffix(".toml").partition("-")
        if of == algorithm and task.startswith(begin):
            fits.append((begin, file))
    if not fits:
        return None
    begin, file = max(fits, key=lambda one: len(one[0]))
    text = f"task = {_toml(task)}\n{file.read_text(encoding='utf-8')}"
    return Recipe.from_toml(text, source=f"shipped recipe {folder}/{file.name}"), bool(begin)


def _folder() -> Any:
    return resources.files("manikin.learn") / "recipes"


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_toml(one) for one in value) + "]"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{json.dumps(k)} = {_toml(v)}" for k, v in value.items()) + "}"
    return repr(value)
