"""view/: the session, films, the page over HTTP and both viewers in a real browser."""

from __future__ import annotations

import http.client
import io
import json
import re
import socket
import struct
import subprocess
import sys
import threading
import time
import zlib
from contextlib import contextmanager
from importlib import import_module

import numpy as np
import pytest
import torch

from browser import SOFTWARE_WEBGL, Browser, chromium, served
from manikin.cli import main as command_line
from manikin.cli.view import ViewOptions
from manikin.cli.view import run as view_command
from manikin.env.make import make
from manikin.errors import ClosedError, ConfigError, UnknownNameError
from manikin.policy.expert import ExpertPolicy
from manikin.policy.random_policy import RandomPolicy
from manikin.render import make_renderer, view_of
from manikin.render.files.video import encode_png
from manikin.view.hold import HoldPolicy
from manikin.view.picture import FREE, Painter, free_camera
from manikin.view.recorder import FilmRecorder
from manikin.view.session import Session
from manikin.view.site import as_json, bound, is_loopback
from manikin.view.stream import StreamViewer

# ---- the session ---------------------------------------------------------------------------------------------------


@contextmanager
def session(num_envs=3, maker=RandomPolicy, task="PickCube-v2", **options):
    env = make(task, num_envs, autoreset="disabled")
    try:
        yield Session(env, maker, **options)
    finally:
        env.close()


def test_session_is_the_environment_it_shows():
    """Its episodes are those of the same seeds and actions elsewhere, also after a reset of one row."""
    with session(seed=5, playing=False) as s:
        s.advance()
        assert s.status["step"] == 0 and not s.status["playing"]
        for _ in range(4):
            s.ask("step")
        s.advance()
        s.ask("row", value=2)
        s.ask("reset", seed=77)
        s.ask("step")
        s.advance()
        assert (s.status["row"], s.status["seed"], s.status["step"]) == (2, 77, 1)
        hashes = s.env.state_hash().tolist()
    env = make("PickCube-v2", 2, autoreset="disabled")
    env.reset(seed=[5, 77])
    policy = RandomPolicy(env)
    policy.reset(torch.arange(2))
    for step in range(5):
        env.step(policy.act(None, [])[:, 0], active=np.array([True, step < 1]))
    assert env.state_hash().tolist() == [hashes[0], hashes[2]]
    env.close()


def test_session_tells_rewards_terms_flags_and_outcomes():
    with session(2, ExpertPolicy, seed=3, playing=False, again=False) as s:
        while s.status["words"] != ["success"] * 2:
            s.step()
            assert s.status["step"] <= s.env.horizon
        status = s.status
        assert json.loads(json.dumps(status)) == status
        assert status["flags"]["success"] and status["flags"]["is_placed"]
        assert set(status["terms"]) == set(s.env.task.reward_terms)
        assert status["reward"] == pytest.approx(sum(status["terms"].values()) / s.env.task.reward_max, rel=1e-5)
        assert [e["step"] for e in status["history"]] == list(range(1, status["step"] + 1))
        assert status["return"] == pytest.approx(sum(e["reward"] for e in status["history"]))
        version = s.version
        s.step()  # nothing runs any more
        assert s.version == version and s.episodes == 2


def test_session_keeps_true_time_and_goes_on_with_the_next_episode(monkeypatch):
    clock = [100.0]
    monkeypatch.setattr("manikin.view.session.time.monotonic", lambda: clock[0])
    with session(1) as s:
        steps = 0
        for _ in range(1000):  # one second by milliseconds
            version = s.version
            s.advance()
            steps += s.version != version
            clock[0] += 0.001
        assert abs(steps - s.env.control_hz) <= 1
        s.ask("speed", value=0.5)
        before = s.status["step"]
        for _ in range(1000):
            s.advance()
            clock[0] += 0.001
        assert abs(s.status["step"] - before - s.env.control_hz / 2) <= 1
        s.ask("speed", value=2.0)
        while s.status["word"] == "running":
            s.advance()
            clock[0] += 0.01
        assert s.status["word"] == "out of time" and s.status["step"] == s.env.horizon
        for _ in range(100):
            s.advance()
            clock[0] += 0.01
        assert s.status["word"] == "running" and s.status["index"] == 1


def test_session_refuses_what_cannot_work():
    with session(2) as s:
        with pytest.raises(UnknownNameError, match="toggle"):
            s.ask("togle")
        for wish, values in (
            ("row", {"value": 2}),
            ("row", {"value": True}),
            ("row", {}),
            ("speed", {"value": 0}),
            ("speed", {"value": float("nan")}),
            ("reset", {"seed": -1}),
            ("reset", {"seed": 1.5}),
            ("reset", {"seeds": 1}),
            ("reset", {"all": "yes"}),
        ):
            with pytest.raises(ConfigError):
                s.ask(wish, **values)
    env = make("PickCube-v2", 1)
    with pytest.raises(ConfigError, match="autoreset"):
        Session(env, RandomPolicy)
    env.close()


