"""Old names: every module and name that has moved, and where it is now.

Old names work for one release and warn with a DeprecationWarning that says the new one. To move a module, use
``git mv`` and add a line to ``MODULES``. Where some of its names went elsewhere, or a package took over its name, add
those names to ``NAMES``. ``tests/house/test_moved.py`` imports every old name.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

__all__ = ["MODULES", "NAMES", "install", "old_names"]

MODULES: dict[str, str] = {
    "manikin.author.trial": "manikin.author.under_test",
    "manikin.cli.checks": "manikin.cli.common.checks",
    "manikin.cli.chosen": "manikin.cli.common.options",
    "manikin.cli.documented": "manikin.cli.common.documented",
    "manikin.cli.offline": "manikin.cli.evaluation.offline",
    "manikin.cli.options": "manikin.cli.common.options",
    "manikin.cli.terminal": "manikin.cli.common.terminal",
    "manikin.control.jerk": "manikin.control.numerics.jerk",
    "manikin.control.law": "manikin.control.numerics.law",
    "manikin.control.native": "manikin.control.numerics.native",
    "manikin.control.operational_code": "manikin.control.numerics.operational_code",
    "manikin.control.straight": "manikin.control.numerics.operational_code",
    "manikin.data.block": "manikin.data.recording.block",
    "manikin.data.compare": "manikin.data.replay.compare",
    "manikin.data.convert": "manikin.data.formats.convert",
    "manikin.data.demonstrations": "manikin.data.formats.demonstrations",
    "manikin.data.durable": "manikin.data.recording.durable",
    "manikin.data.format": "manikin.data.recording.format",
    "manikin.data.formats.stage": "manikin.data.formats.importers",
    "manikin.data.health": "manikin.data.replay.health",
    "manikin.data.labels": "manikin.data.recording.labels",
    "manikin.data.lerobot": "manikin.data.formats.lerobot",
    "manikin.data.maniskill": "manikin.data.formats.maniskill",
    "manikin.data.maniskill_actions": "manikin.data.formats.maniskill_actions",
    "manikin.data.outside": "manikin.data.recording.outside",
    "manikin.data.play": "manikin.data.replay.play",
    "manikin.data.playback": "manikin.data.formats.playback",
    "manikin.data.read": "manikin.data.recording.read",
    "manikin.data.record": "manikin.data.recording.write",
    "manikin.data.rerecord": "manikin.data.replay.rerecord",
    "manikin.data.robomimic": "manikin.data.formats.robomimic",
    "manikin.data.scope": "manikin.data.replay.scope",
    "manikin.data.stage": "manikin.data.formats.importers",
    "manikin.data.text": "manikin.data.recording.text",
    "manikin.data.track": "manikin.data.retarget.track",
    "manikin.data.trajectories": "manikin.data.formats.trajectories",
    "manikin.env.agents": "manikin.env.adapters.agents",
    "manikin.env.bucket": "manikin.env.layouts.env",
    "manikin.env.card": "manikin.author.card",
    "manikin.env.checker": "manikin.author.checker",
    "manikin.env.compare": "manikin.author.compare",
    "manikin.env.graph": "manikin.env.loop.graph",
    "manikin.env.layouts.snapshot": "manikin.env.state.layouts",
    "manikin.env.loop_device": "manikin.env.loop.device",
    "manikin.env.loop_rows": "manikin.env.loop.rows",
    "manikin.env.numpy_view": "manikin.env.adapters.numpy_view",
    "manikin.env.parallel": "manikin.env.adapters.parallel",
    "manikin.env.promises": "manikin.author.contracts",
    "manikin.env.provenance": "manikin.env.state.provenance",
    "manikin.env.raw": "manikin.author.raw",
    "manikin.env.sheet": "manikin.author.sheet",
    "manikin.env.single": "manikin.env.adapters.single",
    "manikin.env.speed": "manikin.author.speed",
    "manikin.env.trial": "manikin.author.under_test",
    "manikin.env.window": "manikin.env.adapters.window",
    "manikin.eval.html": "manikin.eval.pages.report",
    "manikin.eval.html_parts": "manikin.eval.pages.parts",
    "manikin.eval.shown": "manikin.eval.picture_options",
    "manikin.learn.common.advantage": "manikin.learn.common.numerics.advantage",
    "manikin.learn.common.average": "manikin.learn.common.numerics.average",
    "manikin.learn.common.critics": "manikin.learn.common.numerics.critics",
    "manikin.learn.common.demonstrations": "manikin.learn.common.data.demonstrations",
    "manikin.learn.common.finite": "manikin.learn.common.numerics.finite",
    "manikin.learn.common.frames": "manikin.learn.common.data.frames",
    "manikin.learn.common.keyframes": "manikin.learn.common.data.keyframes",
    "manikin.learn.common.moments": "manikin.learn.common.numerics.moments",
    "manikin.learn.common.recorded_steps": "manikin.learn.common.data.recorded_steps",
    "manikin.learn.common.replay": "manikin.learn.common.data.replay",
    "manikin.learn.common.schedule": "manikin.learn.common.numerics.schedule",
    "manikin.policy.archive": "manikin.policy.files.archive",
    "manikin.policy.checkpoint": "manikin.policy.files.checkpoint",
    "manikin.policy.onnx_file": "manikin.policy.files.onnx",
    "manikin.policy.operators": "manikin.policy.files.operators",
    "manikin.policy.program": "manikin.policy.files.program",
    "manikin.policy.random": "manikin.policy.random_policy",
    "manikin.policy.server": "manikin.policy.remote.server",
    "manikin.policy.wire": "manikin.policy.remote.wire",
    "manikin.render.backdrop": "manikin.render.backends.backdrop",
    "manikin.render.backends.lists": "manikin.render.backends.display_lists",
    "manikin.render.caption": "manikin.render.files.caption",
    "manikin.render.filament": "manikin.render.backends.filament",
    "manikin.render.gl": "manikin.render.backends.gl",
    "manikin.render.kept": "manikin.render.asset_cache",
    "manikin.render.lists": "manikin.render.backends.display_lists",
    "manikin.render.meshes": "manikin.render.backends.meshes",
    "manikin.render.rays": "manikin.render.backends.rays",
    "manikin.render.rgb": "manikin.render.backends.rgb",
    "manikin.render.shading": "manikin.render.backends.shading",
    "manikin.render.solids": "manikin.render.backends.solids",
    "manikin.render.traced": "manikin.render.backends.traced",
    "manikin.render.video": "manikin.render.files.video",
    "manikin.render.warp": "manikin.render.backends.warp",
    "manikin.robots.check": "manikin.author.robot.check",
    "manikin.robots.film": "manikin.author.robot.film",
    "manikin.robots.finding": "manikin.author.robot.finding",
    "manikin.robots.own": "manikin.robots.from_files",
    "manikin.robots.own_base": "manikin.robots.from_files_base",
    "manikin.robots.tried": "manikin.author.robot.tried",
    "manikin.scene.articulation": "manikin.scene.handles.articulation",
    "manikin.scene.bank": "manikin.scene.candidates",
    "manikin.scene.chosen": "manikin.scene.handles.variant",
    "manikin.scene.forces": "manikin.scene.handles.forces",
    "manikin.scene.grasp": "manikin.scene.handles.grasp",
    "manikin.scene.handles.chosen": "manikin.scene.handles.variant",
    "manikin.scene.handles.team": "manikin.scene.handles.combined",
    "manikin.scene.sensors": "manikin.scene.handles.sensors",
    "manikin.scene.team": "manikin.scene.handles.combined",
    "manikin.scene.tool": "manikin.scene.handles.tool",
    "manikin.sim.warp.room": "manikin.sim.warp.capacity",
    "manikin.sim.warp_arm": "manikin.sim.warp.kernels.arm",
    "manikin.sim.warp_channel": "manikin.sim.warp.channel",
    "manikin.sim.warp_contacts": "manikin.sim.warp.kernels.contacts",
    "manikin.sim.warp_library": "manikin.sim.warp.library",
    "manikin.sim.warp_model": "manikin.sim.warp.model",
    "manikin.sim.warp_room": "manikin.sim.warp.capacity",
    "manikin.sim.warp_solve": "manikin.sim.warp.kernels.solve",
    "manikin.spec.segments": "manikin.spec.plan",
    "manikin.sysid.collins": "manikin.fidelity.recordings.motions",
    "manikin.tasks.labels": "manikin.toolkit.labels",
    "manikin.tasks.robosuite.staged": "manikin.tasks.robosuite.staged_reward",
    "manikin.tasks.tabletop.common": "manikin.toolkit",
    "manikin.tasks.tabletop.open_cabinet_drawer": "manikin.tasks.cabinets.open_cabinet_drawer",
    "manikin.tasks.two_arms": "manikin.toolkit.two_arms",
}
"""Old module -> new module."""

NAMES: dict[str, dict[str, str]] = {
    "manikin": {
        "ChosenPart": "manikin.scene.handles.variant:VariantPart",
    },
    "manikin.assets.meshes": {
        "Surface": "manikin.assets.meshes:TriangleMesh",
    },
    "manikin.author.trial": {
        "Run": "manikin.author.under_test:WatchedEpisodes",
        "Trial": "manikin.author.under_test:TaskUnderTest",
    },
    "manikin.cli.checks": {
        "Finding": "manikin.cli.common.checks:Diagnosis",
    },
    "manikin.cli.chosen": {
        "arm_in": "manikin.cli.common.options:robot_in_file",
        "chosen_robot": "manikin.cli.common.options:load_robot",
        "chosen_task": "manikin.cli.common.options:load_task",
        "own_robot": "manikin.cli.common.options:register_robot_file",
    },
    "manikin.cli.evaluate": {
        "Job": "manikin.cli.evaluation.one",
        "chosen_protocol": "manikin.cli.evaluation.one",
    },
    "manikin.cli.new": {
        "names": "manikin.author.scaffold",
        "write_task": "manikin.author.scaffold",
    },
    "manikin.cli.report": {
        "evaluate_several": "manikin.cli.evaluation.several",
        "names_of": "manikin.cli.evaluation.several",
    },
    "manikin.control": {
        "Part": "manikin.control.composite:GroupController",
    },
    "manikin.control.composite": {
        "Part": "manikin.control.composite:GroupController",
        "Group": "manikin.control.group:RobotGroup",
        "GroupChain": "manikin.control.group",
        "check_groups": "manikin.control.group",
    },
    "manikin.control.group": {
        "Group": "manikin.control.group:RobotGroup",
    },
    "manikin.data.block": {"merge_blocks": "manikin.data.recording.merge"},
    "manikin.data.demonstrations": {
        "Demo": "manikin.data.formats.demos",
        "Demos": "manikin.data.formats.demos",
        "arrays": "manikin.data.formats.demos",
        "numbers": "manikin.data.formats.demos",
    },
    "manikin.data.format": {
        "Episode": "manikin.data.recording.format:RecordedEpisode",
    },
    "manikin.data.formats.importers": {
        "TWINS": "manikin.data.formats.importers:TASK_MAPPINGS",
        "Twin": "manikin.data.formats.importers:TaskMapping",
    },
    "manikin.data.formats.maniskill_actions": {
        "Mode": "manikin.data.formats.maniskill_actions:ActionMode",
    },
    "manikin.data.formats.playback": {
        "Seen": "manikin.data.formats.playback:PlaybackResult",
    },
    "manikin.data.formats.stage": {
        "TWINS": "manikin.data.formats.importers:TASK_MAPPINGS",
        "Twin": "manikin.data.formats.importers:TaskMapping",
        "ManiSkillStage": "manikin.data.formats.importers:ManiSkillImporter",
        "RecordedStage": "manikin.data.formats.importers:RecordingImporter",
        "RobosuiteStage": "manikin.data.formats.importers:RobosuiteImporter",
        "Stage": "manikin.data.formats.importers:StateImporter",
        "stage_for": "manikin.data.formats.importers:importer_for",
    },
    "manikin.data.formats.trajectories": {
        "Trajectories": "manikin.data.formats.trajectories:ManiSkillDemos",
    },
    "manikin.data.labels": {
        "keep_recorded": "manikin.data.replay.environment",
    },
    "manikin.data.maniskill_actions": {
        "Mode": "manikin.data.formats.maniskill_actions:ActionMode",
    },
    "manikin.data.play": {
        "Moved": "manikin.data.replay.play:ControlStep",
    },
    "manikin.data.playback": {
        "Seen": "manikin.data.formats.playback:PlaybackResult",
    },
    "manikin.data.record": {
        "Recorder": "manikin.data.recorder",
        "largest_episode": "manikin.data.recorder",
    },
    "manikin.data.recording.block": {"merge_blocks": "manikin.data.recording.merge"},
    "manikin.data.recording.format": {
        "Episode": "manikin.data.recording.format:RecordedEpisode",
    },
    "manikin.data.replay": {
        "EpisodeReplay": "manikin.data.replay.verify",
        "OF_TASK": "manikin.data.replay.environment",
        "ReplayReport": "manikin.data.replay.verify",
        "make_env": "manikin.data.replay.environment",
        "recorded_task": "manikin.data.replay.environment",
        "replay": "manikin.data.replay.verify",
        "source_of": "manikin.data.replay.verify",
    },
    "manikin.data.replay.play": {
        "Moved": "manikin.data.replay.play:ControlStep",
    },
    "manikin.data.retarget": {
        "ConversionReport": "manikin.data.retarget.conversion",
        "EpisodeConversion": "manikin.data.retarget.conversion",
        "RESIDUALS": "manikin.data.recording.format",
        "retarget": "manikin.data.retarget.conversion",
    },
    "manikin.data.stage": {
        "TWINS": "manikin.data.formats.importers:TASK_MAPPINGS",
        "Twin": "manikin.data.formats.importers:TaskMapping",
        "ManiSkillStage": "manikin.data.formats.importers:ManiSkillImporter",
        "RecordedStage": "manikin.data.formats.importers:RecordingImporter",
        "RobosuiteStage": "manikin.data.formats.importers:RobosuiteImporter",
        "Stage": "manikin.data.formats.importers:StateImporter",
        "stage_for": "manikin.data.formats.importers:importer_for",
    },
    "manikin.data.track": {
        "RESIDUALS": "manikin.data.recording.format",
    },
    "manikin.data.trajectories": {
        "Trajectories": "manikin.data.formats.trajectories:ManiSkillDemos",
    },
    "manikin.deploy": {
        "Run": "manikin.deploy.loop:RobotRun",
    },
    "manikin.deploy.loop": {
        "Run": "manikin.deploy.loop:RobotRun",
    },
    "manikin.env.agents": {
        "Shares": "manikin.env.shares",
    },
    "manikin.env.bucket": {
        "BucketEnv": "manikin.env.layouts.env:LayoutEnv",
        "BucketSnapshot": "manikin.env.state.layouts:LayoutSnapshot",
    },
    "manikin.env.loop": {
        "COUNTERS": "manikin.env.loop.base",
        "Loop": "manikin.env.loop.base",
        "Step": "manikin.env.loop.base",
    },
    "manikin.env.observe": {
        "Observer": "manikin.env.observe.observer:ObservationBuilder",
    },
    "manikin.env.observe.observer": {
        "Observer": "manikin.env.observe.observer:ObservationBuilder",
    },
    "manikin.env.provenance": {"machine": "manikin.machine", "processor": "manikin.machine"},
    "manikin.env.registry": {
        "make": "manikin.env.make",
    },
    "manikin.env.state": {
        "check_sizes": "manikin.env.state.saving",
        "checked_states": "manikin.env.state.saving",
        "load": "manikin.env.state.saving",
        "put": "manikin.env.state.saving",
        "save": "manikin.env.state.saving",
        "size_of": "manikin.env.state.saving",
    },
    "manikin.env.state.provenance": {"machine": "manikin.machine", "processor": "manikin.machine"},
    "manikin.env.trial": {
        "Run": "manikin.author.under_test:WatchedEpisodes",
        "Trial": "manikin.author.under_test:TaskUnderTest",
    },
    "manikin.eval.journal": {
        "Kept": "manikin.eval.journal:JournaledTask",
    },
    "manikin.eval.offline": {
        "ActionError": "manikin.eval.offline:OfflineResult",
    },
    "manikin.eval.planning": {
        "Plan": "manikin.eval.planning:EpisodePlan",
    },
    "manikin.eval.shown": {
        "hashed_shown": "manikin.eval.picture_options:hashed_picture_options",
        "shown_options": "manikin.eval.picture_options:picture_options",
    },
    "manikin.learn.run.sweep": {
        "Variant": "manikin.learn.run.sweep:RecipeVariant",
    },
    "manikin.plan.timing": {
        "Trajectory": "manikin.plan.timing:TimedPath",
    },
    "manikin.policy.remote": {
        "RemotePolicy": "manikin.policy.remote.client",
    },
    "manikin.props.files.checks": {
        "Check": "manikin.props.files.checks:ObjectCheck",
    },
    "manikin.render.kept": {
        "Kept": "manikin.render.asset_cache:AssetCache",
    },
    "manikin.robots": {
        "Robot": "manikin.robots:RobotSelection",
        "team": "manikin.robots:parse_robots",
    },
    "manikin.scene.bank": {
        "Bank": "manikin.scene.candidates:Candidates",
    },
    "manikin.scene.chosen": {
        "ChosenPart": "manikin.scene.handles.variant:VariantPart",
    },
    "manikin.scene.handles": {
        "View": "manikin.scene.handles.named:Handles",
    },
    "manikin.scene.handles.chosen": {
        "ChosenPart": "manikin.scene.handles.variant:VariantPart",
    },
    "manikin.scene.handles.team": {
        "Team": "manikin.scene.handles.combined:CombinedRobot",
    },
    "manikin.scene.handles.tool": {
        "ImuHandle": "manikin.scene.handles.tool:RobotImu",
    },
    "manikin.scene.looks.distractors": {
        "Clutter": "manikin.scene.looks.distractors:DistractorSlots",
    },
    "manikin.scene.team": {
        "Team": "manikin.scene.handles.combined:CombinedRobot",
    },
    "manikin.scene.tool": {
        "ImuHandle": "manikin.scene.handles.tool:RobotImu",
    },
    "manikin.scene.varying": {
        "Servos": "manikin.scene.handles.servos",
    },
    "manikin.sense.tactile": {
        "Light": "manikin.sense.tactile:GelLight",
    },
    "manikin.sim.warp": {
        "Rows": "manikin.sim.warp.channel",
        "WarpWorld": "manikin.sim.warp.world",
    },
    "manikin.sim.warp.room": {
        "Room": "manikin.sim.warp.capacity:Capacity",
    },
    "manikin.sim.warp_library": {
        "takes_general_algorithm": "manikin.compat.mujoco_warp",
    },
    "manikin.sim.warp_room": {
        "Room": "manikin.sim.warp.capacity:Capacity",
    },
    "manikin.spec.robot": {
        "Geom": "manikin.spec.links",
        "Imu": "manikin.spec.robot:ImuSpec",
        "Joint": "manikin.spec.links",
        "RGBA": "manikin.spec.links",
        "box": "manikin.spec.links",
        "capsule": "manikin.spec.links",
        "cylinder": "manikin.spec.links",
        "pad": "manikin.spec.links",
    },
    "manikin.tasks.robosuite.common": {
        "held": "manikin.toolkit.grasps:all_fingers_touch",
        "pick": "manikin.toolkit.waypoints",
        "touching": "manikin.toolkit.grasps:fingers_touch",
    },
    "manikin.tasks.robosuite.stack": {
        "Stack": "manikin.tasks.robosuite.stack:RobosuiteStack",
    },
    "manikin.tasks.robosuite.staged": {
        "near": "manikin.tasks.robosuite.staged_reward:still_near",
        "stages": "manikin.tasks.robosuite.staged_reward:staged_reward",
    },
    "manikin.tasks.tabletop.common": {
        "OncePerStep": "manikin.toolkit.steps",
    },
    "manikin.teleop.loop": {
        "Loop": "manikin.teleop.loop:TeleopLoop",
    },
    "manikin.view.contacts": {
        "Touch": "manikin.view.contacts:BodyContact",
    },
    "manikin.view.recorder": {
        "Recorder": "manikin.view.recorder:FilmRecorder",
    },
    "manikin.view.sources": {
        "Source": "manikin.view.sources:EpisodeSource",
    },
}
"""Old module, or a package of today -> names that went elsewhere -> the module they are in now, and after a colon the
name that they have there, where it is another one."""


def _warn(old: str, new: str, frames: int = 3) -> None:
    warnings.warn(f"{old} has moved to {new}; the old name goes with the next release", DeprecationWarning, frames)


def old_names(package: str, *, frames: int = 3) -> Callable[[str], Any]:
    """A ``__getattr__`` for a module that names have left, or for a package with the name of a former module.

    ``frames`` is where in the stack the warning belongs; one more for each function that calls this one.
    """

    def find(name: str) -> Any:
        new = NAMES.get(package, {}).get(name)
        if new is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, _, now = new.partition(":")
        _warn(f"{package}.{name}", f"{module}.{now or name}", frames)
        return getattr(importlib.import_module(module), now or name)

    return find


class _Alias(Loader):
    """Loads the new module under the old name. A module whose names went to several is one that looks them up."""

    def __init__(self, old: str) -> None:
        self._old = old
        self._spec: Any = None

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        new = importlib.import_module(MODULES[self._old])
        if self._old in NAMES:
            return None
        self._spec = new.__spec__
        return new

    def exec_module(self, module: ModuleType) -> None:
        if self._spec is not None:
            module.__spec__ = self._spec  # importing wrote the old name's into it
            return
        names, new = NAMES[self._old], MODULES[self._old]

        def find(name: str) -> Any:
            place, _, now = names.get(name, new).partition(":")
            return getattr(importlib.import_module(place), now or name)

        vars(module)["__getattr__"] = find


class _Finder(MetaPathFinder):
    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name not in MODULES:
            return None
        _warn(name, MODULES[name])
        return ModuleSpec(name, _Alias(name))


def install() -> None:
    """Let old modules be found. Idempotent."""
    if not any(isinstance(one, _Finder) for one in sys.meta_path):
        sys.meta_path.append(_Finder())
