"""A task as a page of HTML: what it shows is decoded and measured."""

from __future__ import annotations

import base64
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from manikin.assets.paths import data_root
from manikin.assets.pictures import read_picture
from manikin.cli import main
from manikin.render import write_png

HAS_PHOTOGRAPHS = data_root() is not None and (data_root() / "simpler" / "real_inpainting").is_dir()


class Page(HTMLParser):
    """The pictures with their captions, the tables' rows, and all addresses of a page."""

    def __init__(self, path: Path, folder: Path) -> None:
        super().__init__()
        self.text, self.folder = path.read_text(), folder
        self.pictures: dict[str, np.ndarray] = {}
        self.rows: list[list[str]] = []
        self.addresses: list[str] = []
        self.tags: set[str] = set()
        self._in, self._image = "", ""
        self.feed(self.text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href")]
        if tag == "img":
            self._image = dict(attrs)["src"] or ""
        elif tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")
        self._in = tag if tag in ("td", "th", "figcaption") else "" if tag == "p" else self._in

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th", "figcaption"):
            self._in = ""

    def handle_data(self, data: str) -> None:
        if self._in in ("td", "th"):
            self.rows[-1][-1] += data
        elif self._in == "figcaption" and self._image:
            file = self.folder / f"{len(self.pictures)}.png"
            file.write_bytes(base64.b64decode(self._image.removeprefix("data:image/png;base64,")))
            self.pictures[data], self._image = read_picture(file), ""

    def row(self, name: str) -> list[str]:
        (found,) = [row for row in self.rows if row and row[0] == name]
        return found


def written(tmp_path: Path, task: str, *words: str) -> Page:
    path = tmp_path / "pages" / "page.html"
    assert main(["info", task, "--page", str(path), *words]) == 0
    return Page(path, tmp_path)


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No data, and a Menagerie without robots."""
    (tmp_path / "menagerie").mkdir()
    monkeypatch.delenv("MANIKIN_DATA", raising=False)
    monkeypatch.setenv("MENAGERIE_ROOT", str(tmp_path / "menagerie"))


def colours(picture: np.ndarray) -> np.ndarray:
    return np.unique(picture.reshape(-1, 3), axis=0)


def test_a_page_of_any_task_shows_picture_segmentation_objects_and_cameras(tmp_path: Path, capsys) -> None:
    page = written(tmp_path, "PickCube-v2")
    assert "# PickCube-v2" not in page.text and f"wrote {tmp_path}" in capsys.readouterr().out
    assert all(address.startswith("data:image/png;base64,") for address in page.addresses)
    assert not page.tags & {"script", "link", "iframe"}
    assert list(page.pictures) == ["what is drawn; a policy sees 128 x 128", "segmentation"]
    drawn, segmentation = page.pictures.values()
    assert drawn.shape == segmentation.shape == (384, 384, 3)
    assert len(colours(segmentation)) == 4 and len(colours(drawn)) > 100  # table, floor, robot, cube
    # a cube of 4 cm of 1000 kg/m^3, on its side
    assert page.row("cube")[1:] == ["shapes of the task", "box", "64 g", "40 x 40 x 40", "1"]
    assert page.row("robot")[1] == "stand-in: primitives" and page.row("floor")[4] == "no end"
    assert not [row for row in page.rows if row and row[0] == "goal_marker"]  # nothing that is there
    camera = page.row("base_camera")
    assert camera[1] == "world" and camera[2] == camera[3] and camera[4].startswith("128 x 128, 90.0°64.0, 64.0, 63.5")
    assert page.row("hand_camera")[1] == "robot/hand"


def test_without_the_photograph_the_page_says_what_is_missing(tmp_path: Path, without: None) -> None:
    page = written(tmp_path, "WidowXSpoonOnTowel-v2")
    assert "needs the photograph MANIKIN_DATA/simpler/real_inpainting/bridge_real_eval_1.png" in page.text
    assert list(page.pictures) == ["what is drawn; a policy sees 640 x 480", "segmentation"]
    # masses of the original's objects, sizes of their boxes (SIMPLER's models) within the stand-ins' rounding
    assert page.row("spoon")[1::2] == ["primitive stand-in", "42.3 g", "0.5"]
    assert page.row("towel")[1:] == ["primitive stand-in", "box", "28 g", "101 x 101 x 11", "0.5"]
    assert page.row("trials")[1] == "24, by number"
    assert "photograph: the simulated scene" in page.text and "table: a box" in page.text


def test_the_composed_picture_is_the_photograph_but_where_something_is_drawn(
    tmp_path: Path, without: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "data" / "simpler" / "real_inpainting"
    folder.mkdir(parents=True)
    photograph = np.random.default_rng(0).integers(0, 255, (480, 640, 3), np.uint8)
    write_png(folder / "bridge_real_eval_1.png", photograph)
    monkeypatch.setenv("MANIKIN_DATA", str(tmp_path / "data"))
    page = written(tmp_path, "WidowXSpoonOnTowel-v2", "--seed", "3")
    shown, composed, drawn, segmentation = page.pictures.values()
    assert next(iter(page.pictures)) == "photograph: bridge_real_eval_1.png, 640 x 480"
    assert np.array_equal(shown, photograph)
    same = (composed == photograph).all(2)
    things = {tuple(segmentation[y, x]) for y, x in zip(*np.nonzero(~same), strict=True)}
    assert len(things) == 3  # robot, spoon, towel
    drawn_there = np.isin(segmentation @ (1, 256, 65536), [np.dot(rgb, (1, 256, 65536)) for rgb in things])
    assert np.array_equal(composed[drawn_there], drawn[drawn_there]) and same[~drawn_there].all()
    assert "trials='grid', look='matched'" in page.row("its options")[1] and "seed 3" in page.row("this page")[1]
    assert "stand-in: primitives" in page.row("robot") and "Missing." in page.text  # no Menagerie
    plain = written(tmp_path, "WidowXSpoonOnTowel-v2", "--config", "look=plain")
    assert len(plain.pictures) == 2 and "photograph:" not in "".join(plain.pictures)


def test_a_trial_at_the_cabinet_has_the_photograph_of_its_pose(
    tmp_path: Path, without: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "data" / "simpler" / "real_inpainting"
    folder.mkdir(parents=True)
    for k, name in enumerate(("a0", "a1", "a2", "b0", "b1", "b2", "c0", "c1", "c2")):
        write_png(folder / f"open_drawer_{name}.png", np.full((256, 320, 3), 20 * k, np.uint8))
    monkeypatch.setenv("MANIKIN_DATA", str(tmp_path / "data"))
    page = written(tmp_path, "GoogleCloseDrawer-v1", "--seed", "22")  # 22 = 2 x 9 + 4: bottom drawer, b1
    caption, shown = next(iter(page.pictures.items()))
    assert caption == "photograph: open_drawer_b1.png, 320 x 256" and (shown == 80).all()
    assert "close bottom drawer" in page.text
    assert page.pictures["what a policy sees, 640 x 512"][0, 0].tolist() == [80, 80, 80]


@pytest.mark.skipif(not HAS_PHOTOGRAPHS, reason="MANIKIN_DATA has no photographs of SIMPLER")
@pytest.mark.parametrize(("task", "photograph"), [("WidowXEggplantInBasket-v2", "bridge_sink.png, 640 x 480")])
def test_real_photographs_and_meshes_are_on_the_page(tmp_path: Path, task: str, photograph: str) -> None:
    page = written(tmp_path, task)
    assert next(iter(page.pictures)) == f"photograph: {photograph}" and len(page.pictures) == 4
    assert page.row("eggplant")[1:] == [
        "mesh, MANIKIN_DATA/simpler, in one colour",
        "hull",
        "21.5 g",
        "79 x 37 x 38",
        "0.5",
    ]
    assert page.row("sink")[2] == "82 hulls"


def test_a_part_with_candidates_has_a_row_for_each(tmp_path: Path, without: None) -> None:
    page = written(tmp_path, "GooglePickObject-v1")
    rows = [row for row in page.rows if row and row[0].startswith("object: ")]
    assert len(rows) == 14 and page.row("object: apple")[1:4] == ["primitive stand-in", "sphere", "218 g"]
    assert len(re.findall("<b>object: ", page.text)) == 1  # the one of this start


def test_what_cannot_be_written_or_shown_is_said(tmp_path: Path, without: None, capsys) -> None:
    def failed(*words: str) -> str:
        assert main(["info", *words]) == 2
        return capsys.readouterr().err

    assert "Did you mean 'PickCube-v2'" in failed("PickCub-v2", "--page", str(tmp_path / "a.html"))
    assert "--page writes HTML files" in failed("PickCube-v2", "--page", str(tmp_path / "a.png"))
    (tmp_path / "file").touch()
    place = tmp_path / "file" / "a.html"
    assert f"cannot write {place}" in failed("PickCube-v2", "--page", str(place))
    page = str(tmp_path / "a.html")
    assert "needs the photograph" in failed("WidowXSpoonOnTowel-v2", "--page", page, "--config", "look=matched")
    assert not Path(page).exists()
