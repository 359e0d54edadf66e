"""view/headset/: the page for a headset, what it asks the server, and its certificate."""

from __future__ import annotations

import http.client
import json
import re
import socket
import ssl
import stat
import struct
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest

from browser import SOFTWARE_WEBGL, Browser, EmulatedHeadset, chromium, iwer, needs_browser
from manikin.cli import main as command_line
from manikin.cli.teleop import TeleopOptions
from manikin.cli.teleop import run as teleop_command
from manikin.data.recording.read import EpisodeFile
from manikin.data.replay.verify import replay
from manikin.env.make import make
from manikin.errors import ConfigError
from manikin.render import make_renderer
from manikin.teleop.device import HandOptions, ScriptedDevice
from manikin.teleop.headset.headset import Headset
from manikin.teleop.loop import TeleopLoop
from manikin.view.headset.certificate import address_in_network, certificate_for, encrypted, fingerprint, tls_context
from manikin.view.headset.cloud import around_person
from manikin.view.headset.session import HeadsetSession, between
from manikin.view.headset.viewer import HeadsetViewer
from manikin.view.picture import Painter
from manikin.view.stream import StreamViewer

needs_headset = pytest.mark.skipif(
    chromium() is None or iwer() is None,
    reason="needs Chromium and the npm package iwer: npm install --prefix .venv/iwer iwer",
)
STILL = [0.2, 1.2, -0.4, 0, 0, 0, 1]


@pytest.fixture
def env():
    made = make("PickCube-v2", 1, autoreset="disabled", control="joint_pos", horizon=4000)
    yield made
    made.close()


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hands stay where they were reported last, however late the next report comes."""
    monkeypatch.setattr("manikin.teleop.headset.headset.LEASE", 60.0)


@contextmanager
def served(
    env: Any, *, device: Headset | None = None, size: tuple[int, int] = (64, 48), out: Path | None = None, **where: Any
) -> Iterator[HeadsetViewer]:
    """A headset's page, served from a thread."""
    session = HeadsetSession(TeleopLoop(env, device or Headset(), out=out, seed=7))
    painter = Painter(session, make_renderer("rays"), width=size[0], height=size[1])
    viewer, over = HeadsetViewer(session, painter, **where), []
    thread = threading.Thread(target=viewer.run, args=(lambda: bool(over),))
    thread.start()
    try:
        yield viewer
    finally:
        over.append(True)
        thread.join()
        viewer.close()
        session.close()
        session.loop.close()


def ask(viewer: StreamViewer, wish: dict[str, Any], *, token: str | None = None) -> tuple[int, dict[str, Any]]:
    connection = http.client.HTTPConnection("127.0.0.1", viewer.port, timeout=60)
    headers = {"Content-Type": "application/json", "X-Manikin-Token": viewer.token if token is None else token}
    connection.request("POST", "/do", json.dumps(wish), headers)
    answer = connection.getresponse()
    said = json.loads(answer.read())
    connection.close()
    return answer.status, said


