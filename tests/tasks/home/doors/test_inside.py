"""Places in an open drawer and in the open fridge: where they are, and where the robot stands before them."""

from __future__ import annotations

import numpy as np
import pytest

from manikin.errors import UnknownNameError
from manikin.homes import apartment
from manikin.tasks.home.doors.inside import REACH, inside, one_front
from manikin.tasks.home.predicates import COMMON
from manikin.tasks.home.rules import ARTICULATIONS
from manikin.tasks.home.scene import LAYOUTS

pytest.importorskip("scipy", reason="maps of apartments need pip install 'manikin[meshes]'")


@pytest.mark.parametrize("layout", LAYOUTS[:2])
def test_there_is_room_before_all_that_is_opened(layout: str) -> None:
    assert set(inside(layout).names) == {"handle/drawer", "handle/fridge"}
    for kind in ("drawer", "fridge"):
        assert set(inside(layout, kind).names) == {kind, f"handle/{kind}"}


def test_places_in_the_fridge_are_on_its_middle_shelf_and_in_reach_from_the_front() -> None:
    """The stand is behind where the arm reaches from, and faces the place and, within 0.4 rad, the fridge."""
    found, home, yaw = inside("apartment1", "fridge"), apartment(1), one_front("apartment1", "fridge").yaw
    middle, (_, box) = home.middle("fridge/middle"), home.receptacle("fridge/middle")
    for name, point, stands in zip(found.names, found.points, found.stands, strict=True):
        if name != "fridge":
            continue
        assert point[2] == pytest.approx(middle[2] - box.half[2], abs=1e-5)
        assert (np.abs(point[:2] - middle[:2]) < np.array(box.half[1::-1])).all()
        to = point[:2] - stands[:, :2]
        assert (np.linalg.norm(to, axis=1) > REACH).all()
        assert np.abs(np.angle(np.exp(1j * (np.arctan2(to[:, 1], to[:, 0]) - stands[:, 2])))).max() < 1e-3
        assert np.abs(np.angle(np.exp(1j * (stands[:, 2] - yaw - np.pi)))).max() < 0.4


@pytest.mark.parametrize("layout", ["apartment2", "apartment6"])  # in which the base has to stand far off
def test_where_the_robot_stands_before_the_fridge_navigate_is_done(layout: str) -> None:
    """Also 5 cm farther off, which is what a base ends beside where it was sent."""
    found = inside(layout, "fridge")
    away = [
        np.linalg.norm(stands[:, :2] - point[:2], axis=1)
        for name, point, stands in zip(found.names, found.points, found.stands, strict=True)
        if name == "fridge"
    ]
    assert len(away) == 4
    assert np.concatenate(away).max() + 0.05 < COMMON.near


@pytest.mark.parametrize("opened", ["", "drawer"])
def test_stands_before_a_handle_are_in_the_box_of_the_rules(opened: str) -> None:
    found, one = inside("apartment1", opened), one_front("apartment1", "drawer")
    k = found.names.index("handle/drawer")
    out = np.array([np.cos(one.yaw), np.sin(one.yaw)])
    frame = np.array(one.frame) + (0.45 if opened else 0.0) * out
    away = found.stands[k][:, :2] - frame
    (near, far), (right, left) = ARTICULATIONS["drawer"].front
    forth, aside = away @ out, away @ np.array([-out[1], out[0]])
    assert ((forth > near) & (forth < far) & (aside > right) & (aside < left)).all()


def test_another_mechanism_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="drawer, fridge"):
        one_front("apartment0", "oven")