HOLD_TASK = {"num_envs": 2, "maker": HoldPolicy, "playing": False}


def test_a_body_is_pushed_as_hard_as_asked_and_the_episode_says_so():
    """A cube on the table: m a = F - friction, so it moves the way of a strong force and not under a weak one."""
    with session(**HOLD_TASK) as s:
        world, (model, _) = s.env.world, s.look()
        mass, steps = float(model.body("cube").mass[0]), 4
        assert "cube" in s.bodies and "robot/link5" in s.bodies and "table" not in s.bodies
        before = s.env.h.cube.pos.clone()
        s.ask("push", body="cube", force=[0.2 * 9.81 * mass, 0, 0], seconds=0.2)
        for _ in range(steps):
            s.ask("step")
        s.advance()
        assert (s.env.h.cube.pos - before).norm(dim=1).max() < 2e-3  # friction holds it
        s.ask("push", body="cube", force=[0, 3 * 9.81 * mass, 0], seconds=0.2)
        s.ask("step")
        s.advance()
        np.testing.assert_allclose(world.read("xfrc_applied")[0, model.body("cube").id, :3], [0, 29.43 * mass, 0], 1e-5)
        for _ in range(steps):
            s.ask("step")
        s.advance()
        assert not world.read("xfrc_applied").any()  # it is over
        moved = s.env.h.cube.pos - before
        assert moved[0, 1] > 0.02 > moved[1].abs().max()  # the other row is left alone
        notes = s.status["interventions"]
        assert [(n["step"], n["body"], n["steps"]) for n in notes] == [(0, "cube", 4), (4, "cube", 4)]
        s.ask("push", body="cube", force=[0, 0, 1], seconds=10)
        s.ask("reset")
        s.ask("step")
        s.advance()
        assert s.status["interventions"] == [] and not world.read("xfrc_applied").any()


def test_an_episode_without_a_push_has_the_same_bits():
    with session(**HOLD_TASK, seed=3) as s, session(**HOLD_TASK, seed=3) as other:
        s.ask("push", body="cube", force=[1, 0, 0], seconds=0.1)
        for each in (s, other):
            for _ in range(3):
                each.ask("step")
            each.advance()
        one, two = (each.env.world.states(np.arange(2)) for each in (s, other))
        assert (one[0] != two[0]).any() and (one[1] == two[1]).all()


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"body": "table", "force": [1, 0, 0], "seconds": 1}, "body that moves 'table'.*cube"),
        ({"body": "cube", "force": [1e6, 0, 0], "seconds": 1}, "three numbers of at most 500 N"),
        ({"body": "cube", "force": [float("nan"), 0, 0], "seconds": 1}, "three numbers"),
        ({"body": "cube", "force": [1, 0, 0], "seconds": 0}, "seconds must be above 0"),
        ({"body": 3, "force": [1, 0, 0], "seconds": 1}, "must be the name of a body"),
    ],
)
def test_pushes_that_cannot_work_are_refused(values, said):
    with session(**HOLD_TASK) as s, pytest.raises((ConfigError, UnknownNameError), match=said):
        s.ask("push", **values)


def test_a_pull_in_the_picture_takes_the_body_that_is_seen_there():
    with session(**HOLD_TASK) as s:
        painter = Painter(s, make_renderer("rays"), width=160, height=120)
        model, data = s.look()
        view = view_of(model, data, painter.people, 160, 120)
        u, v = view.project(data.body("cube").xpos)
        body, force = painter.touched((u + 0.5) / 160, (v + 0.5) / 120, 0.1, 0.0)
        assert body == "cube"
        np.testing.assert_allclose(force, 50 * 0.1 * model.body("cube").mass[0] * view.rotation[:, 0], atol=1e-9)
        assert painter.touched(0.5, -0.2, 0.1, 0.0) is None  # nothing, or nothing that moves
        painter.ask("tiles", value=True)
        assert painter.touched((u + 0.5) / 160, (v + 0.5) / 120, 0.1, 0.0) is None


@pytest.mark.parametrize("control", ["joint_pos", "joint_delta_pos", "ee_delta_pose"])
def test_hold_stays_where_it_is(control):
    env = make("PickCube-v2", 2, autoreset="disabled", control=control)
    env.reset(seed=0)
    policy = HoldPolicy(env)
    policy.reset(torch.arange(2))
    start = env.robot.tcp_pos.clone()
    for _ in range(20):
        env.step(policy.act(None, env.instruction)[:, 0])
    assert (env.robot.tcp_pos - start).norm(dim=1).max() < 0.003
    env.close()


