"""A task as a page of HTML: what its cameras show beside the real photograph, its objects, its cameras, what stands in.

``manikin info TASK --page FILE`` writes it. No script, no font, no file beside it.
"""

from __future__ import annotations

import base64
import colorsys
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

from manikin.assets.pictures import read_picture
from manikin.author.sheet import TaskSheet
from manikin.data.recording.durable import write_file
from manikin.env.interface import SceneEnv
from manikin.env.layouts.env import batched
from manikin.env.state.provenance import source_of
from manikin.env.task import Task
from manikin.errors import AssetError
from manikin.eval.pages.parts import alarm, grid, page, section
from manikin.render.api import make_renderer
from manikin.render.files.video import encode_png
from manikin.scene.extent import box_around
from manikin.scene.handles import Part, Robot
from manikin.scene.handles.articulation import Articulation
from manikin.scene.handles.variant import VariantPart
from manikin.sense.pixels import Photograph

__all__ = ["write_task_page"]

Thing = Robot | Part | Articulation
_LEAST = 384  # [pixels] height of a picture on the page
_SHAPES = {"mjGEOM_MESH": "hull", "mjGEOM_BOX": "box", "mjGEOM_SPHERE": "sphere", "mjGEOM_CYLINDER": "cylinder"}
_MANY = {"box": "boxes"}
_FACTS = ("episode", "rates", "ends early", "trials")


def write_task_page(
    path: Path,
    sheet: TaskSheet,
    kind: type[Task],
    chosen: Mapping[str, Any],
    *,
    renderer: str = "auto",
    seed: int = 0,
) -> Path:
    """Write the page of a task.

    Args:
        path: of the HTML file; folders are made.
        sheet: the task in words.
        kind: the task.
        chosen: ``robot`` and ``config`` as :func:`manikin.make` takes them, where the caller chose.
        renderer: what draws.
        seed: of the episode whose start is shown.

    Raises:
        AssetError: what was chosen is not there.
        DataError: the page cannot be written.
    """
    env, missing = _made(kind, chosen, renderer)
    try:
        seen, _ = env.reset(seed=seed)
        one, _ = env.part(0)
        model, data = env.model_data(0)
        pictures = [_pictures(one, name, seen["cameras"][name], renderer) for name in one.vision.names]
        stand_ins = "".join(f"<li>{escape(line)}</li>" for line in _stand_ins(one, missing))
        body = "".join(
            (
                f'<div class="top"><h1>{escape(sheet.id)}</h1></div>',
                f'<p class="meta">“{escape(one.instruction[0])}”</p>',
                "".join(alarm("Missing.", escape(line)) for line in missing),
                *pictures,
                section(f"<h2>Task</h2>{_text(sheet.description)}{_facts(sheet, one, seed)}"),
                section(f"<h2>Objects</h2>{_objects(one, model, data)}"),
                section(f"<h2>Cameras</h2>{_cameras(one, model, data)}"),
                section(f"<h2>What stands in</h2><ul>{stand_ins or '<li>nothing</li>'}</ul>"),
            )
        )
    finally:
        env.close()
    write_file(path, page(sheet.id, body).encode())
    return path


def _made(kind: type[Task], chosen: Mapping[str, Any], renderer: str) -> tuple[Any, list[str]]:
    """The task beside its photographs where they are there, else as it is; and which files are missing."""
    wishes = [dict(chosen)]
    if kind.beside_photograph:
        beside = {**chosen, "config": {**kind.beside_photograph, **chosen.get("config", {})}}
        wishes = [{"robot": f"{kind.robots[0]}:menagerie", **beside}, beside, *wishes]
    missing: list[str] = []
    for wish in wishes:
        try:
            made = batched(kind, num_envs=1, observe="rgb", reward="none", renderer=renderer, **wish)
        except AssetError as error:
            if wish == wishes[-1]:
                raise
            missing.append(str(error))
        else:
            return made, list(dict.fromkeys(missing))
    raise AssertionError("the last wish raises or is returned")


# ---- pictures --------------------------------------------------------------------------------------------------------


def _pictures(env: SceneEnv, name: str, seen: Mapping[str, Any], word: str) -> str:
    """What a camera shows: photograph, what policies see, what is drawn, segmentation."""
    camera = env.camera(name)
    larger = max(1, math.ceil(_LEAST / camera.height))
    model, data = env.model_data(0)
    renderer = make_renderer(word, outputs=("rgb", "segmentation"))
    try:
        drawn = renderer.images(
            model,
            data,
            name,
            ("rgb", "segmentation"),
            width=larger * camera.width,
            height=larger * camera.height,
        )
    finally:
        renderer.close()
    size = f"{camera.width} x {camera.height}"
    figures = []
    for stage in env.vision.stages:
        if isinstance(stage, Photograph) and (stage.cameras is None or name in stage.cameras):
            number = int(getattr(env.h, stage.which).value[0]) if stage.which else 0
            file = Path(stage.files[number])
            photograph = read_picture(file, what="photograph")
            high, wide = photograph.shape[:2]
            figures.append(_figure(photograph, f"photograph: {file.name}, {wide} x {high}"))
    if env.vision.stages:
        figures.append(_figure(seen["rgb"][0].cpu().numpy(), f"what a policy sees, {size}"))
    figures.append(_figure(drawn["rgb"], f"what is drawn{'' if env.vision.stages else f'; a policy sees {size}'}"))
    coloured, legend = _coloured(env, drawn["segmentation"])
    figures.append(_figure(coloured, "segmentation", legend))
    return section(f'<h2>{escape(name)}</h2><div class="shots">{"".join(figures)}</div>')


