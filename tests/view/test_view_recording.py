"""view/: the page of a recording, over HTTP and in a real browser, from the file alone."""

from __future__ import annotations

import http.client
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from browser import Browser, needs_browser
from manikin.cli import main as command_line
from manikin.data.recording.format import RecordedEpisode, parts_folder
from manikin.data.recording.write import EpisodeWriter
from manikin.errors import DataError
from manikin.view.recording import RecordingViewer
from manikin.view.sources import LeRobotSource, RecordingSource, is_recording, open_source
from toy_episodes import HEADER, toy_episode

CAMERAS = {"cameras/base_camera/rgb": (255, 0, 0), "cameras/hand_camera/rgb": (0, 0, 255)}
MODES = ("straightforward_success", "never_grasped", "dropped")


def seen_episode(number: int, length: int = 20) -> RecordedEpisode:
    """An episode with two cameras and a depth image; the brightness of each picture says its instant."""
    whole = toy_episode(number, length)
    shade = np.linspace(0.2, 1.0, length + 1)[:, None, None, None]
    pictures: dict[str, np.ndarray] = {
        name: np.broadcast_to(np.array(colour) * shade, (length + 1, 24, 32, 3)).astype(np.uint8)
        for name, colour in CAMERAS.items()
    }
    pictures["cameras/base_camera/depth"] = np.tile(np.linspace(0.5, 2.0, 32, dtype=np.float32), (length + 1, 24, 1))
    turn = np.linspace(0, 1 + number, length + 1).astype(np.float32)
    press = np.maximum(0, np.sin(np.arange(length)) * (10 + number)).astype(np.float32)
    more: dict[str, Any] = {
        "observations": pictures,
        "joints": {"shoulder": turn, "elbow": -turn},
        "forces": {"total": press, "hand": press, "fingers/left": 2 * press},
        "reward_terms": {"reach": whole.rewards / 2, "place": whole.rewards / 2},
        "flags": {"is_grasped": np.arange(length) > 8, "height": turn[1:]},
        "mode": MODES[number % 3],
    }
    return RecordedEpisode(**{**vars(whole), **more})


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("recording") / "run.h5"
    with EpisodeWriter(path, HEADER) as writer:
        writer.write(*(seen_episode(n) for n in range(12)), dropped=[12])
    return path


@contextmanager
def served(path: Path) -> Iterator[RecordingViewer]:
    viewer = RecordingViewer(open_source(path))
    try:
        yield viewer
    finally:
        viewer.close()