# ---- pictures and films --------------------------------------------------------------------------------------------


def test_free_camera_begins_where_people_look_from_and_moves_as_told():
    with session(1, HoldPolicy) as s:
        model, data = s.look()
        human, free = view_of(model, data, "human_camera", 90, 60), free_camera(model, data, "human_camera")
        same = view_of(model, data, free.spec(), 90, 60)
        assert same.pos == pytest.approx(human.pos, abs=1e-6) and same.rotation == pytest.approx(
            human.rotation, abs=1e-6
        )
        assert pytest.approx(human.K, rel=1e-6) == same.K
        still = {"turn": 0.0, "tilt": 0.0, "zoom": 1.0, "right": 0.0, "up": 0.0}
        for name, axis, sign in (("right", 0, 1), ("up", 1, -1)):  # of the optical frame, y down
            shift = free.moved(**{**still, name: 0.5}).spec()
            reach = 2 * free.distance * np.tan(free.fovy / 2)
            assert np.subtract(shift.pos, human.pos) @ human.rotation[:, axis] == pytest.approx(sign * reach / 2)
        far = free.moved(**{**still, "turn": 0.7, "tilt": 9.0, "zoom": 2.0})
        assert far.distance == pytest.approx(2 * free.distance) and far.tilt == 1.5
        assert np.linalg.norm(np.subtract(far.spec().pos, free.target)) == pytest.approx(far.distance)


def test_painter_shows_rows_cameras_tiles_and_forces():
    with session(3, HoldPolicy, playing=False) as s:
        painter = Painter(s, make_renderer("rays"), width=96, height=72)
        assert painter.cameras[-1] == FREE and painter.camera == "human_camera"
        one, contacts = painter.paint()
        assert one.shape == (72, 96, 3) and contacts[0]["on"] == "cube"
        weight = 9.81 * float(s.env.world.scene.model.body("cube").mass[0])
        assert contacts[0]["newtons"] == pytest.approx(weight, abs=0.02)
        painter.ask("move", turn=0.5)
        assert painter.camera == FREE and (painter.paint()[0] != one).any()
        painter.ask("camera", value="human_camera")
        assert (painter.paint()[0] == one).all()
        painter.ask("forces", value=True)
        assert (painter.paint()[0] != one).any()
        painter.ask("tiles", value=True)
        assert painter.paint()[0].shape == (2 * 54 + 2, 2 * 72 + 2, 3)
        for wish, value in (("camera", "nowhere"), ("forces", 1), ("tiles", None), ("paint", 1)):
            with pytest.raises((UnknownNameError, ConfigError)):
                painter.ask(wish, value=value)
        with pytest.raises(ConfigError, match="turn"):
            painter.ask("move", turn=float("inf"))


@pytest.mark.parametrize("fps", [None, 8.0, 50.0])
def test_film_lasts_as_long_as_the_simulation(tmp_path, fps):
    av = pytest.importorskip("av")
    env = make("PickCube-v2", 2, autoreset="disabled")
    renderer = make_renderer("rays")
    with FilmRecorder(env, tmp_path / "film.mp4", renderer, fps=fps, width=160, height=90) as film:
        wins = film.play(ExpertPolicy(env), seeds=[0, 1], tail_s=0.0)
    steps = int(env.save().extra["elapsed"].max())
    assert wins == 2
    with av.open(str(tmp_path / "film.mp4")) as container:
        pictures = [f.to_ndarray(format="rgb24") for f in container.decode(video=0)]
        rate = float(container.streams.video[0].average_rate)
    assert rate == (fps or env.control_hz) and len(pictures) == film.frames
    assert len(pictures) == int(np.ceil((steps + 1) / env.control_hz * rate - 1e-9))
    assert pictures[0].shape == (90, 2 * 160 + 2, 3)
    tiles = [
        [(p[2:12, x : x + 150].astype(int) @ [-1, 1, 0]).mean() for x in (0, 162)] for p in (pictures[0], pictures[-1])
    ]
    assert max(tiles[1]) > 10  # the caption of a success is green, of the slower row perhaps after the last picture
    assert max(map(abs, tiles[0])) < 5  # films blur colours
    with pytest.raises(ClosedError):
        film.add({})
    env.close()


def for_ever(film, info):
    while True:
        film.add(info)


def test_film_says_what_is_wrong(tmp_path):
    pytest.importorskip("av")
    env = make("PickCube-v2", 1, autoreset="disabled")
    renderer = make_renderer("rays")
    for wrong in ({"rows": [1]}, {"rows": []}, {"fps": 0.0}):
        with pytest.raises(ConfigError):
            FilmRecorder(env, tmp_path / "film.mp4", renderer, **wrong)
    _, info = env.reset(seed=0)
    film = FilmRecorder(env, tmp_path / "film.nonsense", renderer, width=32, height=32)
    with pytest.raises(UnknownNameError, match=r"'\.nonsense'.*\.mp4"):
        for_ever(film, info)
    assert not list(tmp_path.iterdir())
    env.close()


