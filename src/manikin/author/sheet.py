"""Describes a task on one page, from its class. ``manikin info`` and the docs show this page."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import mujoco

from manikin.author.card import measured
from manikin.env.interface import BatchEnv
from manikin.env.layouts.env import batched
from manikin.env.observe import own_names
from manikin.env.registry import task_class
from manikin.env.task import Task
from manikin.spec.action import ActionCard
from manikin.spec.robot import RobotSpec

__all__ = ["Seen", "TaskSheet", "table", "task_sheet"]


@dataclass(frozen=True, kw_only=True)
class Seen:
    """One named observation. ``columns`` is where it is in the flat tensor of ``observe="state"``."""

    group: str
    name: str
    columns: str
    unit: str
    frame: str
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class TaskSheet:
    """What a task is, in words and tables.

    Attributes:
        description: the class's docstring as Markdown.
        options: (name, default, unit and meaning) of each field of Config.
        modes: (name, condition, meaning) of each way to succeed or fail, successes first.
        card: of the controller, measured on the robot.
    """

    id: str
    title: str
    description: str
    instruction: str
    facts: tuple[tuple[str, str], ...]
    observations: tuple[Seen, ...]
    card: ActionCard
    reward_terms: tuple[tuple[str, str], ...]
    reward_max: float
    options: tuple[tuple[str, str, str], ...]
    robot_options: tuple[tuple[str, str], ...]
    modes: tuple[tuple[str, str, str], ...]

    def markdown(self, *, picture: str = "") -> str:
        """The page; ``picture`` is Markdown put under the title."""
        parts = [
            f"# {self.id}",
            f"*“{self.instruction}”*",
            picture,
            self.description,
            table(self.facts[0], self.facts[1:]),
        ]
        parts += ["## Observations", table("columns name unit frame group".split(), self._observation_rows())]
        parts += ["## Actions", self.card.summary(), self.card.table()]
        parts.append("## Reward")
        if self.reward_terms:
            parts.append(table(("term", "formula"), [(f"`{k}`", _cell(v)) for k, v in self.reward_terms]))
            most = f"{self.reward_max:g}"
            parts.append(
                f"`dense` is the sum, at most {most}; `normalized_dense` (the default) is that divided by {most}; "
                "`sparse` is 1 in success and -1 in failure."
            )
        else:
            parts.append("`sparse` only: 1 in success, -1 in failure.")
        parts.append("## How episodes are labelled")
        parts.append(table(("mode", "when", ""), [(f"`{n}`", f"`{w}`", _cell(m)) for n, w, m in self.modes]))
        if self.options:
            name = self.options[0][0]
            parts.append("## Options")
            parts.append(f'`manikin.make("{self.id}", config={{"{name}": ...}})`')
            parts.append(table(("name", "default", "meaning"), [(f"`{n}`", d, _cell(m)) for n, d, m in self.options]))
        if self.robot_options:
            parts.append("Other defaults by robot: " + "; ".join(f"{r}: {o}" for r, o in self.robot_options) + ".")
        return "\n\n".join(part for part in parts if part) + "\n"

    def _observation_rows(self) -> list[tuple[str, ...]]:
        rows: list[tuple[str, ...]] = []
        for seen in self.observations:
            unit = _cell(seen.unit) + (f" ({_cell(seen.note)})" if seen.note else "")
            rows.append((seen.columns, f"`{seen.name}`", unit, seen.frame, seen.group))
        return rows


def task_sheet(
    task: str | type[Task],
    *,
    robot: str | None = None,
    control: str | None = None,
    config: Any = None,
    measure: bool = True,
) -> TaskSheet:
    """Describe a task with a robot and a controller, by default its own.

    Args:
        task: a class, or a word as for :func:`manikin.make`.
        robot: robot word.
        control: controller.
        config: as in :func:`manikin.make`.
        measure: also measure what the controller does (a tenth of a second).

    Raises:
        UnknownNameError: no such task, robot or controller; lists what there is.
    """
    kind = task_class(task)
    reward, n = "none" if kind.reward is Task.reward else "dense", max(1, len(kind.layouts))
    env = batched(kind, num_envs=n, robot=robot, control=control, config=config, reward=reward)  # a row of each layout
    try:
        env.reset(seed=range(n))
        card, arm = env.controller.card, env.robot.arm
        if measure:
            card = measured(card, env.robot_word, env.control_hz)
        config = env.task.config
        comments = _comments(kind.Config)
        return TaskSheet(
            id=kind.id,
            title=_markdown(kind).split("\n")[0].rstrip("."),
            description=_markdown(kind),
            instruction=env.task.instruction,
            facts=(
                ("episode", f"{env.horizon} control steps, {env.horizon / env.control_hz:.4g} s"),
                ("rates", f"control {env.control_hz:g} Hz, physics {env.physics_hz:g} Hz"),
                ("ends early", "on success or failure" if env.terminates else "never"),
                *([("trials", f"{kind.trial_count}, by number")] if kind.trial_count else []),
                ("robots", ", ".join(f"`{word}`" for word in kind.robots)),
                ("this page", f"`{env.robot_word}` with `{env.controller.name}`"),
                *_made_of(arm),
                ("controllers", ", ".join(f"`{name}`" for name in arm.controllers)),
                ("expert", "scripted" if kind.expert is not Task.expert else "none"),
                *([("layouts", ", ".join(f"`{name}`" for name in kind.layouts))] if kind.layouts else []),
            ),
            observations=tuple(_observations(env)),
            card=card,
            reward_terms=tuple(kind.reward_terms.items()),
            reward_max=kind.reward_max,
            options=tuple(
                (f.name, repr(getattr(config, f.name)), comments.get(f.name, "")) for f in dataclasses.fields(config)
            ),
            robot_options=tuple(
                (name, ", ".join(f"`{k}` {v!r}" for k, v in values.items()))
                for name, values in kind.robot_config.items()
            ),
            modes=tuple((m.name, m.when, m.note) for m in (*kind.labels.success, *kind.labels.failure)),
        )
    finally:
        env.close()


def _made_of(robot: RobotSpec) -> list[tuple[str, str]]:
    """Base, groups and tools of a robot that is more than an arm."""
    if robot.base.kind == "fixed" and len(robot.groups) == 1 and len(robot.tools) == 1:
        return []
    groups = ", ".join(f"`{name}` ({len(group.joints)} joints)" for name, group in robot.groups.items())
    return [
        ("base", robot.base.kind),
        ("groups", groups),
        *([("tools", ", ".join(f"`{name}`" for name in robot.tools))] if robot.tools else []),
    ]


def _observations(env: BatchEnv) -> Iterable[Seen]:
    """In the order of the flat tensor."""
    model = env.part(0)[0].scene.model
    own: dict[str, str] = {}
    for robot in env.robots:
        slides = [bool(model.joint(robot.prefix + j).type[0] == mujoco.mjtJoint.mjJNT_SLIDE) for j in robot.joints]
        place = "m" if all(slides) else "rad, gripper m" if any(slides) else "rad"
        speed = re.sub(r"(rad|m)\b", r"\1/s", place)
        own |= dict(zip(own_names(robot, env.robots), (place, speed), strict=True))
    columns: dict[str, list[int]] = {}
    for number, column in enumerate(env.observation_names):
        columns.setdefault(column.split("[")[0], []).append(number)
    for path, at in columns.items():
        group, name = path.split("/", 1)
        masked = name.removesuffix("_mask") if name not in env.task.observations else name
        quantity = env.task.observations.get(masked)
        unit = own.get(name, "1 where the value is real" if masked != name else quantity.unit if quantity else "")
        yield Seen(
            group=group,
            name=name,
            columns=f"{at[0]}" if len(at) == 1 else f"{at[0]} to {at[-1]}",
            unit=unit,
            frame="joint" if name in own else (quantity.frame if quantity and masked == name else ""),
            note=quantity.note if quantity and masked == name else "",
        )


def _markdown(kind: type[Task]) -> str:
    """The docstring, paragraphs that begin with ``Word:`` set apart."""
    text = inspect.getdoc(kind) or ""
    text = re.sub(r"^(Randomization|Success|Failure|Numbers|Source|Reward)s?:", r"\n**\1:**", text, flags=re.MULTILINE)
    text = re.sub(r"``(.+?)``", r"`\1`", text)
    paragraphs = [" ".join(p.split()) for p in re.split(r"\n\s*\n", text)]
    return "\n\n".join(p for p in paragraphs if p)


def _comments(config: type) -> dict[str, str]:
    """The comment behind each field of a Config, from its source; empty where there is no source."""
    found = {}
    for base in reversed(config.__mro__):
        try:
            source = inspect.getsource(base)
        except (OSError, TypeError):
            continue
        for name, comment in re.findall(r"^\s+(\w+): .*?#\s*(.+)$", source, re.MULTILINE):
            found[name] = comment.strip()
    return found


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def table(headings: Sequence[str], rows: Iterable[Iterable[str]]) -> str:
    """A Markdown table."""
    lines = [f"| {' | '.join(headings)} |", f"|{'---|' * len(headings)}"]
    return "\n".join(lines + [f"| {' | '.join(row)} |" for row in rows])
