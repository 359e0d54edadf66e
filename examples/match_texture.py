"""The texture of an object from one photograph: mesh, photograph and mask in; OBJ, MTL and PNG out.

python examples/match_texture.py MESH PHOTOGRAPH MASK --fovy 42.1 --quat 1 0 0 0 --out can

The mask is a picture of the photograph's size, white where the object is. ``--quat`` (w, x, y, z) is about how the mesh
lies in the camera's frame (x right, y down, z forward); ``--search`` tries 24 orientations and takes the one whose
silhouette agrees best, which cannot tell front from back. Look at OUT/check.png: photograph, textured mesh in its
place, and the mesh from behind.
Without files it makes an egg with a striped photograph of its own.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import math
from pathlib import Path

import mujoco
import numpy as np

from manikin.assets.meshes import read_mesh, write_obj
from manikin.assets.pictures import read_picture
from manikin.errors import DataError
from manikin.render import make_renderer, tile, view_of, write_png
from manikin.render.align import check_mask
from manikin.render.texture import Match, match_texture, rough_camera
from manikin.spec.camera import CameraSpec


def turns() -> list[tuple[float, ...]]:
    """The 24 rotations of a cube as quaternions."""
    found = []
    for axes in itertools.permutations(range(3)):
        for signs in itertools.product((1, -1), repeat=3):
            matrix = np.zeros((3, 3))
            matrix[range(3), axes] = signs
            if np.linalg.det(matrix) > 0:
                quat = np.zeros(4)
                mujoco.mju_mat2Quat(quat, matrix.flatten())
                found.append(tuple(quat))
    return found


def matched(vertices, faces, photograph, mask, fovy, quats, texcoord) -> Match:
    """The best of several rough orientations (w, x, y, z)."""
    lens = CameraSpec(name="photograph", target=(0, 0, 1), fovy=fovy)
    best: Match | None = None
    renderer = make_renderer("auto", outputs=("depth", "segmentation"))
    for quat in quats:
        try:
            start = rough_camera(vertices, mask, lens, quat)
            found = match_texture(
                vertices, faces, photograph, mask, start, texcoord=texcoord, renderer=renderer, size=256
            )
        except DataError:
            continue
        best = found if best is None or found.agreement > best.agreement else best
    renderer.close()
    if best is None:
        raise SystemExit("no orientation agrees with the mask; give --quat")
    return best


def write(folder: Path, name: str, vertices, faces, found: Match) -> None:
    """OBJ, MTL and PNG: every triangle has corners of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    write_png(folder / f"{name}.png", found.texture.image)
    material = f"newmtl {name}\nKd 1 1 1\nmap_Kd {name}.png\n"
    (folder / f"{name}.mtl").write_text(material)
    obj = folder / f"{name}.obj"
    write_obj(obj, vertices[faces].reshape(-1, 3), np.arange(faces.size).reshape(-1, 3), found.uv.reshape(-1, 2))
    obj.write_text(f"mtllib {name}.mtl\nusemtl {name}\n" + obj.read_text())


def check(vertices, faces, photograph, found: Match) -> np.ndarray:
    """The photograph, the textured mesh in its place, and the mesh from behind."""
    spec = mujoco.MjSpec()
    spec.visual.headlight.ambient, spec.visual.headlight.diffuse = (1, 1, 1), (0, 0, 0)
    spec.visual.headlight.specular = (0, 0, 0)
    texture = spec.add_texture(name="t", type=mujoco.mjtTexture.mjTEXTURE_2D, nchannel=3)
    texture.height, texture.width, texture.data = 256, 256, found.texture.image[::-1].tobytes()
    material = spec.add_material(name="m", specular=0)
    material.textures[int(mujoco.mjtTextureRole.mjTEXROLE_RGB)] = "t"
    mesh = spec.add_mesh(name="o", inertia=mujoco.mjtMeshInertia.mjMESH_INERTIA_SHELL)
    mesh.uservert, mesh.userface = vertices[faces].flatten(), np.arange(faces.size)
    mesh.usertexcoord = found.uv.flatten()
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_MESH, meshname="o", material="m")
    model = spec.compile()
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    renderer = make_renderer("auto", outputs=("rgb", "segmentation"))
    images = renderer.images(model, data, view_of(model, data, found.camera), ("rgb", "segmentation"))
    pasted = np.where(images["segmentation"][..., None] > 0, images["rgb"], photograph)
    middle = vertices.mean(0)
    behind = dataclasses.replace(
        found.camera, pos=tuple(2 * middle - found.camera.pos), target=tuple(middle), quat=None
    )
    back = renderer.images(model, data, behind)["rgb"]
    renderer.close()
    return tile([photograph, pasted, back], 3)