def _figure(image: np.ndarray, words: str, more: str = "") -> str:
    content = base64.b64encode(encode_png(np.ascontiguousarray(image))).decode()
    picture = f'<img src="data:image/png;base64,{content}" alt="">'
    return f"<figure>{picture}<figcaption>{escape(words)}{more}</figcaption></figure>"


def _coloured(env: SceneEnv, segmentation: np.ndarray) -> tuple[np.ndarray, str]:
    """(h, w, 3) uint8 with a colour for each thing, and a legend of what is to be seen; the surroundings are grey."""
    table = env.segmentation_table
    lookup, names = table.by_thing()
    kinds = dict(zip(table.things, table.kinds, strict=True))
    colours, count = np.zeros((len(names), 3)), 0
    for k, name in enumerate(names):
        if kinds[name] in ("robot", "part"):
            colours[k] = colorsys.hsv_to_rgb((0.55 + count * 0.381966) % 1, 0.6, 0.85)
            count += 1
        else:
            colours[k] = 0.3 + 0.3 * (k / 4 % 1)
    painted = np.round(255 * colours).astype(np.uint8)
    numbers = lookup[segmentation]
    parts = []
    for k in np.unique(numbers):
        rgb = ",".join(str(v) for v in painted[k])
        parts.append(f'<i class="dot" style="background:rgb({rgb})"></i>{escape(names[k])}')
    return painted[numbers], f"<br>{' &nbsp; '.join(parts)}"


# ---- words and tables ------------------------------------------------------------------------------------------------


def _text(markdown: str) -> str:
    """The paragraphs of a docstring."""
    text = escape(markdown)
    text = re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", text)
    text = re.sub(r"`(.+?)`", r"<code>\1</code>", text)
    return "".join(f"<p>{paragraph}</p>" for paragraph in text.split("\n\n"))


def _facts(sheet: TaskSheet, env: SceneEnv, seed: int) -> str:
    config = ", ".join(f"{name}={value!r}" for name, value in vars(env.task.config).items())
    rows = [(name, value) for name, value in sheet.facts if name in _FACTS]
    rows.append(("this page", f"`{env.robot_word}` with `{env.controller.name}`, seed {seed}"))
    if config:
        rows.append(("its options", f"`{config}`"))
    cells = [(escape(name), _wrapped(re.sub(r"`(.+?)`", r"<code>\1</code>", escape(value)))) for name, value in rows]
    return grid(("", ""), cells, left=(1,)).replace("<tr><th></th><th class=left></th></tr>", "")


def _wrapped(text: str) -> str:
    """Text of a cell that may have several lines."""
    return f'<span style="white-space: normal">{text}</span>'


def _objects(env: SceneEnv, model: mujoco.MjModel, data: mujoco.MjData) -> str:
    rows: list[tuple[str, ...]] = []
    for thing in env.things:
        if isinstance(thing, VariantPart):
            rows += _candidates(thing)
            continue
        name, source = escape(thing.name), escape(source_of(thing))
        bodies = _bodies(thing, model)
        geoms = [g for g in range(model.ngeom) if model.geom_bodyid[g] in bodies and model.geom_contype[g]]
        geoms = geoms or [g for g in range(model.ngeom) if model.geom_bodyid[g] in bodies]
        if not geoms:  # a marker
            continue
        fixed = isinstance(thing, Part) and thing.kind == "fixed"
        mass = "fixed" if fixed else _mass(float(sum(model.body_mass[b] for b in bodies)))
        shapes = _wrapped(_shapes(model, geoms))
        rows.append((name, _wrapped(source), shapes, mass, _size(model, data, geoms), _friction(model, geoms)))
    for g in range(model.ngeom):
        if model.geom_bodyid[g] == 0:
            name = escape(model.geom(g).name or f"geom {g}")
            plane = model.geom_type[g] == mujoco.mjtGeom.mjGEOM_PLANE
            size = "no end" if plane else _size(model, data, [g])
            shapes = "plane" if plane else _shapes(model, [g])
            rows.append((name, "surroundings", shapes, "fixed", size, "of the other"))
    note = (
        '<p class="caption">Size: the box around what collides, along the axes of the object. Friction: sliding; of '
        "two things that touch the larger counts.</p>"
    )
    return grid(("name", "source", "shapes", "mass", "size [mm]", "friction"), rows, left=(1, 2)) + note


