"""How much room the Warp world needs for contacts and constraints, counted on the CPU world.

MuJoCo Warp allocates fixed arrays: what does not fit is dropped. The CPU world has no such limits and counts exactly
what a state needs, so a few rows of it, moved through what a task does, say how large the arrays must be.
"""

from __future__ import annotations

import mujoco
import numpy as np

from manikin.sim.warp_library import modules, supported
from manikin.sim.world import World
from manikin.spec.budget import Budget

__all__ = ["Meter"]

_SPARE, _ROOM = 8, 1.5  # rollouts of a few rows do not see everything
_SIZES = tuple(m * 2**k for k in range(4, 20) for m in (1, 1.5))  # few, since kernels are compiled for each njmax


class Meter:
    """Watches a CPU world and remembers the most that any row needed.

    Args:
        world: on the CPU, where nothing is dropped.

    Attributes:
        contacts, constraints, pairs: largest numbers seen in one row: contacts, rows of constraints, and pairs of
            geoms whose bounds touch, which Warp keeps in the array of contacts too.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self.contacts = self.constraints = self.pairs = 0
        warp, mujoco_warp = modules()
        with warp.ScopedDevice("cpu"):
            put = mujoco_warp.put_model(supported(world.scene.model))
            pairs, ids = put.nxn_geom_pair_filtered.numpy(), put.nxn_pairid_filtered.numpy()  # Warp's own list
        always = ids[:, 1] >= 0  # asked for by a sensor of distance
        self._always, self._pairs = int(always.sum()), pairs[~always]

    def look(self) -> None:
        """Count in the present state of every row."""
        world = self._world
        self.contacts = max(self.contacts, int(world.read("ncon").max()))
        self.constraints = max(self.constraints, int(world.read("nefc").max()))
        if len(self._pairs):
            self.pairs = max(self.pairs, self._always + int(self._near().sum(1).max()))

    def _near(self) -> np.ndarray:
        """(N, pairs) bool: bounding spheres and boxes along the world's axes touch. Warp's boxes are turned with the
        geoms, so that it keeps no more than these."""
        world, model = self._world, self._world.scene.model
        n, count = world.num_worlds, model.ngeom
        pos = world.read("geom_xpos").numpy().reshape(n, count, 3)
        turn = world.read("geom_xmat").numpy().reshape(n, count, 3, 3)
        bound = world.model_field("geom_rbound").reshape(n, count)
        reach = (world.model_field("geom_margin") + world.model_field("geom_gap")).reshape(n, count)
        box = world.model_field("geom_aabb").reshape(n, count, 6)
        centre = pos + np.einsum("ngij,ngj->ngi", turn, box[..., :3])
        half = np.einsum("ngij,ngj->ngi", np.abs(turn), box[..., 3:])
        a, b = self._pairs.T
        margin = reach[:, a] + reach[:, b]
        far = np.linalg.norm(pos[:, a] - pos[:, b], axis=-1) > bound[:, a] + bound[:, b] + margin
        apart = (np.abs(centre[:, a] - centre[:, b]) > half[:, a] + half[:, b] + margin[..., None]).any(-1)
        near = ~far & ~apart
        for plane, other in ((a, b), (b, a)):
            at = np.flatnonzero(model.geom_type[plane] == int(mujoco.mjtGeom.mjGEOM_PLANE))
            if len(at):
                p, o = plane[at], other[at]
                height = ((pos[:, o] - pos[:, p]) * turn[..., 2][:, p]).sum(-1)
                near[:, at] = height <= bound[:, o] + margin[:, at]
        return near

    def budget(self) -> Budget:
        """What was seen, with headroom, rounded up."""
        contacts = _room(self.contacts)
        pairs = max(contacts, _room(self.pairs))
        convex = None if self._world.scene.model.nhfield else contacts  # a height field takes many at once
        return Budget(nconmax=pairs, njmax=_room(self.constraints), nccdmax=convex)


def _room(seen: int) -> int:
    wanted = _ROOM * seen + _SPARE
    return int(next(size for size in _SIZES if size >= wanted))