# ---- the page over HTTP --------------------------------------------------------------------------------------------


def unpacked(png: bytes) -> np.ndarray:
    """Pixels of a PNG that this library wrote (filter 1, 8-bit RGB)."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", png[16:24])
    rows = np.frombuffer(zlib.decompress(png[41:-16]), np.uint8).reshape(height, 1 + 3 * width)
    assert (rows[:, 0] == 1).all()
    return rows[:, 1:].reshape(height, width, 3).cumsum(1, dtype=np.uint8)


def decoded(png: bytes) -> np.ndarray:
    """Pixels of any PNG."""
    av = pytest.importorskip("av")
    with av.open(io.BytesIO(png)) as container:
        return next(container.decode(video=0)).to_ndarray(format="rgb24")


@pytest.fixture(scope="module")
def stream():
    with session(3, ExpertPolicy, playing=False) as s:
        painter = Painter(s, make_renderer("rays"), width=120, height=90)
        with served(StreamViewer(s, painter)) as viewer:
            yield viewer


def request(viewer, method, path, body=None, **headers):
    connection = http.client.HTTPConnection("127.0.0.1", viewer.port, timeout=60)
    try:
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        return answer.status, answer.read(), dict(answer.getheaders())
    finally:
        connection.close()


def wish(viewer, body, **headers):
    headers = {"X-Manikin-Token": viewer.token, "Content-Type": "application/json", **headers}
    status, answer, _ = request(viewer, "POST", "/do", body if isinstance(body, bytes) else json.dumps(body), **headers)
    return status, json.loads(answer)


def status_of(viewer, after=-1):
    code, body, _ = request(viewer, "GET", f"/status?after={after}")
    assert code == 200
    return json.loads(body)


def eventually(viewer, condition, seconds=120.0):
    until = time.monotonic() + seconds
    after = -1
    while True:
        status = status_of(viewer, after)
        if condition(status):
            return status
        assert time.monotonic() < until, status
        after = status["picture"]["frame"]


def test_png_in_memory_holds_the_picture():
    image = np.arange(7 * 5 * 3, dtype=np.uint8).reshape(7, 5, 3) * 7
    for level in (1, 9):
        assert (unpacked(encode_png(image, level=level)) == image).all()


def test_wishes_change_the_simulation_and_the_picture(stream):
    assert wish(stream, {"wish": "reset", "seed": 40, "all": True}) == (200, {"ok": True})
    before = eventually(stream, lambda s: s["seed"] == 40 and s["step"] == 0)
    first = unpacked(request(stream, "GET", "/picture.png")[1])
    assert first.shape == (90, 120, 3) and first.std() > 10
    for _ in range(5):
        wish(stream, {"wish": "step"})
    after = eventually(stream, lambda s: s["step"] == 5)
    assert after["picture"]["frame"] > before["picture"]["frame"] and len(after["history"]) == 5
    second = unpacked(request(stream, "GET", "/picture.png")[1])
    assert (first != second).any(-1).mean() > 0.01
    wish(stream, {"wish": "row", "value": 2})
    assert eventually(stream, lambda s: s["row"] == 2)["seed"] == 42
    wish(stream, {"wish": "camera", "value": "free"})
    eventually(stream, lambda s: s["picture"]["camera"] == "free")
    wish(stream, {"wish": "camera", "value": "human_camera"})
    wish(stream, {"wish": "row", "value": 0})
    wish(stream, {"wish": "play"})
    eventually(stream, lambda s: s["playing"] and s["step"] > 5)
    wish(stream, {"wish": "pause"})
    eventually(stream, lambda s: not s["playing"])


def test_news_wait_for_a_new_picture_but_not_for_ever(stream):
    frame = status_of(stream)["picture"]["frame"]
    began = time.monotonic()
    assert status_of(stream, frame)["picture"]["frame"] == frame
    assert 0.8 < time.monotonic() - began < 60  # the request itself is given up after that
    for nonsense in ("", "x", "9" * 40, "-", "%00"):
        assert status_of(stream, nonsense)["task"] == "PickCube-v2"


def test_only_the_page_itself_may_wish(stream):
    step, home = {"wish": "step"}, f"localhost:{stream.port}"
    version = stream.session.version
    assert wish(stream, step, **{"X-Manikin-Token": ""})[0] == 403
    assert wish(stream, step, **{"X-Manikin-Token": "ä" * 22})[0] == 403
    assert wish(stream, step, Origin="http://elsewhere.example")[0] == 403
    assert wish(stream, step, Origin="null")[0] == 403
    assert wish(stream, step, Host="elsewhere.example")[0] == 421
    assert request(stream, "GET", "/", Host="elsewhere.example:80")[0] == 421
    assert request(stream, "GET", "/status", Host="localhost.elsewhere.example")[0] == 421
    assert request(stream, "GET", "/status", Host="[")[0] == 421 and wish(stream, step, Origin="http://[")[0] == 403
    time.sleep(0.2)
    assert stream.session.version == version
    assert wish(stream, {"wish": "pause"}, Host=home, Origin=f"http://{home}")[0] == 200


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"wish": "fly"}, "toggle"),
        ({}, "None"),
        ([1], "object"),
        (b"{", ""),
        (b"\xff\xfe", ""),
        (b"[" * 9000, ""),
        ({"wish": "row", "value": 99}, "rows 0 to 2"),
        ({"wish": "camera", "value": "nowhere"}, "human_camera"),
        ({"wish": "move", "turn": "much"}, "turn"),
        ({"wish": "reset", "seed": 2**70}, "seed"),
    ],
)
def test_nonsense_is_answered_with_what_would_work(stream, body, said):
    code, answer = wish(stream, body)
    assert code == 400 and said in answer["error"]


def test_other_addresses_and_sizes_are_refused(stream):
    assert request(stream, "GET", "/../../etc/hosts")[0] == 404
    assert request(stream, "POST", "/elsewhere", b"{}", **{"X-Manikin-Token": stream.token})[0] == 404
    assert request(stream, "PUT", "/do", b"{}")[0] == 501
    assert wish(stream, b"x" * 10_001)[0] == 413


def test_page_is_whole_and_loads_nothing_from_elsewhere(stream):
    code, body, headers = request(stream, "GET", "/")
    text = body.decode()
    assert code == 200 and stream.token in text and "{{" not in text.replace("${", "")
    assert set(re.findall(r"https?://[^\"'\s]+", text)) == {"http://www.w3.org/2000/svg"}  # a name, not an address
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert headers["Cross-Origin-Resource-Policy"] == "same-origin" and headers["Cache-Control"] == "no-store"


def test_listens_on_this_machine_only_and_says_when_it_cannot(stream):
    assert stream.server.socket.getsockname()[0] == "127.0.0.1"
    assert stream.url == f"http://localhost:{stream.port}/"
    with pytest.raises(ConfigError, match=str(stream.port)):
        bound("127.0.0.1", stream.port)
    with pytest.raises(ConfigError, match="listen"):
        bound("203.0.113.7", 0)  # kept for documentation, nobody's
    with pytest.raises(ConfigError, match="70000"):
        bound("127.0.0.1", 70000)
    assert [is_loopback(h) for h in ("localhost", "127.0.0.1", "::1", "0.0.0.0", "192.168.1.4", "a.example")] == [
        *([True] * 3),
        *([False] * 3),
    ]


def test_numbers_that_json_does_not_know_become_null():
    status, body, kind = as_json({"a": [float("nan"), float("inf"), 1 / 3], "b": True})
    assert (status, kind) == (200, "application/json")
    assert json.loads(body) == {"a": [None, None, 0.33333], "b": True}


# ---- a real browser ------------------------------------------------------------------------------------------------


@pytest.fixture
def browser():
    if chromium() is None:
        pytest.skip("no Chromium is installed")
    with Browser(SOFTWARE_WEBGL, size=(1100, 760)) as page:
        yield page


def shown_picture(page):
    """Pixels of the page's picture, read back through a canvas, and the number of its frame."""
    width, height, values = page.evaluate(
        "(async () => { const p = document.getElementById('picture'); await p.decode(); const c = "
        "document.createElement('canvas'); c.width = p.naturalWidth; c.height = p.naturalHeight; "
        "const pen = c.getContext('2d'); pen.drawImage(p, 0, 0); return [c.width, c.height, "
        "Array.from(pen.getImageData(0, 0, c.width, c.height).data)]; })()"
    )
    return np.array(values, np.uint8).reshape(height, width, 4)[..., :3]


