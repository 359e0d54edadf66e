"""The picture that a viewer shows: a camera of the scene or one moved by hand, one row or all of them side by side."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np

from manikin.errors import ConfigError, UnknownNameError
from manikin.eval.film import camera_of
from manikin.render.files.caption import caption
from manikin.render.files.video import tile
from manikin.render.renderer import Renderer
from manikin.render.view import View, view_of
from manikin.spec.camera import CameraSpec
from manikin.view.contacts import draw_touches, touches
from manikin.view.session import MOST_FORCE, Session

__all__ = ["FREE", "FreeCamera", "Painter", "free_camera", "word_colour"]

FREE = "free"
MOST_TILES = 16
EYES = 0.064  # [m] between a person's eyes
PULL = 50.0  # [m/s^2] for a body that is pulled over the height of the picture


def word_colour(word: str) -> tuple[int, int, int]:
    """Colour of an episode's outcome: green for success, red for failure, white while it runs."""
    return {"success": (110, 240, 120), "running": (255, 255, 255)}.get(word, (255, 130, 110))


@dataclass(frozen=True, eq=False)
class FreeCamera:
    """A camera that is moved about a point.

    Attributes:
        target: (3,) what it looks at [m].
        turn: about the vertical, of where it stands [rad].
        tilt: of where it stands above the horizontal [rad].
        distance: from the target [m].
        fovy: vertical field of view [rad].
    """

    target: np.ndarray
    turn: float
    tilt: float
    distance: float
    fovy: float

    def spec(self) -> CameraSpec:
        """Where it is."""
        c, s = math.cos(self.tilt), math.sin(self.tilt)
        pos = self.target + self.distance * np.array([c * math.cos(self.turn), c * math.sin(self.turn), s])
        return CameraSpec(name=FREE, pos=tuple(pos), target=tuple(self.target), fovy=self.fovy)

    def moved(self, *, turn: float, tilt: float, zoom: float, right: float, up: float) -> FreeCamera:
        """Turned and tilted [rad], at ``zoom`` times the distance, shifted by shares of the picture's height."""
        tilt, turn = min(1.5, max(-1.5, self.tilt + tilt)), self.turn + turn
        distance = min(20.0, max(0.05, self.distance * max(0.1, zoom)))
        sideways = np.array([-math.sin(turn), math.cos(turn), 0.0])
        upwards = np.array([-math.sin(tilt) * math.cos(turn), -math.sin(tilt) * math.sin(turn), math.cos(tilt)])
        reach = 2 * distance * math.tan(self.fovy / 2)  # what the picture's height spans at the target [m]
        return FreeCamera(self.target + reach * (right * sideways + up * upwards), turn, tilt, distance, self.fovy)


def free_camera(model: mujoco.MjModel, data: mujoco.MjData, camera: str | CameraSpec) -> FreeCamera:
    """A free camera that begins where ``camera`` is, to be moved about the middle of what can move."""
    view = view_of(model, data, camera, 64, 64)
    moving = [b for b in range(model.nbody) if model.body_weldid[b] != 0]
    middle = data.xpos[moving].mean(0) if moving else np.zeros(3)
    forward = view.rotation[:, 2]
    distance = max(0.2, float((middle - view.pos) @ forward))
    turn, tilt = math.atan2(-forward[1], -forward[0]), math.asin(max(-1.0, min(1.0, -forward[2])))
    return FreeCamera(
        view.pos + distance * forward, turn, tilt, distance, 2 * math.atan(view.height / 2 / view.K[1, 1])
    )


