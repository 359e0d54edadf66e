"""A policy on a robot: observe, ask the policy, limit, send, wait; and stop safely, whatever happens."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from manikin.control.joint import JointController
from manikin.deploy.clock import Clock, WallClock
from manikin.deploy.interface import RobotInterface
from manikin.deploy.seen import RobotView
from manikin.deploy.units import JointUnits
from manikin.env.env import Env
from manikin.errors import ConfigError, RobotError
from manikin.moved import old_names
from manikin.policy.api import Policy
from manikin.policy.chunk import ChunkPolicy

__all__ = ["RobotRun", "Safety", "run_on_robot"]


@dataclass(frozen=True, kw_only=True)
class Safety:
    """Limits between a policy and the motors.

    Attributes:
        margin: commands stay so far inside the joints' limits [rad].
        step: a command changes by at most so much per control step [rad].
        lead: an arm joint is told to go at most so far from where it is [rad]; what it pushes against then gives way.
        watchdog: the run is stopped if an observation, or an answer of the policy, takes longer than this [s].
        approach: the arm moves to its rest pose in this time before the policy acts [s]; 0 begins where it is.

    Raises:
        ConfigError: a number that is negative, or no time at all.
    """

    margin: float = 0.0
    step: float = 0.25
    lead: float = 0.5
    watchdog: float = 0.5
    approach: float = 0.0

    def __post_init__(self) -> None:
        for name, value in dataclasses.asdict(self).items():
            least = "0 or more" if name in ("margin", "approach") else "positive"
            if not (value >= 0 if least == "0 or more" else value > 0):
                raise ConfigError(f"{name} of Safety must be {least}, got {value}")


@dataclass(kw_only=True)
class RobotRun:
    """What a run on a robot was like.

    Attributes:
        steps: control steps. seconds: that they took.
        late: steps that began more than half a period after their time.
        repeated: pictures that were the same as in the step before, bit for bit: the camera had no new one.
        limited: steps in which :class:`Safety` changed a command.
        thinking: of each step, from its beginning until its command was sent [s].
        ended: why: ``steps``, ``stopped`` or the name of an error.
        success: what a simulated robot says at the end; None of a real one.
    """

    steps: int = 0
    seconds: float = 0.0
    late: int = 0
    repeated: int = 0
    limited: int = 0
    thinking: list[float] = dataclasses.field(default_factory=list)
    ended: str = "steps"
    success: bool | None = None

    def summary(self) -> str:
        """One line for people."""
        slow = f", thought {1e3 * float(np.quantile(self.thinking, 0.95)):.0f} ms (95 %)" if self.thinking else ""
        rate = f"{self.steps / self.seconds:.1f} Hz" if self.seconds else "0 Hz"
        end = "" if self.success is None else f", success {self.success}"
        return (
            f"{self.steps} steps at {rate}{slow}; {self.late} late, {self.repeated} repeated pictures, "
            f"{self.limited} limited; ended: {self.ended}{end}"
        )


@dataclass
class _Measured:
    """A reading for the controller, one row."""

    qpos: Tensor
    ctrl: Tensor

    @property
    def qvel(self) -> Tensor:
        raise RobotError("this controller needs joint velocities, which the robot does not measure")

    @property
    def tcp_pose(self) -> Tensor:
        raise RobotError("this controller needs the tool's pose, which the robot does not measure")


def run_on_robot(
    policy: Policy,
    robot: RobotInterface,
    twin: Env,
    *,
    steps: int,
    clock: Clock | None = None,
    safety: Safety | None = None,
    units: JointUnits | None = None,
    cameras: Mapping[str, str] | None = None,
    stop: Callable[[], bool] = lambda: False,
    on_step: Callable[[int, Any, Tensor], None] | None = None,
) -> RobotRun:
    """Let a policy drive a robot for some control steps.

    The robot's last command at the end, also after an error, is to stay where it is; then it is disconnected, which
    switches the motors of LeRobot's arms off unless their configuration says otherwise.

    Args:
        policy: for one row of ``twin``.
        robot: behind LeRobot's interface, not connected; a :class:`~manikin.deploy.SimulatedRobot` is one.
        twin: the environment that the policy was made for, of one row; it is not stepped. Its controller makes joint
            positions of actions, its task says what the policy observes.
        steps: control steps, at the twin's rate.
        clock: of the loop; that of a simulated robot, else the machine's.
        safety: limits.
        units: of the robot's motors; by default those that a simulated robot has, else degrees.
        cameras: name of a camera of the twin -> that of the robot, where they differ.
        stop: asked before every step whether to end.
        on_step: told of each step: its number, the observation and the action.

    Raises:
        ConfigError: policy, robot and twin do not fit; nothing has moved.
        RobotError: the robot's answer cannot be used, or somebody was slower than the watchdog allows.
        ActionError: the policy's answer has the wrong shape.
    """
    if steps < 1:
        raise ConfigError(f"steps must be 1 or more, got {steps}")
    controller = twin.controller
    if not isinstance(controller, JointController):
        raise ConfigError(
            f"the control {controller.name!r} cannot drive a robot that takes joint positions; train with joint_pos, "
            "joint_delta_pos or joint_target_delta_pos"
        )
    clock = clock or getattr(robot, "clock", None) or WallClock()
    units = units or getattr(robot, "units", None) or JointUnits(twin.robots[0])
    view = RobotView(twin, robot, units, cameras or {})
    loop = _Loop(policy, robot, twin, controller, clock, safety or Safety(), units, view)
    return loop.run(steps, stop, on_step)


class _Loop:
    """One run."""

    def __init__(
        self,
        policy: Policy,
        robot: RobotInterface,
        twin: Env,
        controller: JointController,
        clock: Clock,
        safety: Safety,
        units: JointUnits,
        view: RobotView,
    ) -> None:
        self.robot, self.twin, self.controller, self.clock = robot, twin, controller, clock
        self.safety, self.units, self.view = safety, units, view
        self.policy = ChunkPolicy(policy, 1, controller.card.size)
        self.period = 1.0 / twin.control_hz
        self.arm = len(twin.robots[0].arm.joints)
        low, high = (torch.from_numpy(ends).float() for ends in (units.low, units.high))
        self.low, self.high = low + safety.margin, high - safety.margin
        self.result = RobotRun()

    def run(self, steps: int, stop: Callable[[], bool], on_step: Callable[[int, Any, Tensor], None] | None) -> RobotRun:
        result = self.result
        try:
            self.robot.connect(calibrate=False)
            if not self.robot.is_calibrated:
                raise RobotError("the robot is not calibrated: run lerobot-calibrate for it, then try again")
            self._approach()
            self._steps(steps, stop, on_step)
        except BaseException as error:
            result.ended = type(error).__name__
            self._let_go(error)
            raise
        self._let_go(None)
        return result

    def _steps(self, steps: int, stop: Callable[[], bool], on_step: Callable[[int, Any, Tensor], None] | None) -> None:
        result, period, clock = self.result, self.period, self.clock
        qpos = self._look()
        target = qpos.clone()
        carry = self.controller.start(_Measured(qpos, target))
        self.policy.reset(torch.zeros(1, dtype=torch.int64))
        began = clock.now()
        for k in range(steps):
            if stop():
                result.ended = "stopped"
                break
            due = began + k * period
            clock.wait_until(due)
            started = clock.now()
            result.late += started - due > 0.5 * period
            qpos = self._look()
            result.repeated += self.view.repeated
            observation = self.view.observation(qpos, target)
            action = self._ask(observation)
            wanted, carry = self.controller(carry, _Measured(qpos, target), action)
            limited = self._limited(wanted, qpos, target)
            result.limited += not torch.equal(limited, wanted)
            target = limited
            carry = target[:, : carry.shape[1]]  # what was not sent is not remembered
            self._send(target)
            result.steps += 1
            result.thinking.append(clock.now() - started)
            if on_step is not None:
                on_step(k, observation, action)
        clock.wait_until(began + result.steps * period)
        result.seconds = clock.now() - began
        self._look()
        info = getattr(self.robot, "info", None)
        if isinstance(info, Mapping) and "success" in info:
            result.success = bool(info["success"][0])

    def _look(self) -> Tensor:
        """(1, joints) [rad] where the robot is."""
        before = self.clock.now()
        self.view.take(self.robot.get_observation())
        self._in_time(before, "an observation")
        return self.view.qpos

    def _ask(self, observation: Any) -> Tensor:
        before = self.clock.now()
        action = self.policy.act(observation, [self.twin.task.instruction])[:, 0].float()
        self._in_time(before, "the policy")
        if not torch.isfinite(action).all():
            raise RobotError(f"the policy answered {action.tolist()[0]}, which is not finite")
        return action.clamp(-1.0, 1.0)

    def _in_time(self, before: float, who: str) -> None:
        took = self.clock.now() - before
        if took > self.safety.watchdog:
            raise RobotError(f"{who} took {took:.3f} s, longer than the watchdog allows ({self.safety.watchdog} s)")

    def _limited(self, wanted: Tensor, qpos: Tensor, last: Tensor) -> Tensor:
        safety = self.safety
        out = torch.minimum(torch.maximum(wanted, last - safety.step), last + safety.step)
        # a jaw that holds something stays behind its command, so only the arm's joints are held back
        lead = torch.full_like(qpos, float("inf"))
        lead[:, : self.arm] = safety.lead
        out = torch.minimum(torch.maximum(out, qpos - lead), qpos + lead)
        return torch.minimum(torch.maximum(out, self.low), self.high)

    def _send(self, target: Tensor) -> None:
        self.robot.send_action(self.units.to_motors(target[0].double().numpy()))

    def _approach(self) -> None:
        """Move to the rest pose, jaw open, in a straight line through joint space."""
        count = round(self.safety.approach / self.period)
        if not count:
            return
        here, began, one = self._look(), self.clock.now(), self.twin.robots[0]
        rest = torch.from_numpy(one.model.qpos("rest", gripper=1.0)).float()[None, : here.shape[1]]
        for k in range(count):
            self.clock.wait_until(began + k * self.period)
            self._send(here + (rest - here) * ((k + 1) / count))
        self.clock.wait_until(began + count * self.period)

    def _let_go(self, error: BaseException | None) -> None:
        """Tell the robot to stay, then disconnect it. An error on the way must not hide the first one."""
        troubles: list[BaseException] = []
        steps: list[Callable[[], Any]] = [self.robot.disconnect]
        if self.view.known:
            steps.insert(0, lambda: self._send(self.view.qpos))
        for step in steps:
            try:
                step()
            except Exception as trouble:
                troubles.append(trouble)
        if troubles and error is None:
            raise RobotError(f"the robot was not let go of: {troubles[0]}") from troubles[0]


__getattr__ = old_names(__name__)
