"""CarryBox-v1."""

from __future__ import annotations

from manikin.tasks.humanoids.transport_box import TransportBox

__all__ = ["CarryBox"]


class CarryBox(TransportBox):
    """Carry a box between two hands from the table on the right to the one on the left, with H1.

    Randomization: the box's place, uniform in a rectangle on the right table, and its turn. The robot always begins the
    same, between the tables, its arms spread.
    Success: as for TransportBox: the box stands on the left table, and the hands hold it no more.

    It is TransportBox with another robot, with its box, starts, reward and time; ManiSkill3 has no such task of H1. H1
    is 0.22 m taller, so the tables are 0.85 m high. Its hands are of one command each and stay open; their thumbs lie
    over the box's upper edges. It has no camera in its head.
    """

    id = "CarryBox-v1"
    robots = ("h1_upper_body",)
    robot_needs = ("torso", "h1_hand_left", "h1_hand_right", "gripper")
    stand = (-0.1, 0.0, 0.975)
    table = (0.829028571, 0.414514286, 0.425)
    seen = ((1.35, 0.0, 1.95), (0.0, 0.0, 1.05))
    view = ((1.6, -1.0, 2.0), (0.0, 0.0, 1.05))
    tcp_at = (0.042, 0.01, 0.13)
    grip = (0.06, 0.115)
    press_s = 0.3