def test_page_in_a_browser_shows_steps_and_resets(stream, browser):
    stream.session.ask("reset", seed=60, all=True)
    browser.goto(stream.url)
    seed, step = "document.getElementById('of').textContent", "document.getElementById('at').textContent"
    browser.wait_for(f"{seed} === '60' && {step}.startsWith('0 /')")
    first = shown_picture(browser)
    assert first.std() > 10 and first.shape == (90, 120, 3)
    for count in (1, 2, 3):
        browser.click("#step")
        browser.wait_for(f"{step}.startsWith('{count} /')")
    second = shown_picture(browser)
    assert (first != second).any(-1).mean() > 0.01
    assert browser.evaluate("document.querySelectorAll('#terms tr').length") == 5
    browser.click("#rows button:nth-child(2)")
    browser.wait_for(f"{seed} === '61'")
    browser.click("#seed")
    browser.send("Input.insertText", text="9")
    browser.click("#reset")
    browser.wait_for(f"{seed} === '9' && {step}.startsWith('0 /')")
    box = "(r => [r.x + r.width / 2, r.y + r.height / 2])(document.getElementById('picture').getBoundingClientRect())"
    x, y = browser.evaluate(box)
    browser.mouse("mousePressed", x, y, button="left", clickCount=1)
    browser.mouse("mouseMoved", x + 60, y, button="left", buttons=1)
    browser.mouse("mouseReleased", x + 60, y, button="left", clickCount=1)
    browser.wait_for("document.getElementById('camera').value === 'free'")
    browser.click("#play")
    browser.wait_for(f"document.getElementById('play').textContent === 'Pause' && !{step}.startsWith('0 /')")
    browser.click("#play")
    browser.wait_for("document.getElementById('play').textContent === 'Play'")
    assert browser.evaluate("document.documentElement.scrollWidth <= innerWidth")  # nothing sticks out
    light = decoded(browser.screenshot())
    browser.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    dark = decoded(browser.screenshot())
    assert light[2, 2].min() > 200 and dark[2, 2].max() < 60
    assert not browser.complaints()
    assert all(url.startswith((stream.url, "data:")) for url in browser.requested())
    stream.session.ask("row", value=0)
    stream.painter.ask("camera", value="human_camera")


