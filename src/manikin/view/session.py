"""What a viewer looks at and steers: an environment, a policy, and a clock. Knows nothing about browsers.

One thread owns the simulation and calls :meth:`Session.advance`; any other asks for changes with :meth:`Session.ask`
and reads :attr:`Session.status`, so that no simulation state is shared.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import mujoco
import numpy as np
import torch

from manikin.errors import ConfigError, UnknownNameError
from manikin.policy.api import Policy
from manikin.policy.chunk import ChunkPolicy
from manikin.policy.expert import ExpertPolicy
from manikin.view.home_map import HomeMap

if TYPE_CHECKING:
    from manikin.env.interface import BatchEnv

__all__ = ["MOST_FORCE", "WISHES", "Session", "Wishes"]

Wishes = Mapping[str, Mapping[str, Callable[[str, Any], Any]]]  # name -> what it takes, and who checks it

PAUSE_S = 1.0  # how long an ended episode stays in view before the next begins [s]
MOST_FORCE = 500.0  # [N] each way that a person may push with
REMEMBERED = 400  # steps of reward that are kept per row


def _bool(name: str, value: Any) -> bool:
    if not isinstance(value, bool | None):
        raise ConfigError(f"{name} must be true or false; got {value!r}")
    return bool(value)


def _whole(name: str, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise ConfigError(f"{name} must be a whole number; got {value!r}")
    return value


def _seed(name: str, value: Any) -> int | None:
    if value is not None and not 0 <= _whole(name, value) < 2**62:
        raise ConfigError(f"{name} must be from 0 to 2^62; got {value!r}")
    return None if value is None else int(value)


def _speed(name: str, value: Any) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0.01 <= value <= 100:
        raise ConfigError(f"speed must be from 0.01 to 100; got {value!r}")
    return float(value)


def _name(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise ConfigError(f"{name} must be the name of a body, not {value!r}")
    return value


def _force(name: str, value: Any) -> tuple[float, ...]:
    numbers = value if isinstance(value, list | tuple) and len(value) == 3 else (None,)
    if not all(isinstance(v, int | float) and not isinstance(v, bool) and abs(v) <= MOST_FORCE for v in numbers):
        raise ConfigError(f"{name} must be three numbers of at most {MOST_FORCE:g} N; got {value!r}")
    return tuple(map(float, numbers))


def _seconds(name: str, value: Any) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value <= 10:
        raise ConfigError(f"{name} must be above 0 and at most 10; got {value!r}")
    return float(value)


WISHES: Wishes = {
    "play": {},
    "pause": {},
    "toggle": {},
    "step": {},
    "reset": {"seed": _seed, "all": _bool},
    "row": {"value": _whole},
    "speed": {"value": _speed},
    "again": {"value": _bool},
    "push": {"body": _name, "force": _force, "seconds": _seconds},
}


class Session:
    """Plays episodes on the rows of an environment at true speed.

    Args:
        env: made with ``autoreset="disabled"``.
        make_policy: a function from the environment to what acts in it.
        seed: row i begins with the episode seed ``seed + i``.
        playing: whether time runs from the start.
        again: begin a row's next episode after its last has ended.

    Attributes:
        env: the environment; for the thread that calls ``advance`` only.
        status: what there is to show, as JSON allows; replaced, never changed. See :meth:`publish`.
        bodies: names of the bodies of the row in view that can be pushed.
        map: of the homes that the rows are in, as ``status["map"]`` shows the row in view; None for tasks without.
        version: counts changes of what there is to show.

    Raises:
        ConfigError: the environment resets its rows by itself.
    """

    wishes: ClassVar[Wishes] = WISHES
    moves = False  # whether what is shown goes on changing by itself since it was published
    pictured: Mapping[str, Any] = {}  # what there is to say of what :meth:`look` gave last

    def __init__(
        self,
        env: BatchEnv,
        make_policy: Callable[[Any], Policy],
        *,
        seed: int = 0,
        playing: bool = True,
        again: bool = True,
    ) -> None:
        if env.autoreset != "disabled":
            raise ConfigError(f"a session needs an environment with autoreset='disabled', not {env.autoreset!r}")
        self.env = env
        self._policy = ChunkPolicy(make_policy(env), env.num_envs, env.controller.card.size)
        self.row, self.playing, self.again, self.speed = 0, playing, again, 1.0
        self.version, self.episodes = 0, 0
        self.status: dict[str, Any] = {}
        self.changed = threading.Condition()
        self._wishes: queue.SimpleQueue[tuple[str, dict[str, Any]]] = queue.SimpleQueue()
        n = env.num_envs
        self._done = np.zeros(n, bool)
        self._ended_at = np.zeros(n)
        self._word = ["running"] * n
        self._reward, self._return = np.zeros(n), np.zeros(n)
        self._terms: dict[str, np.ndarray] = {}
        self._history: list[list[dict[str, Any]]] = [[] for _ in range(n)]
        self._pushes: list[dict[str, Any]] = []  # under way: row, body number, force, steps left
        self._interventions: list[list[dict[str, Any]]] = [[] for _ in range(n)]
        self._due, self._late = time.monotonic(), False
        self._model: mujoco.MjModel | None = None
        self.bodies: tuple[str, ...] = ()
        self.map = HomeMap.of(env)
        self._observation: Any = None
        self._info: dict[str, Any] = {}
        self._reset(np.ones(n, bool), [seed + i for i in range(n)])
        self.publish()

    @property
    def actor(self) -> str:
        """Name of who acts."""
        return self._policy.name

    # ---- from any thread -------------------------------------------------------------------------------------------

    def ask(self, wish: str, **values: Any) -> None:
        """Ask for a change; it happens at the next :meth:`advance`.

        Args:
            wish: ``play``, ``pause``, ``toggle``, ``step``, ``reset`` (``seed``: int or None for the next episode;
                ``all``: every row, else the one in view), ``row`` (``value``), ``speed`` (``value``, 1 is true speed)
                or ``again`` (``value``: whether ended episodes are followed by others);
                ``push`` presses on the ``body``
                of that name of the row in view with ``force`` (x, y, z [N], world) for ``seconds``, which is noted
                among the episode's interventions.
            values: see there.

        Raises:
            UnknownNameError: no such wish.
            ConfigError: a value is missing or cannot work.
        """
        if wish not in self.wishes:
            raise UnknownNameError("wish", wish, self.wishes)
        takes = self.wishes[wish]
        extra = sorted(values.keys() - takes.keys())
        if extra:
            raise ConfigError(f"{wish} does not take {', '.join(extra)}")
        checked = {name: check(name, values.get(name)) for name, check in takes.items()}
        self._take(wish, checked)

    def wait(self, version: int, timeout: float) -> int:
        """Wait until there is something newer to show than ``version``, at most ``timeout`` [s]; its version."""
        with self.changed:
            self.changed.wait_for(lambda: self.version != version, timeout)
            return self.version

    # ---- from the thread that owns the simulation ------------------------------------------------------------------

    def advance(self) -> float:
        """Carry out what was asked for and step if it is time to; returns seconds until there is more to do."""
        news = self.obey()
        now = time.monotonic()
        if self.again and self._done.any():
            ready = self._done & (now >= self._ended_at + PAUSE_S / self.speed)
            if self.playing and ready.any():
                self._reset(ready, None)
                news = True
        if self.playing and now >= self._due and not self._done.all():
            self.step()
            news = False  # published there
            self._due = max(self._due + 1 / (self.env.control_hz * self.speed), now - 0.25)
        if news:
            self.publish()
        if not self.playing or self._done.all():
            self._due = max(self._due, time.monotonic())
            return 0.02
        return max(0.0, min(0.02, self._due - time.monotonic()))

    def step(self) -> None:
        """One control step of all rows whose episode runs."""
        active = ~self._done
        if not active.any():
            return
        with torch.no_grad():
            action = self._policy.act(self._observation, self.env.instruction)[:, 0]
        self._press()
        self._stepped(active, *self.env.step(action, active=active))

    def _press(self) -> None:
        """Put the forces of this step on the bodies that are pushed; those that are over end."""
        if not self._pushes:
            return
        for row in {push["row"] for push in self._pushes}:
            one, at = self.env.part(row)
            world = one.world
            force = torch.zeros_like(world.read("xfrc_applied")[:1])
            for push in self._pushes:
                if push["row"] == row and push["left"] > 0:
                    force[0, push["body"], :3] += torch.tensor(push["force"]).to(force)
            world.write("xfrc_applied", force, np.array([at], np.int32))
        self._pushes = [{**push, "left": push["left"] - 1} for push in self._pushes if push["left"] > 0]

    def _push(self, body: str, force: tuple[float, ...], seconds: float) -> None:
        """Begin to push a body of the row in view."""
        self._find_bodies()
        if self._done[self.row] or body not in self.bodies:  # the row in view has changed since it was asked for
            return
        model, _ = self.look()
        steps = max(1, round(seconds * self.env.control_hz))
        self._pushes.append({"row": self.row, "body": model.body(body).id, "force": force, "left": steps})
        at = int(self._info["elapsed"][self.row])
        note = {"step": at, "body": body, "force": list(force), "steps": steps}
        self._interventions[self.row] = [*self._interventions[self.row], note]

    def look(self, row: int | None = None) -> tuple[mujoco.MjModel, mujoco.MjData]:
        """Model and data of a row (default the one in view), as the world makes them for pictures."""
        return self.env.model_data(self.row if row is None else row)

    # ---- inside ----------------------------------------------------------------------------------------------------

    def _find_bodies(self) -> None:
        """What can be pushed in the row in view, whose scene may be another than that of other rows."""
        model = self.env.part(self.row)[0].scene.model
        if model is not self._model:
            moving = (model.body(i).name for i in range(1, model.nbody) if model.body_weldid[i])
            self._model, self.bodies = model, tuple(name for name in moving if name)

    def _stepped(
        self,
        active: np.ndarray,
        observation: Any,
        reward: torch.Tensor,
        terminated: torch.Tensor,
        truncated: torch.Tensor,
        info: dict[str, Any],
    ) -> None:
        """Take in what a control step of the active rows gave, and publish it."""
        self._observation, self._info = observation, info
        rewards = reward.double().numpy()
        terms = {name: value.double().numpy() for name, value in info.get("reward_terms", {}).items()}
        self._terms = {
            name: np.where(active, value, self._terms.get(name, np.zeros_like(value))) for name, value in terms.items()
        }
        self._reward = np.where(active, rewards, self._reward)
        self._return += np.where(active, rewards, 0)
        elapsed = info["elapsed"].tolist()
        for row in np.flatnonzero(active).tolist():
            entry = {"step": elapsed[row], "reward": rewards[row]} | {k: v[row] for k, v in terms.items()}
            self._history[row] = [*self._history[row][-REMEMBERED:], entry]
        over = (terminated | truncated).numpy() & active
        for row in np.flatnonzero(over).tolist():
            self._word[row] = self._outcome(row, bool(terminated[row]))
            self._ended_at[row] = time.monotonic()
            self.episodes += 1
        self._done |= over
        self.publish()

    def _take(self, wish: str, checked: dict[str, Any]) -> None:
        """A wish whose values are right has come, from any thread."""
        if wish == "push" and checked["body"] not in self.bodies:
            raise UnknownNameError("body that moves", checked["body"], self.bodies)
        if wish == "row" and not 0 <= checked["value"] < self.env.num_envs:
            raise ConfigError(f"there are rows 0 to {self.env.num_envs - 1}; got {checked['value']}")
        self._wishes.put((wish, checked))

    def _extra(self) -> dict[str, Any]:
        """What a kind of session has to show beyond the others."""
        return {}

    def obey(self) -> bool:
        news = False
        while not self._wishes.empty():
            wish, values = self._wishes.get()
            news = True
            if wish in ("play", "pause", "toggle"):
                self.playing = {"play": True, "pause": False, "toggle": not self.playing}[wish]
                self._due = time.monotonic()
            elif wish == "step":
                self.playing = False
                if self._done.all() and self.again:
                    self._reset(self._done.copy(), None)
                self.step()
            elif wish == "reset":
                mask = np.ones(self.env.num_envs, bool)
                if not values["all"]:
                    mask[:] = False
                    mask[self.row] = True
                seed = values["seed"]
                self._reset(mask, None if seed is None else [seed + i for i in range(int(mask.sum()))])
            elif wish == "push":
                self._push(**values)
            else:  # row, speed, again
                setattr(self, wish, values["value"])
        return news

    def _reset(self, mask: np.ndarray, seeds: list[int] | None) -> None:
        observation, info = self.env.reset(seed=seeds, options={"reset_mask": mask})
        rows = np.flatnonzero(mask)
        self._policy.reset(torch.from_numpy(rows))
        self._begun(rows, observation, info)

    def _begun(self, rows: np.ndarray, observation: Any, info: dict[str, Any]) -> None:
        """Episodes have begun in these rows."""
        self._observation, self._info = observation, info
        self._done[rows], self._reward[rows], self._return[rows] = False, 0.0, 0.0
        for value in self._terms.values():
            value[rows] = 0.0
        for row in rows.tolist():
            self._word[row], self._history[row], self._interventions[row] = "running", [], []
        self._pushes = [push for push in self._pushes if push["row"] not in rows]
        if self.map is not None:
            self.map.begin(rows)

    def _outcome(self, row: int, terminated: bool) -> str:
        if int(self._info["health"][row]):
            return "not healthy"
        if bool(self._info["success"][row]):
            return "success"
        return "fail" if terminated else "out of time"

    def publish(self) -> None:
        env, row, info = self.env, self.row, self._info
        self._find_bodies()
        flags = {
            k: bool(v[row])
            for k, v in info.items()
            if isinstance(v, torch.Tensor) and v.dtype == torch.bool and v.ndim == 1 and not k.startswith("_")
        }
        status = {
            "task": env.task.id,
            "instruction": env.instruction[row],
            "robot": env.robot_word,
            "control": env.controller.name,
            "policy": self.actor,
            "control_hz": env.control_hz,
            "horizon": env.horizon,
            "num_envs": env.num_envs,
            "row": row,
            "playing": self.playing,
            "again": self.again,
            "speed": self.speed,
            "step": int(info["elapsed"][row]),
            "seed": int(info["episode_seed"][row]),
            "index": int(info["episode_index"][row]),
            "word": self._word[row],
            "words": list(self._word),
            "reward": float(self._reward[row]),
            "return": float(self._return[row]),
            "terms": {k: float(v[row]) for k, v in self._terms.items()},
            "flags": flags,
            "history": self._history[row],
            "interventions": self._interventions[row],
            "episodes": self.episodes,
            **self._extra(),
        }
        if self.map is not None:
            self.map.note()
            who = self._policy.policy
            status["map"] = self.map.seen(row, who.way if isinstance(who, ExpertPolicy) else None)
        with self.changed:
            self.status = status
            self.version += 1
            self.changed.notify_all()