def get(viewer: StreamViewer, path: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", viewer.port, timeout=60)
    connection.request("GET", path)
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, body


def poses(order: int, **hands: Any) -> dict[str, Any]:
    return {"wish": "poses", "order": order, "seconds": time.time(), "head": [0, 1.6, 0, 0, 0, 0, 1], **hands}


def picture(viewer: HeadsetViewer, after: int) -> tuple[dict[str, Any], bytes]:
    status, body = get(viewer, f"/headset/picture?after={after}")
    assert status == 200
    (length,) = struct.unpack_from("<I", body)
    return json.loads(body[4 : 4 + length]), body[4 + length :]


# ---- what the page asks ----------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("patient")
def test_poses_move_the_tool_and_pictures_say_which_of_them_they_show(env):
    with served(env, device=Headset(smooth=False)) as viewer:
        status, page = get(viewer, "/headset")
        assert status == 200 and viewer.token.encode() in page and b"{{" not in page
        about, png = picture(viewer, 0)
        assert about["pose"] == -1 and png.startswith(b"\x89PNG") and about["hand"]["phase"] == "ready"
        before = env.robot.tcp_pos[0].clone()
        for k in range(60):
            held = {"pose": STILL, "squeeze": float(k > 5)}
            held["pose"] = [0.2, 1.2 + 0.001 * max(0, k - 10), *STILL[2:]]
            assert ask(viewer, poses(k, right=held)) == (200, {"ok": True})
            time.sleep(0.014)
        until, seen, heights = time.monotonic() + 120, [about["pose"]], [0.0] * 8 + [1.0]
        # the tool follows until it is there
        while seen[-1] < 59 or about["step"] < 20 or abs(heights[-1] - heights[-8]) > 1e-4:
            assert time.monotonic() < until
            ask(viewer, poses(60 + len(seen), right={"pose": [0.2, 1.249, *STILL[2:]], "squeeze": 1.0}))
            about, _ = picture(viewer, about["frame"])
            seen.append(about["pose"])
            heights.append(float(env.robot.tcp_pos[0, 2]))
        assert seen == sorted(seen)
        assert float(env.robot.tcp_pos[0, 2] - before[2]) == pytest.approx(0.049, abs=0.004)
        assert about["hand"]["sides"] == {"right": "robot/tool"}


def test_what_a_page_may_not_say(env):
    with served(env) as viewer:
        assert ask(viewer, poses(1), token="wrong")[0] == 403
        for wish, said in (
            (poses(1, right={"pose": [1]}), "7 numbers"),
            (poses(1, right={"pose": STILL, "pressed": ["start"]}), "upper"),
            ({**poses(1), "order": -1}, "order"),
            ({**poses(1), "seconds": "now"}, "seconds"),
            ({**poses(1), "head": [0] * 7}, "quaternion"),
            ({**poses(1), "feet": None}, "feet"),
            ({"wish": "keys", "held": ["KeyW"], "order": 1}, "keyboard"),
        ):
            status, answer = ask(viewer, wish)
            assert status == 400 and said in answer["error"], answer
        assert get(viewer, "/headset/cloud?camera=nowhere")[0] == 400
        assert get(viewer, "/headset/nothing")[0] == 404
        assert ask(viewer, {"wish": "stereo", "value": 1})[0] == 400


def test_two_eyes_see_from_two_places(env):
    with served(env, size=(96, 72)) as viewer:
        assert ask(viewer, {"wish": "stereo", "value": True})[0] == 200
        about, png = picture(viewer, 0)
        until = time.monotonic() + 120
        while not about["stereo"]:
            assert time.monotonic() < until and (not png or struct.unpack(">II", png[16:24]) == (96, 72))
            about, png = picture(viewer, about["frame"])
        assert struct.unpack(">II", png[16:24]) == (192, 72)
        painter, (model, data) = viewer.painter, viewer.session.look()
        view = painter.view(model, data, 96, 72)
    painter.stereo = True
    both, _ = Painter.paint(painter)
    left, right = both[:, :96], both[:, 96:]
    assert (left != right).any()
    # a point at the middle of the table is seen further to the right by the left eye: f b / depth pixels
    depth = float(view.rotation[:, 2] @ (np.zeros(3) - view.pos))
    shift = view.K[0, 0] * 0.064 / depth
    red = lambda image: np.argwhere((image[..., 0] > 120) & (image[..., 1] < 60))[:, 1].mean()  # noqa: E731
    assert red(left) - red(right) == pytest.approx(shift, abs=1.5)


def test_points_lie_on_what_the_camera_sees_around_who_stands_in_the_robots_place(env):
    with served(env) as viewer:
        status, body = get(viewer, "/headset/cloud?after=0&camera=base_camera")
        assert status == 200
        number, count = struct.unpack_from("<II", body)
        points = np.frombuffer(body, "<f4", 3 * count, 8).reshape(count, 3)
        colours = np.frombuffer(body, np.uint8, 3 * count, 8 + 12 * count).reshape(count, 3)
        assert len(body) == 8 + 15 * count and number == 1 and count > 1000
        cube = env.h.cube.pos[0].double().numpy()
    red = (colours[:, 0] > 100) & (colours[:, 1] < 50)
    base = env.robot.base_pose.numpy()
    assert red.sum() >= 3
    # the Panda looks along x from 0.615 m behind the middle: forward is x from its base
    np.testing.assert_allclose(points[red].mean(0), [cube[0] - base[0], cube[1] - base[1], cube[2]], atol=0.03)
    table = np.abs(points[:, 2]) < 0.005
    assert table.mean() > 0.3
    turned = around_person(np.array([[base[0], base[1] + 1.0, 0.3]]), base.astype(float), np.pi / 2)
    np.testing.assert_allclose(turned, [[1.0, 0.0, 0.3]], atol=1e-9)


def test_between_two_states_everything_is_on_its_way():
    model = mujoco.MjModel.from_xml_string(
        "<mujoco><worldbody><body name='free'><freejoint/><geom size='.1'/></body>"
        "<body><joint type='slide' axis='1 0 0'/><geom size='.1'/></body></worldbody></mujoco>"
    )
    data = mujoco.MjData(model)
    start = data.qpos.copy()
    angle = 1.2
    data.qpos[:] = [0.4, 0, 0.2, np.cos(angle / 2), 0, 0, np.sin(angle / 2), 0.8]
    made = between(model, start, data, 0.25)
    half = angle / 8
    np.testing.assert_allclose(made.qpos, [0.1, 0, 0.05, np.cos(half), 0, 0, np.sin(half), 0.2], atol=1e-12)
    np.testing.assert_allclose(made.body("free").xpos, [0.1, 0, 0.05], atol=1e-12)
    assert data.qpos[7] == 0.8


def test_a_session_without_a_headset_is_refused(env):
    device = ScriptedDevice(())
    device.hands = HandOptions()
    with pytest.raises(ConfigError, match="not scripted"):
        HeadsetSession(TeleopLoop(env, device))


# ---- encryption ------------------------------------------------------------------------------------------------------


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("MANIKIN_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_a_certificate_is_made_once_for_its_owner_and_its_machine(cache):
    path = certificate_for("0.0.0.0")
    assert path.is_relative_to(cache) and stat.S_IMODE(path.stat().st_mode) == 0o600
    before = path.read_bytes()
    assert certificate_for("0.0.0.0") == path and path.read_bytes() == before
    text = subprocess.run(["openssl", "x509", "-noout", "-text", "-in", path], capture_output=True, text=True).stdout
    assert "DNS:localhost" in text and f"IP Address:{address_in_network()}" in text and "prime256v1" in text
    shown = subprocess.run(
        ["openssl", "x509", "-noout", "-fingerprint", "-sha256", "-in", path], capture_output=True, text=True
    ).stdout
    assert fingerprint(path) == shown.strip().split("=")[1]
    path.write_text("broken")
    assert certificate_for("0.0.0.0").read_bytes() != b"broken"
    tls_context(path)
    assert encrypted("127.0.0.1", None) is None and encrypted("localhost", path) == path
    assert not list(path.parent.glob("*.crt"))


def test_what_makes_no_certificate_is_named(cache, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigError, match="install openssl"):
        certificate_for("0.0.0.0")
    (tmp_path / "openssl").write_text("#!/bin/sh\necho 'no such curve' >&2\nexit 1\n")
    (tmp_path / "openssl").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    with pytest.raises(ConfigError, match="no such curve"):
        certificate_for("0.0.0.0")
    wrong = tmp_path / "mine.pem"
    wrong.write_text("nothing")
    for asked in (tls_context, fingerprint):
        with pytest.raises(ConfigError, match=r"mine\.pem"):
            asked(wrong)


def test_the_page_is_encrypted_and_a_client_that_says_nothing_holds_nobody_up(env, cache):
    pem = certificate_for("127.0.0.1")
    with served(env, tls=tls_context(pem)) as viewer:
        assert viewer.headset_url == f"https://localhost:{viewer.port}/headset"
        silent = socket.create_connection(("127.0.0.1", viewer.port))
        trusting = ssl.create_default_context(cafile=str(pem))
        connection = http.client.HTTPSConnection("localhost", viewer.port, context=trusting, timeout=60)
        connection.request("GET", "/headset")
        assert connection.getresponse().status == 200
        connection.close()
        silent.close()
        plain = http.client.HTTPConnection("127.0.0.1", viewer.port, timeout=60)
        plain.request("GET", "/headset")
        with pytest.raises((http.client.HTTPException, OSError)):
            plain.getresponse()
        strict = http.client.HTTPSConnection("localhost", viewer.port, timeout=60)
        with pytest.raises(ssl.SSLCertVerificationError):
            strict.request("GET", "/headset")


# ---- the command -----------------------------------------------------------------------------------------------------


def test_command_says_where_the_page_is_and_how_to_know_its_certificate(cache, tmp_path, capsys):
    class Enough(Exception):
        pass

    def stop(viewer):
        assert isinstance(viewer, HeadsetViewer) and viewer.url.startswith("https://")
        assert viewer.session.headset.hands == HandOptions(scale=0.5, turn=np.pi / 2, masks={"arm": 0.5})
        raise Enough

    options = TeleopOptions(
        device="headset:scale=0.5,turn=90,mask=arm/0.5,smooth=off",
        host="0.0.0.0",
        out=tmp_path / "a.h5",
        renderer="rays",
        size=(64, 48),
    )
    with pytest.raises(Enough):
        teleop_command(options, ready=stop)
    said = capsys.readouterr().out
    assert f"https://{address_in_network()}:" in said and "/headset?key=" in said
    assert re.search(r"SHA-256 fingerprint ([0-9A-F]{2}:){31}[0-9A-F]{2}", said) and "joint_pos" in said


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("headset:speed=2", "scale"),
        ("headset:scale=fast", "cannot be read"),
        ("headset:scale=0", "0.05"),
        ("headset:smooth=maybe", "cannot be read"),
        ("headset:hand=both", "left"),
        ("headset:mask=torso/0.5", "arm"),
        ("headst", "headset"),
    ],
)
def test_command_says_what_a_headset_may_have(word, said, tmp_path, capsys):
    assert command_line(["teleop", "--device", word, "--out", str(tmp_path / "a.h5")]) == 2
    assert said in capsys.readouterr().err