class Painter:
    """Makes pictures of a session. Painted by the thread that owns the simulation, asked by any.

    Args:
        session: what is shown.
        renderer: makes the pictures.
        width: [pixels].
        height: [pixels].

    Attributes:
        cameras: names to choose from; ``free`` is moved by hand.
        camera: the one in use.
        forces: whether contact forces are drawn.
        tiles: whether all rows are shown (at most sixteen) instead of the session's one.
        stereo: whether one row is shown twice side by side, for the left and the right eye.
    """

    wishes = ("camera", "forces", "tiles", "move", "stereo")

    def __init__(self, session: Session, renderer: Renderer, *, width: int = 640, height: int = 480) -> None:
        self.session, self.renderer, self.width, self.height = session, renderer, width, height
        model, data = session.look()
        self.people = camera_of(session.env)  # the camera for people: a name, or a view of our own
        named = [model.camera(i).name for i in range(model.ncam)]
        self.cameras = [*(name for name in named if name), FREE]
        self.camera: str = self.people if isinstance(self.people, str) else FREE
        self.forces, self.tiles, self.stereo = False, False, False
        self._free = free_camera(model, data, self.people)

    def ask(self, wish: str, **values: Any) -> None:
        """Ask for a change of the picture.

        Args:
            wish: ``camera`` (``value``: name), ``forces``, ``tiles`` or ``stereo`` (``value``: bool), or ``move`` the
                free camera (``turn``, ``tilt`` [rad], ``zoom`` factor of distance, ``right``, ``up`` in heights of
                the picture), which also chooses it.
            values: see there.

        Raises:
            UnknownNameError: no such wish or camera.
            ConfigError: a value that cannot work.
        """
        if wish == "camera":
            if values.get("value") not in self.cameras:
                raise UnknownNameError("camera", values.get("value"), self.cameras)
            self.camera = values["value"]
        elif wish in ("forces", "tiles", "stereo"):
            if not isinstance(values.get("value"), bool):
                raise ConfigError(f"{wish} must be true or false; got {values.get('value')!r}")
            setattr(self, wish, values["value"])
        elif wish == "move":
            self._move(values)
        else:
            raise UnknownNameError("wish", wish, self.wishes)

    def paint(self) -> tuple[np.ndarray, list[dict[str, Any]]]:
        """The picture (height, width, 3) uint8 as things are now, and the contacts of the row in view."""
        session = self.session
        model, data = session.look()
        pairs = touches(model, data)
        listed = [
            {"on": t.names[1], "by": t.names[0], "newtons": round(t.newtons, 2), "points": t.points} for t in pairs
        ]
        if not self.tiles or session.env.num_envs == 1:
            shown = pairs if self.forces else []
            if not self.stereo:
                return self._one(model, data, self.width, self.height, shown), listed
            eyes = [self._one(model, data, self.width, self.height, shown, aside) for aside in (-EYES / 2, EYES / 2)]
            return np.concatenate(eyes, 1), listed
        words = session.status["words"]
        rows = range(min(session.env.num_envs, MOST_TILES))
        columns = math.ceil(math.sqrt(len(rows)))
        width, height = 3 * self.width // (2 * columns), 3 * self.height // (2 * columns)
        pictures = []
        for row in rows:
            model, data = session.look(row)
            image = self._one(model, data, width, height, touches(model, data) if self.forces else [])
            label = str(row) if words[row] == "running" else f"{row} {words[row]}"
            pictures.append(caption(image, [label], scale=max(1, width // 160), colours=[word_colour(words[row])]))
        return tile(pictures, columns), listed

    def touched(self, x: float, y: float, right: float, up: float) -> tuple[str, list[float]] | None:
        """The body under a place of the picture, and the force (3,) [N] of pulling it across the picture.

        Args:
            x: share of the picture's width, from the left.
            y: share of its height, from the top.
            right: how far it is pulled, in heights of the picture; one asks of a free body for ``PULL`` [m/s^2].
            up: likewise.

        Returns:
            None where nothing that moves is seen, or all rows are shown.
        """
        if self.tiles and self.session.env.num_envs > 1:
            return None
        model, data = self.session.look()
        view = self.view(model, data, self.width, self.height)
        ray = view.rays(np.array(x * view.width - 0.5), np.array(y * view.height - 0.5))
        geom = np.array([-1], np.int32)
        shown = np.array([1, 1, 1, 0, 0, 0], np.uint8)
        mujoco.mj_ray(model, data, view.pos, ray, shown, True, -1, geom)
        body = int(model.geom_bodyid[geom[0]]) if geom[0] >= 0 else 0
        if model.body(body).name not in self.session.bodies:
            return None
        force = PULL * float(model.body_mass[body]) * (right * view.rotation[:, 0] - up * view.rotation[:, 1])
        return model.body(body).name, np.clip(force, -MOST_FORCE, MOST_FORCE).tolist()

    def _one(
        self,
        model: mujoco.MjModel,
        data: mujoco.MjData,
        width: int,
        height: int,
        pairs: list[Any],
        aside: float = 0.0,
    ) -> np.ndarray:
        view = self.view(model, data, width, height)
        if aside:
            view = View(view.pos + aside * view.rotation[:, 0], view.rotation, view.K, view.width, view.height)
        image = self.renderer.rgb(model, data, view)
        if pairs:
            draw_touches(image, view, pairs)
        return image

    def view(self, model: mujoco.MjModel, data: mujoco.MjData, width: int, height: int) -> View:
        """Where the picture is taken from, at another size [pixels]."""
        if self.camera != FREE:
            return view_of(model, data, self.camera, width, height)
        return view_of(model, data, self._free.spec(), width, height)

    def _move(self, values: dict[str, Any]) -> None:
        names = ("turn", "tilt", "zoom", "right", "up")
        given = {name: values.get(name, 1.0 if name == "zoom" else 0.0) for name in names}
        for name, value in given.items():
            if not isinstance(value, int | float) or not math.isfinite(value) or abs(value) > 100:
                raise ConfigError(f"{name} must be a moderate number; got {value!r}")
        self._free, self.camera = self._free.moved(**given), FREE