def wants_its_key(viewer, path):
    """Others than this machine can reach a viewer: what it serves needs the key of its link."""
    address, _, key = viewer.link.partition("?key=")
    assert address == viewer.url and len(key) >= 20
    for asked in ("/", "/?key=", f"/?key={key[:-1]}", path, f"{path}?key=%FF"):
        assert request(viewer, "GET", asked)[0] == 401, asked
    code, _, headers = request(viewer, "GET", f"/?key={key}")
    cookie = headers["Set-Cookie"].partition(";")[0]
    assert code == 200 and "HttpOnly" in headers["Set-Cookie"] and "SameSite=Strict" in headers["Set-Cookie"]
    assert cookie.startswith(f"manikin-{viewer.port}="), "two viewers of a machine overwrite each other's cookies"
    assert "Set-Cookie" not in request(viewer, "GET", "/", Cookie=cookie)[2]
    for path_too, cookies in (
        ("/?key=old", cookie),
        ("/", f"odd[=1; {cookie}"),
        ("/", f"{cookie}; manikin-{viewer.port}="),
    ):
        assert request(viewer, "GET", path_too, Cookie=cookies)[0] == 200, "a right key is enough"
    for cookies in ("", f"manikin-{viewer.port}=wrong", f"manikin-{viewer.port + 1}={key}", "=;;="):
        assert request(viewer, "GET", path, Cookie=cookies)[0] == 401, cookies
    return cookie


def test_a_page_that_others_can_reach_needs_its_key():
    with session(1, ExpertPolicy, playing=False) as s:
        painter = Painter(s, make_renderer("rays"), width=64, height=48)
        with served(StreamViewer(s, painter, host="0.0.0.0")) as viewer:
            cookie = wants_its_key(viewer, "/status")
            assert request(viewer, "GET", "/status", Cookie=cookie)[0] == 200
            assert wish(viewer, {"wish": "pause"})[0] == 200  # with the page's token, which only the page has


def listening(viewer):
    """The viewer, once it listens: Studio begins to while it runs."""
    until = time.monotonic() + 120
    while True:
        try:
            socket.create_connection(("127.0.0.1", viewer.port), 1).close()
            return viewer
        except OSError:
            assert time.monotonic() < until
            time.sleep(0.1)


@pytest.fixture
def studio():
    module = pytest.importorskip("manikin.view.studio", reason="this MuJoCo has no Studio")
    with session(2, HoldPolicy, playing=False) as s, served(module.StudioViewer(s)) as viewer:
        yield listening(viewer)


def test_studio_listens_on_this_machine_only(studio):
    code, body, _ = request(studio, "GET", "/")
    assert code == 200 and b"<canvas" in body
    probe = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        probe.connect(("203.0.113.7", 9))  # sends nothing; tells which address this machine would use
        address = probe.getsockname()[0]
    except OSError:
        pytest.skip("this machine has no other address than its own")
    finally:
        probe.close()
    if is_loopback(address):
        pytest.skip("this machine has no other address than its own")
    with pytest.raises(OSError):
        socket.create_connection((address, studio.port), 2).close()