def ball() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Vertices, faces, photograph and mask of an egg with stripes, half a metre ahead."""
    around, up = np.meshgrid(np.linspace(0, 2 * np.pi, 25), np.linspace(-math.pi / 2, math.pi / 2, 13))
    points = np.stack([np.cos(up) * np.cos(around), np.cos(up) * np.sin(around), 1.4 * np.sin(up)], -1) * 0.04
    number = np.arange(around.size).reshape(around.shape)
    a, b, c, d = number[:-1, :-1], number[:-1, 1:], number[1:, 1:], number[1:, :-1]
    faces = np.concatenate([np.stack([a, b, c], -1)[1:].reshape(-1, 3), np.stack([a, c, d], -1)[:-1].reshape(-1, 3)])
    x, y = np.meshgrid(np.arange(320) - 159.5, np.arange(240) - 119.5)
    mask = (x / 1.4) ** 2 + y**2 < (0.04 / 0.5 * 480) ** 2
    stripes = np.stack([127 + 100 * np.sin(x / 8), 127 + 100 * np.sin(y / 8), 0 * x + 90], -1)
    return points.reshape(-1, 3), faces, np.where(mask[..., None], stripes, 30).astype(np.uint8), mask


def main() -> None:
    """Read, match, write."""
    about = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    about.add_argument("files", type=Path, nargs="*", help="MESH PHOTOGRAPH MASK")
    about.add_argument("--fovy", type=float, default=42.1, help="vertical field of view of the photograph [degrees]")
    about.add_argument("--quat", type=float, nargs=4, default=(1.0, 0.0, 0.0, 0.0))
    about.add_argument("--search", action="store_true")
    about.add_argument("--out", type=Path, default=None)
    asked = about.parse_args()
    texcoord = None
    if len(asked.files) != 3:
        print("without MESH PHOTOGRAPH MASK: an egg of its own")
        vertices, faces, photograph, mask = ball()
        quats, fovy = [(math.sqrt(0.5), 0.0, math.sqrt(0.5), 0.0)], 2 * math.atan(120 / 480)
    else:
        read = read_mesh(asked.files[0])
        vertices, faces, texcoord = read.vertices, read.faces, read.texcoord
        photograph = read_picture(asked.files[1], what="photograph")
        mask = check_mask(read_picture(asked.files[2], what="mask"), photograph)
        quats, fovy = (turns() if asked.search else [tuple(asked.quat)]), math.radians(asked.fovy)
    found = matched(vertices, faces, photograph, mask, fovy, quats, texcoord)
    seen, used = found.texture.seen.sum(), found.texture.used.sum()
    print(f"silhouette and mask agree to {found.agreement:.3f}; the photograph shows {seen / used:.0%} of the surface")
    if asked.out is not None:
        write(asked.out, asked.out.name, vertices, faces, found)
        write_png(asked.out / "check.png", check(vertices, faces, photograph, found))
        print(f"written: {asked.out}")
    assert found.agreement > 0.9, "look at check.png: the pose is not right"


if __name__ == "__main__":
    main()
