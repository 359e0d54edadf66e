"""The map of a home: what the session says of the row in view, what is served, and what the page draws."""

from __future__ import annotations

import io
import json
import math
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import torch

from browser import Browser, needs_browser, served
from manikin.env.make import make
from manikin.homes import FreeSpace
from manikin.math import quat_to_yaw, wrap_to_pi
from manikin.policy.expert import ExpertPolicy
from manikin.render import make_renderer
from manikin.tasks.home.doors.inside import one_front
from manikin.tasks.home.scene import spots
from manikin.view.hold import HoldPolicy
from manikin.view.picture import Painter
from manikin.view.session import Session
from manikin.view.stream import StreamViewer

pytest.importorskip("scipy", reason="maps of apartments need pip install 'manikin[meshes]'")

FORWARD, TURN = 11, 12  # of Fetch's action
EAST, NORTH = 0.0, math.pi / 2  # [rad]


class Compass(HoldPolicy):
    """Turns to a heading, then drives ahead, the arm as it is."""

    heading = EAST

    def act(self, observation: Any, instruction: Any) -> torch.Tensor:
        action = torch.zeros(self.env.num_envs, 1, 13)
        for part in self.env.parts():
            off = wrap_to_pi(self.heading - quat_to_yaw(part.env.h.robot.root_pose[:, 3:]))[part.rows]
            action[part.places, 0, TURN] = (2 * off).clamp(-1, 1)
            action[part.places, 0, FORWARD] = (off.abs() < 0.05).float()
        return action


@contextmanager
def session(maker: Any = HoldPolicy, num_envs: int = 2, task: str = "HomeNavigate-v1") -> Iterator[Session]:
    env = make(task, num_envs, autoreset="disabled")
    try:
        yield Session(env, maker, seed=0, playing=False)
    finally:
        env.close()


@pytest.fixture(scope="module")
def homes() -> Iterator[Session]:
    """Two rows, in apartments 0 and 1, that drive where they are told."""
    with session(Compass) as s:
        yield s


@pytest.fixture(scope="module")
def viewer(homes: Session) -> Iterator[StreamViewer]:
    with served(StreamViewer(homes, Painter(homes, make_renderer("rays"), width=64, height=48))) as one:
        yield one


# ---- what the session says -------------------------------------------------------------------------------------------


def test_a_task_without_a_home_has_no_map() -> None:
    with session(task="PickCube-v2", num_envs=1) as s:
        assert s.map is None and "map" not in s.status


def test_the_map_follows_the_row_that_is_shown() -> None:
    with session() as s:
        seen = []
        for row in (0, 1):
            s.ask("row", value=row)
            s.advance()
            said = s.status["map"]
            seen.append(said)
            one, at = s.env.part(row)
            pose = one.h.robot.root_pose[at : at + 1]
            assert said["home"] == f"apartment{row}" == one.task.layout
            assert said["robots"] == [
                pytest.approx([*pose[0, :2].tolist(), float(quat_to_yaw(pose[:, 3:])[0])], abs=1e-3)
            ]
            goal = one.task.goal(one.h)[at]
            assert said["marks"] == [{"name": "goal", "at": pytest.approx(goal[:2].tolist(), abs=0.006)}]
            low, high = np.array(one.h.home.apartment.low), np.array(one.h.home.apartment.high)
            assert said["corner"] == pytest.approx([low[0] - 0.2, high[1] + 0.2])
        assert seen[0]["plan"] != seen[1]["plan"] and s.map is not None
        assert s.map.svg(seen[0]["plan"]) != s.map.svg(seen[1]["plan"])
        assert json.loads(json.dumps(seen)) == seen
        s.ask("row", value=0)
        s.advance()
        assert s.status["map"]["plan"] == seen[0]["plan"]  # drawn once


@pytest.mark.parametrize(("heading", "axis"), [(EAST, 0), (NORTH, 1)])
def test_the_trail_leads_where_the_robot_has_driven_and_ends_with_the_episode(
    heading: float, axis: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Compass, "heading", heading)
    with session(Compass, num_envs=1) as s:
        begun = s.status["map"]["robots"][0][:2]
        assert s.status["map"]["trail"] == [pytest.approx(begun, abs=0.006)]
        for _ in range(50):
            s.step()
        robot, trail = s.status["map"]["robots"][0], np.array(s.status["map"]["trail"])
        gone = trail[-1] - trail[0]
        assert gone[axis] > 0.3 and abs(gone[1 - axis]) < 0.1
        assert trail[-1] == pytest.approx(robot[:2], abs=0.06) and robot[2] == pytest.approx(heading, abs=0.05)
        assert (np.linalg.norm(np.diff(trail, axis=0), axis=1) > 0.03).all()
        s.ask("reset", seed=8)
        s.advance()
        assert len(s.status["map"]["trail"]) == 1