def shaken(viewer, path, **headers):
    """Status of a websocket's handshake, as a browser makes it."""
    upgrade = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13"}
    key = {"Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA=="}
    connection = http.client.HTTPConnection("127.0.0.1", viewer.port, timeout=60)
    try:
        connection.request("GET", path, headers={**upgrade, **key, **headers})
        return connection.getresponse().status
    finally:
        connection.close()


@pytest.mark.parametrize("path", ["/state", "/ui", "/drop"])
def test_studio_shows_pages_of_other_sites_nothing(studio, path):
    """The state, the controls and the upload of files; by an origin of theirs, or a name that they point here."""
    home = f"localhost:{studio.port}"
    for origin in ("http://elsewhere.example", "null", f"http://localhost:{studio.port + 1}", "http://["):
        assert shaken(studio, path, Host=home, Origin=origin) == 403
    for host in ("elsewhere.example", f"elsewhere.example:{studio.port}", "localhost.elsewhere.example", "[", ""):
        assert shaken(studio, path, Host=host, Origin=f"http://{host}") == 421
    if path == "/state":  # MuJoCo's own page may end the process where a client leaves /ui in its first moment
        for home in (f"localhost:{studio.port}", f"127.0.0.1:{studio.port}"):
            assert shaken(studio, path, Host=home, Origin=f"http://{home}") == 101
    assert request(studio, "GET", "/model", Origin="http://elsewhere.example")[0] == 403
    assert request(studio, "GET", "/", Host="elsewhere.example")[0] == 421


def test_a_studio_that_others_can_reach_needs_its_key():
    module = pytest.importorskip("manikin.view.studio", reason="this MuJoCo has no Studio")
    with (
        session(1, HoldPolicy, playing=False) as s,
        served(module.StudioViewer(s, host="0.0.0.0")) as viewer,
    ):
        cookie = wants_its_key(listening(viewer), "/model")
        home = f"localhost:{viewer.port}"
        assert shaken(viewer, "/state", Host=home, Origin=f"http://{home}") == 401
        assert shaken(viewer, "/state", Host=home, Origin=f"http://{home}", Cookie=cookie) == 101


def test_a_studio_without_the_checks_is_not_served(monkeypatch):
    """Should another version of Studio start its server in another way."""
    module = pytest.importorskip("manikin.view.studio", reason="this MuJoCo has no Studio")
    monkeypatch.setattr(import_module("manikin.compat.studio").web_server, "serve", websockets_serve())
    with session(1, HoldPolicy, playing=False) as s:
        viewer = module.StudioViewer(s)
        with pytest.raises(ConfigError, match="requests from other websites"):
            viewer.run()
        viewer.close()


def websockets_serve():
    from websockets.asyncio.server import serve

    return serve


ONE_AFTER_ANOTHER = """
import gc, threading, time, urllib.error, urllib.request
from manikin.env.make import make
from manikin.view.hold import HoldPolicy
from manikin.view.session import Session
from manikin.view.studio import StudioViewer
for _ in range(3):
    env = make("PickCube-v2", 1, autoreset="disabled")
    viewer, over = StudioViewer(Session(env, HoldPolicy)), threading.Event()
    thread = threading.Thread(target=viewer.run, args=(over.is_set,))
    thread.start()
    until = time.monotonic() + 60
    while True:
        try:
            urllib.request.urlopen(viewer.url, timeout=60).read()
            break
        except urllib.error.URLError:  # it does not listen yet
            assert time.monotonic() < until
            time.sleep(0.1)
    gc.collect()  # what the viewer before has left
    time.sleep(0.3)
    over.set()
    thread.join()
    viewer.close()
    env.close()
"""