# ---- browsers --------------------------------------------------------------------------------------------------------


@needs_browser
def test_a_page_without_a_headset_shows_the_scene_and_says_why(env):
    address = address_in_network()
    with served(env, host="0.0.0.0") as viewer, Browser(SOFTWARE_WEBGL) as page:
        page.goto(f"http://localhost:{viewer.port}/headset?key={viewer.key}")
        assert "no headset" in page.wait_for("document.getElementById('problem').textContent")
        assert page.evaluate("document.getElementById('enter').disabled")
        page.wait_for("headset.pictures > 0")
        assert page.evaluate("document.getElementById('task').textContent") == "PickCube-v2"
        assert not page.complaints()
        if address != "127.0.0.1":
            page.goto(f"http://{address}:{viewer.port}/headset?key={viewer.key}")
            assert "https://" in page.wait_for("document.getElementById('problem').textContent")
        elsewhere = [url for url in page.requested() if not re.match(rf"http://[^/]*:{viewer.port}/|data:|blob:", url)]
        assert not elsewhere


@needs_headset
@pytest.mark.usefixtures("patient")
def test_an_emulated_headset_drives_an_episode_over_an_encrypted_page(env, cache, tmp_path, record_property):
    out, tls = tmp_path / "headset.h5", tls_context(certificate_for("127.0.0.1"))
    with served(env, out=out, tls=tls) as viewer, EmulatedHeadset(["--ignore-certificate-errors"]) as page:
        page.enter(viewer.headset_url)
        assert page.evaluate("isSecureContext")
        page.wait_for("headset.pictures > 1")
        before = env.robot.tcp_pos[0].clone()
        page.button("right", "squeeze", 1)
        page.wait_for("document.getElementById('state').textContent.startsWith('recording')")
        time.sleep(0.3)
        page.put("right", 0.2, 1.26, -0.45)  # up and forward
        page.button("right", "trigger", 1)
        until = time.monotonic() + 120
        while float(env.robot.tcp_pos[0, 2] - before[2]) < 0.055 or float(env.robot.opening[0]) > 0.3:
            assert time.monotonic() < until, env.robot.tcp_pos[0] - before
            time.sleep(0.05)
        there = viewer.session.status["step"] + 10  # until it has come to rest
        while viewer.session.status["step"] < there:
            assert time.monotonic() < until
            time.sleep(0.05)
        moved = (env.robot.tcp_pos[0] - before).numpy()
        np.testing.assert_allclose(moved, [0.05, 0.0, 0.06], atol=0.006)
        assert page.wait_for("headset.lags.length > 3 && headset.lags.length")
        page.evaluate("document.getElementById('cloud').click()")
        page.wait_for("headset.points > 500")
        sent, frames = page.evaluate("[headset.sent, headset.frames]")
        record_property("reports_per_frame", sent / frames)
        pixels = page.screenshot(tmp_path / "headset.png")
        assert len(pixels) > 5000
        page.button("right", "a-button", 1)
        page.wait_for("document.getElementById('state').textContent.includes('kept episode 0')")
        page.button("right", "a-button", 0)
        page.button("right", "squeeze", 0)
        assert not page.complaints()
        page.evaluate("document.getElementById('enter').click()")
        page.wait_for("document.getElementById('enter').textContent === 'Enter'")
        assert viewer.session.loop.latency.mean is not None
    with EpisodeFile(out) as file:
        assert list(file.numbers) == [0] and file[0].seed == 7 and len(file[0]) > 10
    assert replay(out).exact


