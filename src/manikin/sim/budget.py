"""How much room the Warp world needs for contacts and constraints, counted on the CPU world.

MuJoCo Warp allocates fixed arrays: what does not fit is dropped. The CPU world has no such limits and counts exactly
what a state needs, so a few rows of it, moved through what a task does, say how large the arrays must be.
"""

from __future__ import annotations

import mujoco
import numpy as np

from manikin.compat.mujoco_warp import geom_pairs, takes_general_algorithm
from manikin.sim.warp.library import modules, supported
from manikin.sim.world import World
from manikin.spec.budget import Budget

__all__ = ["Meter"]

_SPARE, _ROOM = 8, 1.5  # rollouts of a few rows do not see everything
CONVEX_SPARE = 2  # and no factor: by far not all that are near each other touch, and rows share the room
_SIZES = tuple(m * 2**k for k in range(4, 20) for m in (1, 1.5))  # few, since kernels are compiled for each njmax


class Meter:
    """Watches a CPU world and remembers the most that any row needed.

    Args:
        world: on the CPU, where nothing is dropped.

    Attributes:
        contacts, constraints, pairs: largest numbers seen in one row: contacts, rows of constraints, and pairs of
            geoms whose bounds touch, which Warp keeps in the array of contacts too.
        convex: as ``pairs``, but of one kind of shapes that Warp's general algorithm for convex ones takes; None where
            the model has no such pair.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self.contacts = self.constraints = self.pairs = 0
        warp, mujoco_warp = modules()
        with warp.ScopedDevice("cpu"):
            put = mujoco_warp.put_model(supported(world.scene.model))
            pairs, always = geom_pairs(put)
        kinds = np.sort(world.scene.model.geom_type[pairs], axis=1)
        general = [kind for kind in {(int(a), int(b)) for a, b in kinds} if takes_general_algorithm(*kind)]
        of_kind = np.stack([(kinds == kind).all(1) for kind in general], 1) if general else np.zeros((len(pairs), 0))
        self.convex: int | None = int(of_kind[always].sum(0).max()) if general else None
        self.always_near, self._pairs = int(always.sum()), pairs[~always]
        self._always_convex, self._of_kind = of_kind[always].sum(0), of_kind[~always].astype(np.int64)

    def look(self) -> None:
        """Count in the present state of every row."""
        world = self._world
        self.contacts = max(self.contacts, int(world.read("ncon").max()))
        self.constraints = max(self.constraints, int(world.read("nefc").max()))
        if len(self._pairs):
            near = self.pairs_near()
            self.pairs = max(self.pairs, self.always_near + int(near.sum(1).max()))
            if self.convex is not None:
                self.convex = max(self.convex, int((self._always_convex + near @ self._of_kind).max()))

    def pairs_near(self) -> np.ndarray:
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
        contacts = room_for(self.contacts)
        pairs = max(contacts, room_for(self.pairs))
        convex = 0 if self.convex is None else self.convex + CONVEX_SPARE
        return Budget(nconmax=pairs, njmax=room_for(self.constraints), nccdmax=convex)


def room_for(seen: int) -> int:
    wanted = _ROOM * seen + _SPARE
    return int(next(size for size in _SIZES if size >= wanted))