def test_without_an_expert_the_way_is_the_shortest_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """As long as the map of the task, which is for a somewhat larger robot, says that it is to the place next to it."""
    with session(num_envs=1) as s:
        said = s.status["map"]
        way, (x, y, _), goal = np.array(said["way"]), said["robots"][0], np.array(said["marks"][0]["at"])
        assert not said["planned"] and way[0] == pytest.approx([x, y], abs=0.006)
        length = np.linalg.norm(np.diff(way, axis=0), axis=1).sum()
        space = spots("apartment0").space
        assert length <= space.distances(way[:1], space.closest(goal[None]))[0] + 0.05
        assert length >= np.linalg.norm(way[-1] - way[0]) and np.linalg.norm(way[-1] - goal) < 1.0
        monkeypatch.setattr(FreeSpace, "path", None)  # what has been found holds as long as nothing has moved
        s.publish()
        assert s.status["map"]["way"] == said["way"]


def test_the_experts_way_is_the_one_that_it_drives() -> None:
    with session(ExpertPolicy, num_envs=1) as s:
        assert s.status["map"]["way"] == []  # it has not been asked yet
        s.step()
        said = s.status["map"]
        one, at = s.env.part(0)
        stand = spots("apartment0").stands[int(one.h.target.value[at])]
        assert said["planned"] and said["way"][-1] == pytest.approx(stand[:2].tolist(), abs=0.006)
        assert said["way"][0] == pytest.approx(said["robots"][0][:2], abs=0.006)
        driven = [said["way"][1:]]
        while s.status["word"] == "running":
            s.step()
            driven.append(s.status["map"]["way"][1:])
        assert s.status["word"] == "success"
        counts = [len(places) for places in driven]
        assert counts == sorted(counts, reverse=True) and counts[-1] == 0
        for places in driven:  # what is left of the way is the end of it
            assert places == driven[0][len(driven[0]) - len(places) :]


def test_subtasks_mark_what_they_are_about() -> None:
    with session(num_envs=1, task="SetTable-v1") as s:
        marks = {mark["name"]: mark["at"] for mark in s.status["map"]["marks"]}
        one, at = s.env.part(0)
        h = one.h
        assert list(marks) == ["target", "object", "goal"]
        assert marks["object"] == pytest.approx(h.things[0].pos[at, :2].tolist(), abs=0.006)
        assert marks["goal"] == pytest.approx(h.goal.value[at, 0, :2].tolist(), abs=0.006)
        handle = one_front("apartment0", "drawer").handle  # it begins at the drawer, which is shut
        assert marks["target"] == pytest.approx(handle[:2], abs=0.006)
        assert s.status["instruction"] == "navigate to drawer"


@pytest.mark.parametrize(
    ("task", "names"),
    [
        ("HomePick-v1", ["object"]),
        ("HomePlace-v1", ["goal", "object"]),
        ("HomeClose-v1", ["handle"]),
        ("KitchenOpenCabinet-v1", ["handle"]),
    ],
)
def test_what_is_marked_is_in_reach_of_a_robot_that_starts_near_it(task: str, names: list[str]) -> None:
    """Places that are marked are within 2.5 m of where these tasks begin, and in the home."""
    with session(num_envs=1, task=task) as s:
        said = s.status["map"]
        assert [mark["name"] for mark in said["marks"]] == names
        size = np.array(said["size"]) / said["scale"]
        for mark in said["marks"]:
            assert 0.05 < np.linalg.norm(np.subtract(mark["at"], said["robots"][0][:2])) < 2.5
            right, down = np.subtract(mark["at"], said["corner"]) * (1, -1)
            assert 0 < right < size[0] and 0 < down < size[1]


def test_looking_at_the_map_changes_no_bit() -> None:
    hashes = []
    for shown in (True, False):
        with session(ExpertPolicy) as s:
            if not shown:
                s.map = None
            for _ in range(5):
                s.step()
            assert ("map" in s.status) == shown
            hashes.append(s.env.state_hash().tolist())
    assert hashes[0] == hashes[1]


# ---- what is served --------------------------------------------------------------------------------------------------