def get(viewer: RecordingViewer, path: str, **headers: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", viewer.port, timeout=60)
    try:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def test_the_list_and_an_episode_say_what_is_in_the_file(recording: Path) -> None:
    with served(recording) as viewer:
        about = json.loads(get(viewer, "/list")[1])
        assert about["name"] == "run.h5" and about["dropped"] == 1 and about["hz"] == 20
        assert about["facts"][0] == "Toy-v1" and len(about["episodes"]) == 12
        there = seen_episode(4)
        row = about["episodes"][4]
        assert (row["number"], row["seed"], row["mode"]) == (4, 1004, "never_grasped") and row["success_once"] is True
        assert row["force_peak"] == pytest.approx(there.force_peak["total"], abs=1e-4)

        episode = json.loads(get(viewer, "/episode?number=4")[1])
        plots = {plot["title"]: plot for plot in episode["plots"]}
        assert list(plots) == ["actions", "joints", "contact force", "reward", "reward terms", "numbers"]
        assert list(plots["contact force"]["lines"]) == ["total", "hand", "fingers/left"]
        assert plots["joints"]["start"] == 0 and len(plots["joints"]["lines"]["elbow"]) == 21
        np.testing.assert_allclose(plots["joints"]["lines"]["elbow"], there.joints["elbow"], atol=1e-5)
        np.testing.assert_allclose(plots["actions"]["lines"]["action 3"], there.actions[:, 3], atol=1e-5)
        assert plots["contact force"]["start"] == 1 and plots["contact force"]["unit"] == "N"
        assert episode["flags"]["is_grasped"] == [t > 8 for t in range(20)]
        assert episode["cameras"] == ["cameras/base_camera/depth", *CAMERAS] and not episode["missing"]


def test_pictures_are_those_of_the_instant(recording: Path) -> None:
    source = RecordingSource(recording)
    there = seen_episode(2).observations or {}
    for name in CAMERAS:
        for at in (0, 7, 20):
            assert (source.picture(2, name, at) == there[name][at]).all()
    depth = source.picture(2, "cameras/base_camera/depth", 3)
    assert depth.shape == (24, 32, 3) and (np.diff(depth[0, :, 0].astype(int)) <= 0).all() and np.ptp(depth) > 150
    with pytest.raises(DataError, match="has no row 21"):
        source.picture(2, "cameras/base_camera/rgb", 21)
    with pytest.raises(DataError, match="has no instants/observations/cameras/none"):
        source.picture(2, "cameras/none", 0)
    source.close()


def test_only_this_machine_is_answered_and_nonsense_is_refused(recording: Path) -> None:
    with served(recording) as viewer:
        assert get(viewer, "/list", Host="evil.example")[0] == 421
        assert get(viewer, "/episode?number=99")[0] == 404
        assert b"no episode 99" in get(viewer, "/episode?number=99")[1]
        for path in (
            "/episode",
            "/episode?number=x",
            "/picture.png?number=1&camera=x&at=0",
            "/elsewhere",
            "/../run.h5",
        ):
            assert get(viewer, path)[0] == 404, path


def test_what_is_damaged_is_listed_and_the_rest_is_shown(tmp_path: Path) -> None:
    path = tmp_path / "run.h5"
    writer = EpisodeWriter(path, HEADER)
    for number in range(3):
        writer.write(toy_episode(number))
    broken = parts_folder(path) / "000001.h5"
    broken.write_bytes(broken.read_bytes()[:700])
    source = open_source(parts_folder(path))
    about = source.about()
    assert [e["number"] for e in about["episodes"]] == [0, 2] and "000001.h5 is damaged" in about["damaged"][0]
    episode = source.episode(2)
    assert "--observe rgb" in episode["missing"] and episode["cameras"] == []
    assert [plot["title"] for plot in episode["plots"]] == ["actions", "reward"]  # as recorded before forces were kept
    source.close()
    with pytest.raises(DataError, match="no recording"):
        open_source(tmp_path / "none.h5")
    (tmp_path / "folder" / "meta").mkdir(parents=True)
    with pytest.raises(DataError, match=r"no LeRobotDataset.*info\.json"):
        open_source(tmp_path / "folder")


def test_words_that_mean_a_recording(tmp_path: Path) -> None:
    (tmp_path / "set/meta").mkdir(parents=True)
    for word in ("run.h5", "a/b.hdf5", "run.h5.parts", str(tmp_path / "set")):
        assert is_recording(word), word
    for word in ("PickCube-v2", "my_task.py:MyTask", "package.module:Task", str(tmp_path)):
        assert not is_recording(word), word


def test_the_page_needs_no_simulator(recording: Path) -> None:
    """In a fresh process: a list, an episode and a picture, and neither MuJoCo nor torch was loaded."""
    code = f"""
import http.client, sys
from manikin.cli.view import ViewOptions, run
def ready(viewer):
    for path in ("/", "/list", "/episode?number=0", "/picture.png?number=0&camera=cameras/base_camera/rgb&at=0"):
        connection = http.client.HTTPConnection("127.0.0.1", viewer.port)
        connection.request("GET", path)
        assert connection.getresponse().status == 200, path
    viewer.run = lambda: None
assert run(ViewOptions(task={str(recording)!r}), ready=ready) == 0
print(sorted({{"mujoco", "torch", "mujoco_warp"}} & sys.modules.keys()))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=True)
    assert done.stdout.splitlines()[-1] == "[]" and "12 episodes" in done.stdout


def test_a_lerobot_dataset_is_shown_and_a_missing_video_is_named(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    pytest.importorskip("av")
    from manikin.data.formats.lerobot import LeRobotWriter

    camera = "observation.images.base_camera"
    features: dict[str, Any] = {
        "action": ("float32", (2,), ["x", "y"]),
        "next.success": ("bool", (1,), None),
        camera: ("video", (48, 64, 3), None),
    }
    with LeRobotWriter(tmp_path / "set", fps=20, robot="toy", features=features) as writer:
        for number in range(3):
            length = 5 + number
            shade = np.linspace(20, 220, length).astype(np.uint8)[:, None, None, None]
            writer.write(
                number,
                "push",
                {
                    "action": np.full((length, 2), number, np.float32),
                    "next.success": (np.arange(length) > 3)[:, None],
                    camera: np.broadcast_to(shade, (length, 48, 64, 3)).copy(),
                },
            )
    source = open_source(tmp_path / "set")
    assert isinstance(source, LeRobotSource) and is_recording(str(tmp_path / "set"))
    assert [e["length"] for e in source.about()["episodes"]] == [5, 6, 7]
    episode = source.episode(1)
    assert episode["cameras"] == [camera] and episode["flags"]["next.success"] == [False] * 4 + [True] * 2
    assert episode["plots"][0]["lines"] == {"x": [1.0] * 6, "y": [1.0] * 6}
    for number, at in ((0, 0), (1, 5), (2, 3)):
        shade = np.linspace(20, 220, 5 + number)[at]
        assert abs(source.picture(number, camera, at).mean() - shade) < 6, (number, at)
    shutil.rmtree(tmp_path / "set/videos")
    with pytest.raises(DataError, match=r"episode 1: the video .*file-000\.mp4 is missing"):
        source.picture(1, camera, 0)
    assert source.episode(1) == episode  # the numbers are still there
    info = tmp_path / "set/meta/info.json"
    told = json.loads(info.read_text())
    for change, said in (
        ({"codebase_version": "v2.1"}, "it is of version v2.1"),
        ({"codebase_version": None}, "it is of version None"),
        ({"fps": "fast"}, "fast"),
    ):
        info.write_text(json.dumps(told | change))
        with pytest.raises(DataError, match=rf"no LeRobotDataset v3\.0 that can be read: .*{said}"):
            open_source(tmp_path / "set")
    info.write_text(json.dumps({name: value for name, value in told.items() if name != "fps"}))
    with pytest.raises(DataError, match="the entry 'fps' is missing"):
        open_source(tmp_path / "set")
    info.write_text(json.dumps(told))
    shutil.rmtree(tmp_path / "set/meta/episodes")
    with pytest.raises(DataError, match="lists no episode"):
        open_source(tmp_path / "set")
    info.unlink()
    (tmp_path / "set/meta/parts").mkdir()
    with pytest.raises(DataError, match=r"is not complete: manikin convert .* --resume"):
        open_source(tmp_path / "set")


def test_the_command_says_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line(["view", str(tmp_path / "none.h5")]) == 2
    assert "no recording" in capsys.readouterr().err
    (tmp_path / "none.h5").touch()
    assert command_line(["view", str(tmp_path / "none.h5"), "--film", "a.mp4"]) == 2
    assert "manikin replay FILE --video films a recording" in capsys.readouterr().err


# ---- a real browser ------------------------------------------------------------------------------------------------


def colour(page: Browser, camera: str) -> list[int]:
    """The middle pixel of a camera's canvas, and the instant it was drawn for."""
    return page.evaluate(
        f"(c => [...c.getContext('2d').getImageData(c.width / 2, c.height / 2, 1, 1).data.slice(0, 3), "
        f"Number(c.dataset.at)])(document.querySelector('canvas[data-camera=\"{camera}\"]'))"
    )


def inked(page: Browser, title: str) -> int:
    """How many different colours the plot of that title has."""
    return page.evaluate(
        f"(c => new Set(new Uint32Array(c.getContext('2d').getImageData(0, 0, c.width, c.height).data.buffer)).size)"
        f"(document.querySelector('.plot[data-title=\"{title}\"] canvas'))"
    )


@needs_browser
def test_the_page_in_a_browser_filters_plays_and_keeps_cameras_in_step(recording: Path) -> None:
    at = "document.getElementById('at').textContent"
    rows = "document.querySelectorAll('#rows tr').length"
    with served(recording) as viewer, Browser(size=(1280, 1000)) as page:
        page.goto(viewer.url)
        page.wait_for(f"{rows} === 12 && {at}.startsWith('0 / 20')")
        red, blue = CAMERAS
        page.wait_for(f"document.querySelector('canvas[data-camera=\"{red}\"]').dataset.at === '0'")
        assert page.evaluate("document.querySelectorAll('#cameras figure').length") == 3
        # seek: all cameras show the same instant, and the one that was asked for
        page.evaluate("seek(13)")
        page.wait_for("[...document.querySelectorAll('#cameras canvas')].every(c => c.dataset.at === '13')")
        there = seen_episode(0).observations or {}
        for name in (red, blue):
            assert colour(page, name) == [*there[name][13, 12, 16].tolist(), 13]
        assert f"{page.evaluate(at)}" == "13 / 20, 0.65 s"
        for title in ("actions", "joints", "contact force", "reward", "reward terms", "flags"):
            assert inked(page, title) > 4, title
        # the cursor's value: the press of the step that led here
        value = page.evaluate("document.querySelector('.plot[data-title=\"contact force\"] .legend b').textContent")
        assert float(value) == pytest.approx(seen_episode(0).forces["total"][12], abs=2e-3)
        # filters
        page.evaluate("(e => { e.value = 'dropped'; e.oninput(); })(document.getElementById('mode'))")
        page.wait_for(f"{rows} === 4")
        page.evaluate("(e => { e.value = ''; e.oninput(); })(document.getElementById('mode'))")
        page.evaluate("(e => { e.value = 'failure'; e.oninput(); })(document.getElementById('outcome'))")
        page.wait_for(f"{rows} === 6")
        page.click("#text")
        page.send("Input.insertText", text="1005")
        page.wait_for(f"{rows} === 1 && document.getElementById('count').textContent.startsWith('1 of 12')")
        page.click("#rows tr")
        page.wait_for(f"document.getElementById('title').textContent === 'Episode 5' && {at}.startsWith('0 / 20')")
        page.wait_for(f"document.querySelector('canvas[data-camera=\"{red}\"]').dataset.at === '0'")
        # play to the end at true speed, and stop there
        page.click("#play")
        page.wait_for(f"{at}.startsWith('20 / 20') && document.getElementById('play').textContent === 'Play'")
        assert colour(page, blue)[3] == colour(page, red)[3] == 20
        # drag over a plot
        x, y, width = page.evaluate(
            "(r => [r.x, r.y + r.height / 2, r.width])"
            "(document.querySelector('.plot[data-title=\"actions\"] canvas').getBoundingClientRect())"
        )
        page.mouse("mousePressed", x + 52 + (width - 60) / 2, y, button="left", clickCount=1, buttons=1)
        page.mouse("mouseReleased", x + 52 + (width - 60) / 2, y, button="left", clickCount=1)
        page.wait_for(f"{at}.startsWith('10 / 20')")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        # what the controls say has room: the words and 36 pixels for arrow and padding
        assert page.evaluate(
            "[...document.querySelectorAll('select, input[type=search]')].every(c => {"
            "  const pen = document.createElement('canvas').getContext('2d'); pen.font = getComputedStyle(c).font;"
            "  const said = c.placeholder || c.selectedOptions[0].textContent;"
            "  return pen.measureText(said).width + 36 <= c.clientWidth; })"
        )
        page.evaluate("(e => { e.value = ''; e.oninput(); })(document.getElementById('text'))")
        assert page.evaluate(
            "[...document.querySelectorAll('#rows td')].every(cell => cell.scrollWidth <= cell.clientWidth)"
        )
        assert not page.complaints()
        assert all(url.startswith((viewer.url, "data:")) for url in page.requested())