@needs_headset
def test_hands_that_are_seen_are_reported_with_all_joints_and_their_pinch(env):
    with served(env) as viewer, EmulatedHeadset() as page:
        page.goto(viewer.headset_url)
        page.wait_for("!document.getElementById('enter').disabled")
        page.evaluate("device.primaryInputMode = 'hand'")
        page.click("#enter")
        until = time.monotonic() + 120
        while (hands := viewer.session.headset.read().hands).keys() != {"left", "right"}:
            assert time.monotonic() < until
            time.sleep(0.05)
        for hand in hands.values():
            assert hand.tips.shape == (5, 3) and 0.1 < np.linalg.norm(hand.tips[2]) < 0.25 and not hand.pinched
        page.evaluate("device.hands.right.updatePinchValue(1)")
        while not viewer.session.headset.read().hands["right"].pinched:
            assert time.monotonic() < until
            time.sleep(0.05)
        assert not page.complaints()


@needs_headset
def test_the_board_before_the_person_is_pressed_by_touch(env):
    with served(env) as viewer, EmulatedHeadset() as page:
        page.enter(viewer.headset_url, stereo=False)
        page.button("right", "squeeze", 1)
        page.wait_for("document.getElementById('state').textContent.startsWith('recording')")
        # half a metre below the eyes, 0.55 m away, 0.6 rad to the right, tilted by 0.6 rad; "discard" is in the middle
        # of its lower part
        down = 0.29 * 0.2
        away = 0.55 - down * np.sin(0.6)
        want = np.array([away * np.cos(0.6), -away * np.sin(0.6), 1.6 - 0.5 - down * np.cos(0.6)])  # forward, left, up
        at, until = np.array([0.4, 0.2, 1.2]), time.monotonic() + 120
        while viewer.session.loop.discarded == 0:
            assert time.monotonic() < until
            if (hand := viewer.session.headset.read().hands.get("left")) is not None:
                at = at + 0.5 * (want - hand.pos)  # a controller is not held where its ray begins
                page.put("left", -at[1], at[2], -at[0])
            time.sleep(0.1)
        assert not page.complaints()
