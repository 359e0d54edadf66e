"""The cameras of all rows of a world on MuJoCo Warp, drawn by its ray tracer where the world lies.

Nothing is copied: the tracer reads the world's own Model and Data, and the pictures stay on its device.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mujoco
import numpy as np
import torch
from torch import Tensor

from manikin.errors import DivergedError
from manikin.render.backends.dots import lay_dots
from manikin.render.backends.shading import see_through
from manikin.render.backends.warp import WarpScene, lightened
from manikin.render.renderer import check_outputs
from manikin.render.view import View, mount_of, view_of
from manikin.sim.dots import dot_groups
from manikin.sim.warp.world import WarpWorld
from manikin.spec.camera import CameraSpec

__all__ = ["OUTPUTS", "TracedCameras"]

OUTPUTS = frozenset({"rgb", "depth", "segmentation"})
_LENS = frozenset({"cam_fovy", "cam_intrinsic"})
_PAINT = frozenset({"geom_rgba", "mat_rgba", "geom_matid"})


class TracedCameras:
    """Pictures of every row by one launch per camera.

    Args:
        world: the rows.
        cameras: with their names in the model, or as specs, see :class:`manikin.render.rig.CameraRig`.
        outputs: of ``rgb``, ``depth``, ``segmentation``.
        samples, shadows: see :func:`manikin.render.make_renderer`.

    Raises:
        ConfigError: MuJoCo Warp cannot draw the model.
    """

    def __init__(
        self,
        world: WarpWorld,
        cameras: Sequence[tuple[CameraSpec, str | CameraSpec]],
        outputs: tuple[str, ...],
        *,
        samples: int = 1,
        shadows: bool = False,
    ) -> None:
        check_outputs("warp", outputs, OUTPUTS)
        self._world, self._cameras, self._outputs, self._samples = world, tuple(cameras), outputs, samples
        model = world.scene.model
        self.name = f"warp ({world.device})"
        device = "cpu" if world.device.type == "cpu" else str(world.device)
        self._scene = WarpScene(
            lightened(model), worlds=world.num_worlds, shadows=shadows, device=device, of=world.posed()
        )
        flat = model.geom_type == int(mujoco.mjtGeom.mjGEOM_PLANE)
        self._flat = torch.as_tensor(flat, device=world.device)
        self._glass, self._dots = see_through(model), dot_groups(model)
        self._compiled = mujoco.MjData(model)  # only says what lens a camera has
        mujoco.mj_kinematics(model, self._compiled)
        mujoco.mj_comPos(model, self._compiled)
        mujoco.mj_camlight(model, self._compiled)

    def memory_per_row(self) -> int:
        """See :meth:`manikin.render.backends.warp.WarpScene.memory_per_world`."""
        return self._scene.memory_per_world()

    def render(self) -> dict[str, dict[str, Tensor]]:
        """Per camera the outputs of all rows, ``K`` and ``T``, on the world's device.

        Raises:
            DivergedError: a row's state is not finite.
        """
        world = self._world
        for field in ("qpos", "mocap_pos", "mocap_quat"):
            finite = torch.isfinite(world.read(field)).flatten(1).all(1)
            if not bool(finite.all()):
                bad = torch.nonzero(~finite).flatten().tolist()
                raise DivergedError(f"rows {bad[:10]} cannot be drawn: their state is not finite")
        m, d = world.posed()
        return {camera.name: self._draw(m, d, camera, look) for camera, look in self._cameras}

    def _draw(self, m: Any, d: Any, camera: CameraSpec, look: str | CameraSpec) -> dict[str, Tensor]:
        pos, rotation = self._pose(d, look)
        view = view_of(self._world.scene.model, self._compiled, look, camera.width, camera.height)  # lens and size
        found: dict[str, Tensor] = {}
        if "rgb" in self._outputs:
            fine = view.enlarged(self._samples)
            found = self._coloured(m, d, look, fine, pos, rotation)
            if self._dots:
                shown = [(group, self._world.dots[group.name]) for group in self._dots]
                found["rgb"] = lay_dots(found["rgb"], found["depth"], self._K(m, look, fine), pos, rotation, shown)
            if self._samples > 1:
                s = self._samples
                blocks = found["rgb"].view(-1, view.height, s, view.width, s, 3).float()
                found["rgb"] = (blocks.mean((2, 4)) + 0.5).to(torch.uint8)
        if "rgb" not in self._outputs or (self._samples > 1 and len(self._outputs) > 1):
            found |= self._traced(m, d, look, view, pos, rotation, rgb=False)
        out = {word: found[word] for word in self._outputs}
        T = torch.zeros(len(pos), 4, 4, device=pos.device)
        T[:, :3, :3], T[:, :3, 3], T[:, 3, 3] = rotation, pos, 1
        return {**out, "K": self._K(m, look, view), "T": T}

    def _K(self, m: Any, look: str | CameraSpec, view: View) -> Tensor:
        """(N, 3, 3) intrinsics [pixels]."""
        lenses, world = self._lenses(m, look, view), self._world
        if lenses is None:
            lenses = torch.as_tensor(view.K, dtype=torch.float32).to(world.device).repeat(world.num_worlds, 1, 1)
        return lenses

    def _traced(
        self, m: Any, d: Any, look: str | CameraSpec, view: View, pos: Tensor, rotation: Tensor, *, rgb: bool = True
    ) -> dict[str, Tensor]:
        lenses = self._lenses(m, look, view)
        return self._scene.render(m, d, view.K, pos, rotation, view.width, view.height, rgb=rgb, lenses=lenses)

    def _coloured(
        self, m: Any, d: Any, look: str | CameraSpec, view: View, pos: Tensor, rotation: Tensor
    ) -> dict[str, Tensor]:
        """Colour, depth and segmentation; what is see-through is laid over what lies behind it."""
        out = self._traced(m, d, look, view, pos, rotation)
        if self._glass is None and not self._world.varied & _PAINT:
            return out
        alpha = self._scene.colours(m)[..., 3]
        alpha = torch.where(self._flat, alpha, 1 - (1 - alpha) ** 2)  # seen through two faces, as surfaces_of has it
        clear = (alpha > 0) & (alpha < 1)
        # of nothing, and of each geom
        opacity = torch.nn.functional.pad(torch.where(clear, alpha, 1.0), (1, 0), value=1.0)
        seen = out["segmentation"].flatten(1).long()
        opacity = opacity.gather(1, seen).view(*out["segmentation"].shape, 1)
        if bool((opacity < 1).any()):
            behind = self._traced(self._scene.without(m, clear), d, look, view, pos, rotation)["rgb"]
            out["rgb"] = (opacity * out["rgb"] + (1 - opacity) * behind + 0.5).to(torch.uint8)
        return out

    def _lenses(self, m: Any, look: str | CameraSpec, view: View) -> Tensor | None:
        """(N, 3, 3) intrinsics [pixels] where rows have their own, by the rules of :func:`view_of`."""
        world = self._world
        if not isinstance(look, str) or not world.varied & _LENS:
            return None
        model = world.scene.model
        number, size = int(model.camera(look).id), (view.width, view.height)
        K = torch.as_tensor(view.K, dtype=torch.float32, device=world.device).repeat(world.num_worlds, 1, 1)
        sensor = model.cam_sensorsize[number].astype(float)
        if sensor[1] == 0:
            half = torch.deg2rad(self._scene.tensor(m.cam_fovy)[:, number]) / 2
            K[:, 0, 0] = K[:, 1, 1] = view.height / 2 / torch.tan(half)
            return K
        values = self._scene.tensor(m.cam_intrinsic)[:, number]
        for axis in (0, 1):
            K[:, axis, axis] = values[:, axis] * (size[axis] / sensor[axis])
            K[:, axis, 2] = (0.5 - values[:, 2 + axis] / sensor[axis]) * size[axis] - 0.5
        return K

    def _pose(self, d: Any, look: str | CameraSpec) -> tuple[Tensor, Tensor]:
        """Optical centres (N, 3) and rotations (N, 3, 3), columns right, down, forward."""
        model, tensor = self._world.scene.model, self._scene.tensor
        if isinstance(look, str):
            number = int(model.camera(look).id)
            frame = tensor(d.cam_xmat)[:, number]
            return tensor(d.cam_xpos)[:, number].clone(), frame * frame.new_tensor([1.0, -1.0, -1.0])
        body = mount_of(model, look) if look.on else 0
        frame, at = tensor(d.xmat)[:, body], tensor(d.xpos)[:, body]
        rotation, pos = (torch.as_tensor(np.array(a), dtype=torch.float32, device=at.device) for a in
                         (look.rotation, look.pos))  # fmt: skip
        return at + frame @ pos, frame @ rotation