def test_one_studio_after_another_in_a_process():
    """In a process of its own: when it fails it does not fail, it crashes."""
    pytest.importorskip("manikin.view.studio", reason="this MuJoCo has no Studio")
    done = subprocess.run([sys.executable, "-c", ONE_AFTER_ANOTHER], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.slow
def test_studio_draws_the_scene_in_a_browser(studio):
    if chromium() is None:
        pytest.skip("no Chromium is installed")
    with Browser(SOFTWARE_WEBGL, size=(900, 640)) as page:
        page.goto(studio.url)
        first = cube_in(page, lambda x, y: True)
        studio.session.ask("reset", seed=1, all=True)
        cube_in(page, lambda x, y: abs(x - first[0]) + abs(y - first[1]) > 10)
        assert not page.complaints()
        assert all(url.startswith((studio.url, "data:", "blob:")) for url in page.requested())


def cube_in(page, wanted, patience=240.0):
    """Wait until a red cube is drawn at pixels that are ``wanted``, right of the panel and left of the red gizmo."""
    until = time.monotonic() + patience  # software WebGL on busy processors is slow
    while True:
        part = decoded(page.screenshot())[:, 345:].astype(int)
        part[:160, -200:] = 0
        y, x = np.nonzero((part[..., 0] > 70) & (part[..., 0] > 3 * part[..., 1:].max(-1)))
        if len(x) > 60 and wanted(x.mean(), y.mean()):
            assert part[200:].std() > 10
            return x.mean(), y.mean()
        assert time.monotonic() < until, "the cube is not where it should be"
        time.sleep(0.5)


# ---- the command ---------------------------------------------------------------------------------------------------


def test_command_serves_until_told_to_stop_and_films(tmp_path, capsys):
    pytest.importorskip("av")

    def ready(viewer):
        assert viewer.session.status["policy"] == "hold"

        def interrupted(stop=None):
            raise KeyboardInterrupt

        viewer.run = interrupted

    options = ViewOptions(policy="hold", num_envs=1, renderer="rays", paused=True)
    assert view_command(options, ready=ready) == 0
    assert "http://localhost:" in capsys.readouterr().out
    film = tmp_path / "film.mp4"
    assert view_command(ViewOptions(policy="random", num_envs=1, film=film, renderer="rays", size=(96, 72))) == 0
    assert film.stat().st_size > 2_000


def test_command_looks_through_a_camera_of_the_scene(tmp_path, capsys):
    av = pytest.importorskip("av")

    def first_picture(camera):
        film = tmp_path / f"{camera}.mp4"
        options = {"policy": "hold", "num_envs": 1, "renderer": "rays", "size": (96, 72)}
        assert view_command(ViewOptions(**options, film=film, camera=camera)) == 0
        with av.open(str(film)) as container:
            return next(container.decode(video=0)).to_ndarray(format="rgb24")[20:].astype(int)

    default, people, other = (first_picture(camera) for camera in (None, "human_camera", "base_camera"))
    assert np.array_equal(default, people) and np.abs(default - other).mean() > 5
    assert command_line(["view", "--camera", "bese_camera", "--film", str(tmp_path / "no.mp4")]) == 2
    assert "base_camera" in capsys.readouterr().err
    assert command_line(["view", "--camera", "base_camera", "--viewer", "studio"]) == 2
    assert "Studio has its own menu of cameras" in capsys.readouterr().err
    shown = []
    options = ViewOptions(policy="hold", num_envs=1, renderer="rays", paused=True, camera="base_camera")

    def ready(viewer):
        shown.append(viewer.painter.camera)
        viewer.run = lambda stop=None: None

    assert view_command(options, ready=ready) == 0 and shown == ["base_camera"]


def test_command_says_what_there_is(capsys):
    assert command_line(["view", "PickCub-v2"]) == 2
    assert "PickCube-v2" in capsys.readouterr().err
    assert command_line(["view", "--policy", "expret", "--viewer", "stream"]) == 2
    said = capsys.readouterr().err
    assert "expert" in said and "hold" in said


# ---- a window --------------------------------------------------------------------------------------------------------


def test_human_rendering_shows_every_state_and_changes_nothing(monkeypatch):
    import gymnasium
    import mujoco.viewer

    shown, running = [], [True]

    class Handle:
        def __init__(self, model, data, **options):
            self.model, self.data = model, data

        def lock(self):
            return threading.Lock()

        def sync(self):
            shown.append(self.data.qpos.copy())

        def is_running(self):
            return running[0]

        def close(self):
            running[0] = False

    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr(mujoco.viewer, "launch_passive", Handle)
    env = gymnasium.make("manikin/PickCube-v2", render_mode="human")
    plain = gymnasium.make("manikin/PickCube-v2")
    for each in (env, plain):
        each.reset(seed=4)
    action = np.full(env.action_space.shape, 0.3, np.float32)
    states = [plain.unwrapped.batched.world.states(np.arange(1))]
    for _ in range(3):
        assert (env.step(action)[0] == plain.step(action)[0]).all()
        states.append(plain.unwrapped.batched.world.states(np.arange(1)))
    nq = len(shown[0])
    assert len(shown) == 4 and env.render() is None
    for seen, state in zip(shown, states, strict=True):
        np.testing.assert_array_equal(seen, state[0][1 : 1 + nq])  # the state begins with the time
    running[0] = False  # the person closes the window
    env.step(action)
    assert len(shown) == 4
    env.close()
    plain.close()


def test_human_rendering_without_a_screen_says_what_to_do(monkeypatch):
    import gymnasium

    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    if sys.platform.startswith("linux"):
        with pytest.raises(ConfigError, match=r"there is no screen here.*manikin view TASK"):
            gymnasium.make("manikin/PickCube-v2", render_mode="human")
