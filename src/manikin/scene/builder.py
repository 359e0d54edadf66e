"""Compose a scene from robots, parts, cameras and questions; compile it once; hand out typed handles."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import mujoco
import numpy as np

from manikin.assets.compiled import compiled
from manikin.errors import SceneError, UnknownNameError
from manikin.scene.cameras import add_camera
from manikin.scene.candidates import TYPES, Candidates
from manikin.scene.delays import delayed
from manikin.scene.gel import Gel
from manikin.scene.handles import sensors
from manikin.scene.handles.articulation import Articulation
from manikin.scene.handles.base import Handle, Scope, Variable
from manikin.scene.handles.dots import Dots
from manikin.scene.handles.forces import declare_link_forces
from manikin.scene.handles.grasp import ContactForce, Grasp
from manikin.scene.handles.part import Marker, Part
from manikin.scene.handles.robot import Robot
from manikin.scene.handles.tool import RobotTool, equip
from manikin.scene.handles.variant import VariantPart
from manikin.scene.questions import add_contact_sensor
from manikin.scene.robot import assemble, folders
from manikin.scene.settings import set_physics
from manikin.scene.shapes import SURFACE, add_shapes
from manikin.scene.varying import Variation, factors
from manikin.sim.dots import RGBA, DotGroup
from manikin.spec.camera import CameraSpec
from manikin.spec.physics import Physics
from manikin.spec.prop import Prop, Shape
from manikin.spec.robot import GripperSpec, RobotSpec
from manikin.spec.scene import CompiledScene
from manikin.spec.vary import Choice, Vary

__all__ = ["SceneBuilder"]

H = TypeVar("H", bound=Handle)
_AUTOMATIC_GRASPS = 32  # forty contact sensors cost nothing measurable


@dataclass
class SceneBuilder:
    """Declares what a scene consists of; every method returns a handle.

    Args:
        robots: (arm, gripper, from Menagerie?) of each robot the user chose; ``robot()`` takes them in order.
        physics: solver options.
        torque: of each robot, the arm joints driven by torque; the others have position servos.
    """

    robots: Sequence[tuple[RobotSpec, GripperSpec | None, bool]]
    physics: Physics
    torque: Sequence[Collection[str]] = ()
    handles: list[Handle] = field(default_factory=list)
    variables: list[Variable] = field(default_factory=list)
    variations: list[Variation] = field(default_factory=list)
    cameras: dict[str, CameraSpec] = field(default_factory=dict)
    robot_handles: list[Robot] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.scope = Scope()
        self.spec = mujoco.MjSpec()
        self.spec.copy_during_attach = True
        set_physics(self.spec, self.physics)
        self.graspable: list[Part] = []  # whose grasps are asked about though no task declares them
        self._names: set[str] = set()

    # ---- things ----------------------------------------------------------------------------------------------------

    def robot(
        self,
        *,
        pos: Sequence[float] | None = None,
        quat: Sequence[float] | None = None,
        name: str = "robot",
        gains: Vary | None = None,
        damping: Vary | None = None,
        finger_friction: Vary | None = None,
        foot_friction: Vary | None = None,
        trunk_mass: Vary | None = None,
        declared: Callable[[RobotSpec], RobotSpec] | None = None,
    ) -> Robot:
        """The next robot the user chose, its base at ``pos`` and ``quat``; default the robot file's place.

        These vary per episode, as factors of the robot's own, with which controllers and plans go on: ``gains`` of the
        position servos, ``damping`` of the driven joints (one number, or one each), ``finger_friction`` of the fingers,
        ``foot_friction`` of the feet, ``trunk_mass`` of the heaviest link with its inertia.

        ``declared`` returns the declaration with what the task has otherwise, such as gains or a delay.
        """
        if len(self.robot_handles) >= len(self.robots):
            raise SceneError(f"the scene asks for {len(self.robots) + 1} robots but {len(self.robots)} were chosen")
        arm, gripper, menagerie = self.robots[len(self.robot_handles)]
        arm = arm if declared is None else declared(arm)
        torque = self.torque[len(self.robot_handles)] if self.torque else ()
        model = delayed(assemble(arm, gripper, menagerie=menagerie, torque=torque), self.physics.hz)
        for geom in model.spec.geoms:
            geom.solref[:2] = self.physics.solref
        pos, quat = (arm.base_pos if pos is None else pos), (arm.base_quat if quat is None else quat)
        prefix = f"{self._claim(name)}/"
        self.spec.attach(model.spec, frame=self.spec.worldbody.add_frame(pos=pos, quat=quat), prefix=prefix)
        handle = Robot(self.scope, name, model, prefix, pos, quat)
        self.robot_handles.append(handle)
        self.handles += equip(self.spec, handle)
        self.variations += factors(
            handle,
            gains=gains,
            damping=damping,
            finger_friction=finger_friction,
            foot_friction=foot_friction,
            trunk_mass=trunk_mass,
        )
        handle.forces = self._add(declare_link_forces(self.spec, handle))
        return self._add(handle)

    def part(
        self,
        name: str,
        shapes: Sequence[Shape],
        *,
        kind: str = "dynamic",
        pos: Sequence[float] = (0, 0, 0),
        quat: Sequence[float] = (1, 0, 0, 0),
        mass: float | Vary | None = None,
        density: float = 1000.0,
        friction: float | Vary = 1.0,
        rgba: Sequence[float] | Vary = (0.7, 0.7, 0.7, 1),
        resizable: bool = False,
        collide: bool = True,
        looks: Sequence[Shape] = (),
        rests_on: Sequence[Shape] = (),
        on: Robot | None = None,
    ) -> Part:
        """An object made of primitives and meshes. ``kind`` is dynamic, kinematic (moved by the task) or fixed.

        ``mass`` [kg] overrides ``density`` [kg/m^3] (one shape only). ``mass``, ``friction`` and ``rgba`` may vary per
        episode; ``resizable`` allows ``set_size`` and ``set_offsets``. ``looks`` are seen instead of the shapes; they
        neither collide nor weigh anything. With ``on`` the part is fixed to a robot's TCP, ``pos`` and ``quat`` in it.

        ``rests_on`` are few simple shapes that touch a ``surface`` (see :meth:`fixture`) instead of the many that a
        compound is made of. They touch nothing else and weigh nothing. Their hull must be that of the shapes.
        """
        if rests_on and (isinstance(friction, Vary) or resizable or not collide):
            raise SceneError(f"{name}: a part with rests_on has one friction and one size, and collides")
        if on is not None:
            kind = "fixed"
        if kind not in ("dynamic", "kinematic", "fixed"):
            raise UnknownNameError("kind of part", kind, ("dynamic", "kinematic", "fixed"))
        parent = self.spec.worldbody if on is None else self.spec.body(on.prefix + on.model.tcp_body)
        body = parent.add_body(name=self._claim(name), pos=pos, quat=quat, mocap=kind == "kinematic")
        if kind == "dynamic":
            body.add_freejoint(name=name)
        if on is not None:
            body.gravcomp = float(on.arm.gravcomp)
        colour = (0.7, 0.7, 0.7, 1) if isinstance(rgba, Vary) else tuple(rgba)
        slide = 1.0 if isinstance(friction, Vary) else friction
        names = add_shapes(
            self.spec,
            body,
            name,
            shapes,
            colour=colour,
            friction=slide,
            mass=mass if isinstance(mass, int | float) else None,
            density=density,
            collide=collide,
            looks=looks,
            rests_on=rests_on,
        )
        size = None
        if resizable:
            size = self.variable(f"size/{name}", (3,) if len(shapes) == 1 else (len(shapes), 3), persist=True)
        fixed = mass if isinstance(mass, int | float) else None
        handle = self._add(Part(self.scope, name, kind=kind, geoms=names, size=size, mass=fixed))
        for what, how in (("mass", mass), ("friction", friction), ("rgba", rgba)):
            if isinstance(how, Vary):
                self.variations.append(Variation(handle, what, how))
        if kind == "dynamic":
            self.graspable.append(handle)
        return handle

    def mesh(
        self,
        name: str,
        *,
        choice: Sequence[Prop],
        kind: str = "dynamic",
        pos: Sequence[float] = (0, 0, 0),
        quat: Sequence[float] = (1, 0, 0, 0),
        draw: bool = True,
    ) -> VariantPart:
        """An object that is another one in every row: drawn for each episode, all of ``choice`` equally likely.

        All rows share one layout, so candidates may differ in shapes, size, mass, friction and looks, not in joints.
        ``kind`` is dynamic or kinematic. ``draw=False`` leaves the choice to the task, which calls ``set_choice`` in
        ``start``, also to say which rows have the object at all.
        """
        if kind not in ("dynamic", "kinematic"):
            raise UnknownNameError("kind of chosen part", kind, ("dynamic", "kinematic"))
        bank = Candidates(name, choice)
        body = self.spec.worldbody.add_body(name=self._claim(name), pos=pos, quat=quat, mocap=kind == "kinematic")
        if kind == "dynamic":
            body.add_freejoint(name=name)
        bank.declare(self.spec, body)
        chosen, absent = (self.variable(f"{word}/{name}", persist=True) for word in ("choice", "absent"))
        place = sum(isinstance(h, VariantPart) for h in self.handles)
        handle = self._add(
            VariantPart(self.scope, name, kind=kind, bank=bank, choice=chosen, absent=absent, place=place)
        )
        if draw:
            self.variations.append(Variation(handle, "choice", Choice(tuple(range(len(choice))))))
        if kind == "dynamic":
            self.graspable.append(handle)
        return handle

    def articulation(
        self,
        name: str,
        model: mujoco.MjSpec,
        *,
        pos: Sequence[float] = (0, 0, 0),
        quat: Sequence[float] = (1, 0, 0, 0),
        collide: Sequence[tuple[str, str]] = (),
        on: Robot | None = None,
    ) -> Articulation:
        """A fixed thing with joints that no robot drives: a cabinet, a door. With ``on`` it is fixed to a robot's TCP,
        ``pos`` and ``quat`` in that frame: a pole on a cart.

        Its root is the first body of ``model``, which stays in place; of its bodies only the pairs named in ``collide``
        collide. Sites mark places to ask for. Rows share their joints; for rows with other joints a task declares
        ``layouts``.
        """
        bodies = [b.name for b in model.bodies[1:]]
        joints, frames = [j.name for j in model.joints], [s.name for s in model.sites]
        if not joints:
            raise SceneError(f"{name} has no joints: declare it with b.part")
        prefix = f"{self._claim(name)}/"
        mount = self.spec.worldbody if on is None else self.spec.body(on.prefix + on.model.tcp_body)
        self.spec.attach(model, frame=mount.add_frame(pos=pos, quat=quat), prefix=prefix)
        for one, two in itertools.combinations(bodies, 2):
            if (one, two) in collide or (two, one) in collide:
                continue
            self.spec.add_exclude(bodyname1=prefix + one, bodyname2=prefix + two)
        return self._add(Articulation(self.scope, name, prefix=prefix, joints=joints, frames=frames, links=bodies))

    def box(self, name: str, *, half_size: Sequence[float] | Vary, **options: Any) -> Part:
        """A box of half size (3,) [m], a cube of one that varies; options as for :meth:`part`."""
        return self._primitive(name, "box", half_size, 3, options)

    def sphere(self, name: str, *, radius: float | Vary, **options: Any) -> Part:
        """A ball of ``radius`` [m]; options as for :meth:`part`."""
        return self._primitive(name, "sphere", radius, 1, options)

    def cylinder(self, name: str, *, size: Sequence[float] | Vary, **options: Any) -> Part:
        """A cylinder of (radius, half length) [m] along z; options as for :meth:`part`."""
        return self._primitive(name, "cylinder", size, 2, options)

    def _primitive(self, name: str, kind: str, size: Any, width: int, options: dict[str, Any]) -> Part:
        if not isinstance(size, Vary):
            return self.part(name, [Shape(type=kind, size=tuple(np.atleast_1d(size).tolist()))], **options)
        middle = getattr(size, "mean", None) or getattr(size, "high", None) or size.options[0]  # type: ignore[union-attr]
        what = "side" if kind == "box" and np.ndim(middle) == 0 else "size"
        middle = np.broadcast_to(np.asarray(middle, float), (width,))
        handle = self.part(name, [Shape(type=kind, size=tuple(middle.tolist()))], **{**options, "resizable": True})
        first = next((i for i, v in enumerate(self.variations) if v.part is handle), len(self.variations))
        self.variations.insert(first, Variation(handle, what, size))  # a mass that varies is set after it
        return handle

    def marker(
        self,
        name: str,
        *,
        shape: str = "sphere",
        size: Sequence[float] = (0.02,),
        rgba: Sequence[float] = (0, 1, 0, 0.5),
    ) -> Marker:
        """A shape for human eyes only, moved with ``set_pose``: in no observation, in no contact."""
        body = self.spec.worldbody.add_body(name=self._claim(name), mocap=True)
        body.add_site(name=name, type=TYPES[shape], size=[*size, 0, 0][:3], rgba=rgba, group=0)
        return self._add(Marker(self.scope, name))

    def dots(self, name: str, *, count: int, radius: float, height: float, rgba: RGBA) -> Dots:
        """Up to ``count`` dots on surfaces, which all pictures show and no physics knows; none is shown at the start.

        A dot colours what lies within ``radius`` [m] of it sideways and ``height`` [m] up and down, as ink does."""
        group = DotGroup(self._claim(name), count, radius, height, rgba)
        group.declare(self.spec)
        handle = Dots(self.scope, group)
        self.variables.append(handle)
        return self._add(handle)

    def fixture(self, name: str, shape: Shape, *, surface: bool = False, **geom: Any) -> None:
        """Part of the world that nobody asks about: a table top, a wall. ``geom`` are MuJoCo geom attributes.

        On a ``surface`` things lie: compound parts touch it with their ``rests_on``.
        """
        if surface:
            geom = {"contype": SURFACE[0], "conaffinity": SURFACE[1], **geom}
        self.spec.worldbody.add_geom(
            name=self._claim(name),
            type=TYPES[shape.type],
            size=[*shape.size, 0, 0][:3],
            pos=shape.pos,
            quat=shape.quat,
            rgba=shape.rgba or (0.7, 0.7, 0.7, 1),
            priority=-1,  # what touches it brings the friction; MuJoCo would take the larger of the two
            **geom,
        )

    def camera(
        self, camera: CameraSpec, *, on: Part | Robot | None = None, link: str | None = None, replace: bool = False
    ) -> CameraSpec:
        """Declare a camera; its name is what ``env.image`` and observations use.

        Args:
            camera: fixed in the world, or in the frame of what its ``on`` names.
            on: fix it to this part or robot instead; a robot's base, or its ``link``.
            link: name of a body of the robot.
            replace: take the place of a camera of that name; else a second one is an error.
        """
        if on is not None:
            where = f"{on.prefix}{link or on.model.base_body}" if isinstance(on, Robot) else on.name
            camera = dataclasses.replace(camera, on=where)
        if camera.name in self.cameras and not replace:
            raise SceneError(f"two cameras are named {camera.name!r}")
        self.cameras[camera.name] = camera
        return camera

    def robot_cameras(self, robot: Robot) -> list[CameraSpec]:
        """Declare the cameras that the robot's arm and gripper bring, for example ``hand_camera``.

        A second robot's are named ``name/hand_camera``.
        """
        found = []
        for camera in itertools.chain(
            robot.arm.cameras, *(t.gripper.cameras for t in robot.tools.values() if t.gripper)
        ):
            name = camera.name if camera.name not in self.cameras else f"{robot.name}/{camera.name}"
            found.append(self.camera(dataclasses.replace(camera, name=name), on=robot, link=camera.on))
        return found

    def variable(
        self, name: str, shape: tuple[int, ...] = (), *, persist: bool = False, initial: float = 0.0
    ) -> Variable:
        """A per-row float32 value of the task, (n, *shape); starts each episode at ``initial`` unless ``persist``."""
        handle = Variable(self.scope, name, shape, persist=persist, initial=initial)
        self.variables.append(handle)
        return self._add(handle)

    # ---- questions about contact: sensors, which must exist before compiling ----------------------------------------

    def grasp(
        self,
        robot: Robot | RobotTool,
        part: Part | Articulation,
        *,
        shapes: Sequence[int] = (),
        link: str = "",
        min_force: float = 0.5,
        max_angle: float = 85.0,
    ) -> Grasp:
        """Ask whether the robot's gripper holds the part: a finger on each side presses >=
        ``min_force`` [N] within ``max_angle`` [deg] of its closing direction. ``shapes`` are numbers of the part's
        shapes where only some of them count; ask the answer, not the robot. Of an articulation ``link`` is held."""
        if robot.gripper is None or not robot.gripper.fingers:
            raise SceneError(f"{robot.name} has no gripper, so it cannot grasp {part.name!r}")
        if isinstance(part, Articulation) and link not in part.links:
            raise UnknownNameError(f"link of {part.name}", link, part.links)
        geoms = [] if isinstance(part, Articulation) else [part.geom_names[k] for k in shapes]
        handle = Grasp(self.scope, robot, part, min_force, max_angle, geoms, link)
        for question in handle.sensors():
            add_contact_sensor(self.spec, *question, finger=True, geom=bool(shapes))
        if isinstance(part, Part) and not shapes:
            robot.grasps[part.name] = handle
        return self._add(handle)

    def contact_force(
        self, first: Part | Robot, second: Part | Robot | Articulation | None, *, link: str | None = None
    ) -> ContactForce:
        """Ask for the net force of ``first`` on ``second`` (n, 3) [N], in the world. Of a robot that is first, or an
        articulation that is second, ``link`` and what hangs on it can be asked about alone. ``second`` None is all
        fixtures together: table, floor, walls."""
        name = (
            f"contact/{first.name}{'' if link is None else '/' + link}/{'fixtures' if second is None else second.name}"
        )
        one, two = _body_of(first), "world" if second is None else _body_of(second)
        if link is not None and isinstance(first, Robot):
            one = first.prefix + link
        elif link is not None and isinstance(second, Articulation):
            two = second.prefix + link
        add_contact_sensor(self.spec, name, one, two)
        return self._add(ContactForce(self.scope, name, one, two))

    # ---- sensors of touch ------------------------------------------------------------------------------------------

    def force_torque(self, robot: Robot) -> sensors.ForceTorque:
        """A force-torque sensor between the robot's flange and its gripper."""
        return self._sense(sensors.ForceTorque(self.scope, robot), sensors.declare_force_torque)

    def touch(self, robot: Robot) -> sensors.Touch:
        """Normal force on each finger's pads."""
        return self._sense(sensors.Touch(self.scope, robot), sensors.declare_touch)

    def tactile(
        self,
        robot: Robot,
        *,
        finger: int | str = 0,
        parts: Sequence[Part] | None = None,
        resolution: tuple[int, int] = (64, 64),
        size: tuple[float, float] | None = None,
        gel: Gel | None = None,
    ) -> sensors.Tactile:
        """A gel fingertip on a finger's pad.

        Args:
            robot: whose.
            finger: its number, or the name of its body.
            parts: what it can feel, made of primitives; None for every colliding part declared so far.
            resolution: (H, W) taxels.
            size: (height, width) of the image [m]; None for the whole pad, without which pressure at its rim is lost.
            gel: thickness and stiffness.
        """
        if parts is None:
            parts = [h for h in self.handles if type(h) is Part and self.spec.geom(h.geom_names[0]).contype]
        if not parts:
            raise SceneError("a tactile fingertip needs parts to feel: declare them before it")
        if min(resolution) < 2:
            raise SceneError(f"a tactile image needs at least 2 x 2 taxels, not {resolution}")
        handle = sensors.Tactile(
            self.scope,
            robot,
            sensors.finger_number(robot, finger),
            parts,
            resolution=resolution,
            size=size,
            gel=gel or Gel(),
        )
        return self._sense(handle, sensors.declare_tactile)

    def _sense(self, handle: H, declare: Callable[[mujoco.MjSpec, H], None]) -> H:
        self._claim(handle.name)
        declare(self.spec, handle)
        return self._add(handle)

    # ---- compiling -------------------------------------------------------------------------------------------------

    def compile(self) -> CompiledScene:
        """Compile. Raises :class:`SceneError` with MuJoCo's message, which names the part."""
        for robot in self.robot_handles:
            for tool in robot.tools.values():
                for part in self.graspable[:_AUTOMATIC_GRASPS] if tool.gripper and tool.gripper.fingers else ():
                    if part.name not in tool.grasps:
                        self.grasp(robot if tool.model is robot.model.tools[0] else tool, part)
        for camera in self.cameras.values():
            add_camera(self.spec, camera, self.robot_handles)
        try:
            model = compiled(self.spec, folders=folders(self.robots))
        except (ValueError, mujoco.FatalError) as error:
            raise SceneError(f"the scene does not compile: {error}") from error
        return CompiledScene.from_model(model)

    def xml(self) -> str:
        """The compiled scene as MJCF. Raises :class:`SceneError` when MuJoCo cannot write it as text."""
        try:
            return str(self.spec.to_xml())
        except (ValueError, mujoco.FatalError) as error:
            raise SceneError(f"the scene cannot be written as MJCF: {error}") from error

    def bind(self, world: Any) -> None:
        """Connect every handle to a world of the compiled scene."""
        self.scope.world = world
        for handle in sorted(self.handles, key=lambda h: not isinstance(h, Variable)):  # parts keep sizes in variables
            handle.bind(world.scene.model)

    def _claim(self, name: str) -> str:
        if name in self._names:
            raise SceneError(f"two things in the scene are named {name!r}")
        self._names.add(name)
        return name

    def _add(self, handle: H) -> H:
        self.handles.append(handle)
        return handle


def _body_of(handle: Part | Robot | Articulation) -> str:
    """Name of the body that carries all of a thing."""
    if isinstance(handle, Robot):
        return f"{handle.prefix}{handle.model.base_body}"
    return handle.root if isinstance(handle, Articulation) else handle.name