def _candidates(thing: VariantPart) -> Iterable[tuple[str, ...]]:
    """A row for each object that the part may be; the one of this start is bold."""
    chosen = int(thing.choice[0]) if bool(thing.present[0]) else -1
    for k, prop in enumerate(thing.props):
        name = escape(f"{thing.name}: {prop.name}")
        shapes = _counted("hull" if s.mesh else s.type for s in prop.shapes)
        friction = {prop.friction if s.friction is None else s.friction for s in prop.shapes}
        yield (
            f"<b>{name}</b>" if k == chosen else name,
            escape(prop.source),
            shapes,
            _mass(float(thing.bank.masses[k])),
            _millimetres(2 * thing.bank.extents[k]),
            _between(friction),
        )


def _bodies(thing: Thing, model: mujoco.MjModel) -> set[int]:
    if isinstance(thing, Part):
        return {thing.body_id}
    return {b for b in range(model.nbody) if model.body(b).name.startswith(thing.prefix)}


def _shapes(model: mujoco.MjModel, geoms: Sequence[int]) -> str:
    kinds = (mujoco.mjtGeom(int(model.geom_type[g])).name for g in geoms)
    return _counted(_SHAPES.get(kind, kind.removeprefix("mjGEOM_").lower()) for kind in kinds)


def _counted(words: Iterable[str]) -> str:
    return ", ".join(f"{n} {_MANY.get(w, w + 's')}" if n > 1 else w for w, n in Counter(words).items())


def _size(model: mujoco.MjModel, data: mujoco.MjData, geoms: Sequence[int]) -> str:
    """Of the box around geoms, along the axes of the first one's body."""
    if not geoms:
        return ""
    body = int(model.body_rootid[model.geom_bodyid[geoms[0]]])
    frame = data.xmat[body].reshape(3, 3)
    pos = (data.geom_xpos - data.xpos[body]) @ frame
    rotation = frame.T @ data.geom_xmat.reshape(-1, 3, 3)
    return _millimetres(2 * box_around(model, geoms, pos, rotation)[1])


def _friction(model: mujoco.MjModel, geoms: Sequence[int]) -> str:
    return _between({float(model.geom_friction[g, 0]) for g in geoms})


def _between(values: set[float]) -> str:
    low, high = (min(values), max(values)) if values else (0.0, 0.0)
    return f"{low:.3g}" if high - low < 1e-6 else f"{low:.3g} to {high:.3g}"


def _millimetres(size: np.ndarray) -> str:
    return " x ".join(f"{1000 * side:.0f}" if side >= 0.01 else f"{1000 * side:.1f}" for side in size)


def _mass(mass: float) -> str:
    return f"{1000 * mass:.3g} g" if mass < 0.9995 else f"{mass:.2f} kg"


def _cameras(env: SceneEnv, model: mujoco.MjModel, data: mujoco.MjData) -> str:
    rows = []
    for name in env.cameras:
        spec = env.camera(name)
        number = int(model.camera(name).id)
        optical = data.cam_xmat[number].reshape(3, 3) @ np.diag([1.0, -1.0, -1.0])  # MuJoCo's cameras look along -z
        K = spec.K()
        rows.append(
            (
                escape(name),
                escape(spec.on or "world"),
                _pose(spec.pos, spec.rotation),
                _pose(data.cam_xpos[number], optical),
                f"{spec.width} x {spec.height}, {math.degrees(2 * math.atan(spec.height / 2 / K[1, 1])):.1f}°<br>"
                f"{K[0, 0]:.1f}, {K[1, 1]:.1f}, {K[0, 2]:.1f}, {K[1, 2]:.1f}",
            )
        )
    headings = ("name", "on", "pose there", "pose in the world", "picture and lens")
    note = (
        '<p class="caption">Poses: position [m] over the quaternion w, x, y, z of the optical frame (x right, y down, '
        "z forward); in the world at this start. Pictures: size and vertical view over fx, fy, cx, cy [pixels].</p>"
    )
    return grid(headings, rows, left=(1,)) + note


def _pose(pos: Iterable[float], rotation: np.ndarray) -> str:
    quat = np.zeros(4)
    mujoco.mju_mat2Quat(quat, np.ascontiguousarray(rotation).ravel())
    return f"{_numbers(pos)}<br>{_numbers(quat if quat[0] >= 0 else -quat)}"


def _numbers(values: Iterable[float]) -> str:
    return ", ".join(f"{float(value) + 0.0:.3f}" for value in values)


def _stand_ins(env: SceneEnv, missing: Sequence[str]) -> Iterable[str]:
    for thing in env.things:
        if isinstance(thing, VariantPart):
            if names := [prop.name for prop in thing.props if "stand-in" in prop.source]:
                yield f"{thing.name}: primitives for {', '.join(names)}"
        elif "stand-in" in (source := source_of(thing)) or " colour" in source:
            yield f"{thing.name}: {source.removeprefix('stand-in: ')}"
    if missing and env.task.beside_photograph:
        yield "photograph: the simulated scene"
