"""The action card: what every dimension of an action means, as data for spaces, documentation and tests."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ActionCard", "ActionDim"]


@dataclass(frozen=True, kw_only=True)
class ActionDim:
    """One dimension of an action in [-1, 1].

    Attributes:
        name: what moves: a joint's name, ``x``, ``roll``, ``gripper``.
        unit: of ``scale`` and ``offset``: rad, m, rad/s, N m, 1/s^2 (a stiffness), 1 (a damping ratio), opening.
        frame: joint; base (the robot's), world or tcp; or gripper.
        reference: ``absolute``; or what a relative action adds to: ``measured`` or ``commanded``.
        scale, offset: the commanded value (or displacement) is offset + scale * action.
    """

    name: str
    unit: str
    frame: str
    reference: str
    scale: float
    offset: float = 0.0

    @property
    def range(self) -> tuple[float, float]:
        """Commanded value or displacement at -1 and at +1."""
        return self.offset - self.scale, self.offset + self.scale


@dataclass(frozen=True, kw_only=True)
class ActionCard:
    """All dimensions of one controller on one robot.

    Attributes:
        realised: share of a relative +1 command that the arm has covered one control step later, measured at rest;
            20-40 % is normal for a position servo at 20 Hz. None until measured.
        hold_drift: how far the TCP moves per second [m/s] under an action that asks for nothing. None until measured.
        notes: what the robot cannot do, in words.
    """

    controller: str
    robot: str
    dims: tuple[ActionDim, ...]
    when: str = "once per control step"
    realised: float | None = None
    hold_drift: float | None = None
    notes: str = ""

    @property
    def size(self) -> int:
        return len(self.dims)

    @property
    def moving(self) -> tuple[int, ...]:
        """Numbers of the dimensions that move the arm by an amount relative to where it is or was told to be."""
        return tuple(i for i, d in enumerate(self.dims) if d.reference != "absolute" and d.frame != "gripper")

    @property
    def grippers(self) -> tuple[int, ...]:
        """Numbers of the dimensions that open and close a gripper."""
        return tuple(i for i, d in enumerate(self.dims) if d.frame == "gripper")

    @property
    def turns(self) -> bool:
        """Whether an action can say how the tool is oriented."""
        names = {d.name.rpartition("/")[2] for d in self.dims}
        return "x" not in names or "rx" in names

    def summary(self) -> str:
        """One paragraph: what was measured, and what the robot cannot do."""
        words = [f"{self.controller} on {self.robot}: {self.size} dimensions, acts {self.when}."]
        if self.realised is not None:
            words.append(f"One control step after +1 the arm has covered {100 * self.realised:.0f} % of it.")
        if self.hold_drift is not None:
            words.append(f"Asked to hold, the TCP drifts {1000 * self.hold_drift:.1f} mm/s.")
        return " ".join([*words, self.notes]).strip()

    def table(self) -> str:
        """The card as a Markdown table."""
        head = "| # | name | unit | frame | relative to | at -1 | at +1 |\n|---|---|---|---|---|---|---|\n"
        rows = [
            f"| {i} | {d.name} | {d.unit} | {d.frame} | {d.reference} | {d.range[0]:.4g} | {d.range[1]:.4g} |"
            for i, d in enumerate(self.dims)
        ]
        return head + "\n".join(rows)