def get(one: StreamViewer, path: str) -> tuple[int, bytes, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{one.port}{path}", timeout=60) as answer:
            return answer.status, answer.read(), answer.headers["Content-Type"]
    except urllib.error.HTTPError as error:
        return error.code, error.read(), error.headers["Content-Type"]


def test_the_map_comes_with_the_news_and_its_plan_once(viewer: StreamViewer) -> None:
    code, body, _ = get(viewer, "/status?after=-1")
    said = json.loads(body)["map"]
    assert code == 200 and said["home"].startswith("apartment") and len(said["robots"][0]) == 3
    code, body, kind = get(viewer, f"/plan.svg?number={said['plan']}")
    assert (code, kind) == (200, "image/svg+xml") and body.startswith(b"<svg") and b"sofa" in body
    for nonsense in ("", "?number=", "?number=99", "?number=-1", "?number=x", f"?number={'9' * 30}"):
        assert get(viewer, f"/plan.svg{nonsense}")[0] == 404


# ---- what the page draws ---------------------------------------------------------------------------------------------

ROBOT = "document.querySelector('#over .robot')"
SHOWN = f"{ROBOT} && document.getElementById('plan').naturalWidth > 0"
TURNED = f"{ROBOT}.getAttribute('transform').match(/-?[\\d.]+(e-\\d+)?/g).map(Number)"


def pixel(page: Browser, u: float, v: float) -> list[int]:
    """Colour of what the browser shows at a place of the plan [pixels of the plan]."""
    av = pytest.importorskip("av")
    box = "document.getElementById('plan').getBoundingClientRect()"
    x, y, scale = page.evaluate(f"(r => [r.x, r.y, r.width / $('over').viewBox.baseVal.width])({box})")
    with av.open(io.BytesIO(page.screenshot())) as container:
        image = next(container.decode(video=0)).to_ndarray(format="rgb24")
    return image[int(y + scale * v), int(x + scale * u)].tolist()


@needs_browser
def test_the_page_shows_the_robot_where_it_is_and_no_mirror_image(
    homes: Session, viewer: StreamViewer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """East is to the right and north is up, as from the camera above: it drives east, then north."""
    with Browser(size=(1200, 900)) as page:
        page.goto(viewer.url)
        page.wait_for(SHOWN)
        for heading, right, up in ((EAST, 1, 0), (NORTH, 0, 1)):
            homes.ask("reset", seed=0)
            page.wait_for("last.step === 0 && last.map.trail.length === 1")
            before = page.evaluate("last.map.robots[0]")
            u0, v0, turn = page.evaluate(TURNED)
            # apartment 0 begins at x = -4.05 and ends at y = 5.08, with 0.2 m around it and 50 pixels a metre
            assert (u0, v0) == pytest.approx((50 * (before[0] + 4.25), 50 * (5.28 - before[1])), abs=0.6)
            assert turn == pytest.approx(-math.degrees(before[2]), abs=0.1)  # pictures turn clockwise
            monkeypatch.setattr(Compass, "heading", heading)
            for _ in range(50):
                homes.ask("step")
            page.wait_for("last.step === 50")
            u1, v1, turn = page.evaluate(TURNED)
            gone = np.array([u1 - u0, v0 - v1])
            assert gone @ (right, up) > 15 and abs(gone @ (up, right)) < 5  # 0.3 m and 0.1 m
            assert turn == pytest.approx(-math.degrees(heading), abs=3)
            assert np.abs(np.array(pixel(page, u1, v1)) - (0x20, 0x60, 0xB4)).max() < 40
            trail = page.evaluate("document.querySelector('#over .trail').getAttribute('points')")
            points = np.array([list(map(float, pair.split(","))) for pair in trail.split()])
            assert points[0] == pytest.approx((u0, v0), abs=0.6) and points[-1] == pytest.approx((u1, v1), abs=0.6)
        first = page.evaluate("document.getElementById('plan').src")
        page.click("#rows button:nth-child(2)")
        page.wait_for("last.map.home === 'apartment1'")
        page.wait_for(SHOWN)
        assert page.evaluate("document.getElementById('plan').src") != first
        page.click("#map summary")
        page.wait_for("!document.querySelector('#map details').open")
        assert page.evaluate("document.getElementById('map').getBoundingClientRect().height") < 60
        page.click("#map summary")
        page.wait_for("document.querySelector('#map details').open")
        assert page.evaluate("document.getElementById('bound').textContent") == "drive to the marked place and face it"
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert len([url for url in page.requested() if "/plan.svg" in url]) == 2  # one for each apartment
        assert not page.complaints()


@needs_browser
def test_a_task_without_a_home_shows_no_panel() -> None:
    with session(task="PickCube-v2", num_envs=1) as s:
        painter = Painter(s, make_renderer("rays"), width=64, height=48)
        with served(StreamViewer(s, painter)) as one, Browser(size=(1200, 800)) as page:
            assert get(one, "/plan.svg?number=0")[0] == 404
            page.goto(one.url)
            page.wait_for("last !== null && last.task === 'PickCube-v2'")
            assert page.evaluate("document.getElementById('map').getBoundingClientRect().height") == 0
            assert not any("/plan.svg" in url for url in page.requested())
            assert not page.complaints()
