"""manikin: robot manipulation from an idea to a number that can be trusted.

Importing manikin makes its tasks known to Gymnasium and loads neither torch nor MuJoCo; those come with the first
name that needs them. Torch's threads then spin only briefly where they wait for each other (``GOMP_SPINCOUNT``, unless
the environment says otherwise): by default they spin so long that they stop all else on a busy machine.
"""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any

from manikin import moved
from manikin._version import __version__
from manikin.env.registry import register_gymnasium

if TYPE_CHECKING:
    from manikin.env.env import Env
    from manikin.env.interface import BatchEnv
    from manikin.env.make import make
    from manikin.env.options import EnvOptions
    from manikin.env.registry import register
    from manikin.env.task import Episode, Quantity, Task
    from manikin.errors import ManikinError
    from manikin.policy.api import Policy
    from manikin.scene.builder import SceneBuilder
    from manikin.scene.handles import Marker, Part, Robot, Variable
    from manikin.scene.handles.articulation import Articulation
    from manikin.scene.handles.dots import Dots
    from manikin.scene.handles.grasp import ContactForce, Grasp
    from manikin.scene.handles.named import Handles
    from manikin.scene.handles.variant import VariantPart
    from manikin.spec.budget import Budget
    from manikin.spec.camera import CameraSpec
    from manikin.spec.labels import Event, Labels, Mode
    from manikin.spec.physics import Physics
    from manikin.spec.plan import Segment, Waypoint
    from manikin.spec.prop import Mesh, Prop, Shape
    from manikin.spec.robot import ArmSpec, GripperSpec
    from manikin.spec.vary import Choice, Normal, Uniform

__all__ = [
    "ArmSpec",
    "Articulation",
    "BatchEnv",
    "Budget",
    "CameraSpec",
    "Choice",
    "VariantPart",
    "ContactForce",
    "Dots",
    "Env",
    "Episode",
    "Event",
    "Grasp",
    "EnvOptions",
    "GripperSpec",
    "Handles",
    "Labels",
    "ManikinError",
    "Marker",
    "Mesh",
    "Mode",
    "Normal",
    "Part",
    "Physics",
    "Policy",
    "Prop",
    "Quantity",
    "Robot",
    "SceneBuilder",
    "Segment",
    "Shape",
    "Task",
    "Uniform",
    "Variable",
    "Waypoint",
    "__version__",
    "make",
    "register",
]

# name -> the module it lives in; keep in step with the imports above, which are for type checkers
_LAZY = {
    "ArmSpec": "manikin.spec.robot",
    "Articulation": "manikin.scene.handles.articulation",
    "Budget": "manikin.spec.budget",
    "CameraSpec": "manikin.spec.camera",
    "Choice": "manikin.spec.vary",
    "VariantPart": "manikin.scene.handles.variant",
    "ContactForce": "manikin.scene.handles.grasp",
    "Dots": "manikin.scene.handles.dots",
    "Env": "manikin.env.env",
    "Episode": "manikin.env.task",
    "Event": "manikin.spec.labels",
    "Grasp": "manikin.scene.handles.grasp",
    "BatchEnv": "manikin.env.interface",
    "EnvOptions": "manikin.env.options",
    "GripperSpec": "manikin.spec.robot",
    "Handles": "manikin.scene.handles.named",
    "Labels": "manikin.spec.labels",
    "ManikinError": "manikin.errors",
    "Marker": "manikin.scene.handles",
    "Mesh": "manikin.spec.prop",
    "Mode": "manikin.spec.labels",
    "Normal": "manikin.spec.vary",
    "Part": "manikin.scene.handles",
    "Physics": "manikin.spec.physics",
    "Policy": "manikin.policy.api",
    "Prop": "manikin.spec.prop",
    "Quantity": "manikin.env.task",
    "Robot": "manikin.scene.handles",
    "SceneBuilder": "manikin.scene.builder",
    "Segment": "manikin.spec.plan",
    "Shape": "manikin.spec.prop",
    "Task": "manikin.env.task",
    "Uniform": "manikin.spec.vary",
    "Variable": "manikin.scene.handles",
    "Waypoint": "manikin.spec.plan",
    "make": "manikin.env.make",
    "register": "manikin.env.registry",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        value = getattr(importlib.import_module(_LAZY[name]), name)
        globals()[name] = value  # looked up once
        return value
    if name in moved.NAMES["manikin"]:
        return moved.old_names("manikin", frames=4)(name)
    raise AttributeError(f"module 'manikin' has no attribute {name!r}; it has: {', '.join(__all__)}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


if "OMP_WAIT_POLICY" not in os.environ:
    os.environ.setdefault("GOMP_SPINCOUNT", "1000")
moved.install()
register_gymnasium()
