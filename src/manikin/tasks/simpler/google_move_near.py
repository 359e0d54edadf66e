"""GoogleMoveNear-v1."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from manikin import Episode, Grasp, Handles, Quantity, Robot, SceneBuilder, Variable, VariantPart
from manikin.math import norm, quat_rotate
from manikin.props.simpler import BOXES, simpler_prop
from manikin.tasks.simpler.common import COUNTER, LEAST_FORCE, resting_height
from manikin.tasks.simpler.google import GoogleTask, counter, grasping, longest_axis, motion, spoken
from manikin.toolkit import bonus, closeness, constant

__all__ = ["GoogleMoveNear"]

H = 0.5**0.5
_BOTTLE, _ORANGE = "baked_blue_plastic_bottle_v2", "orange"
_PEPSI, _7UP = "baked_opened_pepsi_can_v2", "baked_opened_7up_can_v2"
_COKE, _REDBULL = "baked_opened_coke_can_v2", "baked_opened_redbull_can_v2_alt"
_APPLE, _SPONGE = "baked_apple_v2", "baked_sponge_v2"
_TRIPLETS = (
    (_BOTTLE, _PEPSI, _ORANGE),
    (_7UP, _APPLE, _SPONGE),
    (_COKE, _REDBULL, _APPLE),
    (_SPONGE, _BOTTLE, _7UP),
    (_ORANGE, _PEPSI, _REDBULL),
)
_PATTERNS = (((-0.33, 0.04), (-0.33, 0.34), (-0.13, 0.19)), ((-0.13, 0.04), (-0.33, 0.19), (-0.13, 0.34)))  # [m]
_PAIRS = ((0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1))  # number of what is moved, of what it is moved to
_TURNS = {_BOTTLE: (0.5, 0.5, 0.5, 0.5), _ORANGE: (H, 0.0, 0.0, H), _SPONGE: (H, 0.0, 0.0, H), _APPLE: (1.0, 0, 0, 0)}
_STANDING = (H, H, 0.0, 0.0)
_GAP, _CARRIED = 0.05, 0.06  # [m] the expert leaves beyond both objects' sizes, and lifts
_CLEAR = 1.06  # [m] height of the expert's tool on its way; the wrist does not point down much higher
_LIGHT = 200.0  # [kg/m^3] of apple and orange, which weigh four times as much in other tasks


@dataclass
class NearHandles(Handles):
    """What the scene consists of, and ``h`` in the methods below."""

    robot: Robot
    things: tuple[VariantPart, ...]
    grasps: tuple[Grasp, ...]
    triplet: Variable
    pair: Variable  # number of source and target among the six
    at: Variable  # (3, 3) [m] origins, once they had settled
    com_at: Variable  # (3, 3) [m] centres of mass likewise
    half: Variable  # (3, 3) [m] half their boxes, turned as they lay


class GoogleMoveNear(GoogleTask):
    """Move one of three objects near another one, as in SIMPLER's evaluation of the Google Robot.

    Randomization: one of 60 trials: five triplets of objects, two patterns of places, six pairs of what is moved and
    where to. With ``trials="grid"`` the episode's seed is the number of the trial.
    Success: at the last step the source has moved by more than 0.03 m and more than the others, is near the target
    (within both objects' sizes and 0.10 m) and closest to it, and nothing has fallen.

    After SIMPLER (Li et al. 2024), ``MoveNearGoogleBakedTexInScene``: 80 steps at 3 Hz. Apple and orange weigh a
    quarter of what they weigh elsewhere, as there.
    """

    id = "GoogleMoveNear-v1"
    horizon_s = 80 / 3
    settle_s = 0.4
    instruction = "move one object near another"
    trial_count = 60
    photograph = "google_move_near_real_eval_1.png"
    drawn = ("robot", "object0", "object1", "object2")
    reward_max = 3.0
    observations = {
        "tcp_pose": Quantity("m, quaternion wxyz", "world"),
        "source_pose": Quantity("m, quaternion wxyz", "world", "of what is moved"),
        "target_pose": Quantity("m, quaternion wxyz", "world", "of what it is moved to"),
        "tcp_to_source": Quantity("m", "world"),
    }
    reward_terms = {
        "reach": "1 - tanh(5 d), d from TCP to the source",
        "near": "1 - tanh(5 d), d from source to target",
        "success": "what is missing to 3, in success",
    }

    @dataclass(frozen=True)
    class Config(GoogleTask.Config):
        third: bool = True  # the third object is there; the original's variant without distractors leaves it out

    def scene(self, b: SceneBuilder) -> NearHandles:
        counter(b, self.lights[self.config.light])
        robot = self.stand(b, (0.35, 0.21), -0.09)
        things = []
        for k in range(3):
            names = [triplet[k] for triplet in _TRIPLETS]
            props = [simpler_prop(n, density=_LIGHT if n in (_APPLE, _ORANGE) else None) for n in names]
            things.append(b.mesh(f"object{k}", choice=props, draw=False))
        turns = [[_TURNS.get(name, _STANDING) for name in triplet] for triplet in _TRIPLETS]
        self._turns = torch.tensor(turns)
        self._heights = torch.tensor(
            [[resting_height(simpler_prop(n), _TURNS.get(n, _STANDING)) for n in triplet] for triplet in _TRIPLETS]
        )
        self._boxes = torch.tensor([[BOXES[name] for name in triplet] for triplet in _TRIPLETS])
        self._patterns, self._pairs = torch.tensor(_PATTERNS), torch.tensor(_PAIRS)
        return NearHandles(
            robot=robot,
            things=tuple(things),
            grasps=tuple(b.grasp(robot, thing, min_force=LEAST_FORCE, max_angle=80.0) for thing in things),
            triplet=b.variable("triplet"),
            pair=b.variable("pair"),
            at=b.variable("at", (3, 3)),
            com_at=b.variable("com_at", (3, 3)),
            half=b.variable("half", (3, 3)),
        )

    def start(self, h: NearHandles, ep: Episode) -> None:
        h.robot.set_qpos(h.robot.keyframe().expand(h.n, -1))
        number = ep.trial(self.trial_count, self.config.trials)
        triplet, pattern, pair = number // 12, number % 12 // 6, number % 6
        h.triplet.set(triplet.float())
        h.pair.set(pair.float())
        third = 3 - self._pairs[pair].sum(1)
        for k, thing in enumerate(h.things):
            there = torch.ones_like(third, dtype=torch.bool) if self.config.third else third != k
            thing.set_choice(triplet, there)
            height = COUNTER + self._heights[triplet, k]
            thing.set_pose(torch.cat([self._patterns[pattern, k], height[:, None]], 1), self._turns[triplet, k])

    def settled(self, h: NearHandles) -> None:
        boxes = self._boxes[h.triplet.value.long()]
        h.at.set(torch.stack([thing.pos for thing in h.things], 1))
        h.com_at.set(torch.stack([thing.com for thing in h.things], 1))
        h.half.set(torch.stack([quat_rotate(thing.quat, boxes[:, k]) for k, thing in enumerate(h.things)], 1))

    def instructions(self, h: NearHandles) -> list[str]:
        out = []
        for triplet, pair in zip(h.triplet.value.long().tolist(), h.pair.value.long().tolist(), strict=True):
            source, target = (spoken(_TRIPLETS[triplet][k]) for k in _PAIRS[pair])
            out.append(f"move {source} near {target}")
        return out

    def roles(self, h: NearHandles) -> tuple[Tensor, Tensor, Tensor]:
        """(n,) each: numbers of source, target and the third object."""
        pair = self._pairs[h.pair.value.long()]
        return pair[:, 0], pair[:, 1], 3 - pair.sum(1)

    def evaluate(self, h: NearHandles) -> dict[str, Tensor]:
        source, target, third = self.roles(h)
        origin = torch.stack([thing.pos for thing in h.things], 1)
        com = torch.stack([thing.com for thing in h.things], 1)
        s, t = _pick(com, source), _pick(com, target)
        other = _pick(origin, third)
        moved_source = norm((s - _pick(h.com_at.value, source))[:, :2])
        moved_target = norm((t - _pick(h.com_at.value, target))[:, :2])
        moved_third = norm((other - _pick(h.at.value, third))[:, :2])
        there = torch.tensor(self.config.third)
        moved_third = torch.where(there, moved_third, torch.zeros_like(moved_third))
        most = torch.maximum(moved_target, moved_third)
        sizes = norm(_pick(h.half.value, source)[:, :2]) + norm(_pick(h.half.value, target)[:, :2])
        to_target, to_third = norm((s - t)[:, :2]), norm((s - other)[:, :2])
        fell = (s[:, 2] - _pick(h.com_at.value, source)[:, 2] <= -0.15) | (
            t[:, 2] - _pick(h.com_at.value, target)[:, 2] <= -0.15
        )
        keeps = ~fell & ((other[:, 2] - _pick(h.at.value, third)[:, 2] > -0.02) | ~there)
        correct = (moved_source > 0.03) & (moved_source > most)
        near = to_target < sizes + 0.10
        closest = (to_target < to_third + 0.01) | ~there
        return {
            "success": keeps & correct & near & closest,
            "all_obj_keep_height": keeps,
            "moved_correct_obj": correct,
            "moved_wrong_obj": (most > 0.03) & (most > moved_source),
            "near_tgt_obj": near,
            "is_closest_to_tgt": closest,
        }

    def observe(self, h: NearHandles) -> dict[str, dict[str, Tensor]]:
        source, target, _ = self.roles(h)
        poses = torch.stack([thing.pose for thing in h.things], 1)
        at = _pick(poses, source)
        return {
            "policy": {"tcp_pose": h.robot.tcp_pose},
            "privileged": {
                "source_pose": at,
                "target_pose": _pick(poses, target),
                "tcp_to_source": at[:, :3] - h.robot.tcp_pos,
            },
        }

    def reward(self, h: NearHandles, ev: dict[str, Tensor], action: Tensor) -> dict[str, Tensor]:
        source, target, _ = self.roles(h)
        com = torch.stack([thing.com for thing in h.things], 1)
        s, t = _pick(com, source), _pick(com, target)
        terms = {"reach": closeness(norm(s - h.robot.tcp_pos), 5.0), "near": closeness(norm((s - t)[:, :2]), 5.0)}
        return bonus(terms, ev["success"], self.reward_max)

    def expert(self, h: NearHandles) -> Tensor:
        """Grasp the source, lift it a little, carry it straight towards the target and lower it. It stays held: what is
        round would roll away."""
        robot = h.robot
        source, target, _ = self.roles(h)
        com = torch.stack([thing.com for thing in h.things], 1)
        s, t, begun = _pick(com, source), _pick(com, target), _pick(h.com_at.value, source)
        axes, halves = zip(*(longest_axis(thing) for thing in h.things), strict=True)
        middle = torch.stack([thing.pos + quat_rotate(thing.quat, thing.centre) for thing in h.things], 1)
        grasped = _pick(torch.stack([grasp.value for grasp in h.grasps], 1)[..., None], source)[:, 0]
        half = _pick(torch.stack(halves, 1)[..., None], source)[:, 0]
        goal, turn, closes = grasping(
            robot, _pick(middle, source), _pick(torch.stack(axes, 1), source), half, grasped, clear=_CLEAR
        )
        sizes = norm(_pick(h.half.value, source)[:, :2]) + norm(_pick(h.half.value, target)[:, :2])
        back = (begun - t)[:, :2]
        place = t[:, :2] + back * ((sizes + _GAP) / norm(back).clamp_min(1e-6))[:, None]
        away, rise = place - s[:, :2], s[:, 2] - begun[:, 2]
        there = norm(away) < 0.025
        # held: up first, then across, then down
        across = torch.where((rise > 0.03)[:, None] & ~there[:, None], away, torch.zeros_like(away))
        height = torch.where(there, constant(0.005), constant(_CARRIED)) - rise
        carried = robot.tcp_pos + torch.cat([across, height[:, None].clamp(-0.05, 0.06)], 1)
        goal = torch.where(grasped[:, None], carried, goal)
        return motion(robot, goal, turn, torch.where(closes, -constant(1.0), constant(1.0)))


def _pick(each: Tensor, number: Tensor) -> Tensor:
    """(n, k) of (n, 3, k) the one of each row."""
    return each.gather(1, number[:, None, None].expand(-1, 1, each.shape[2]))[:, 0]
