"""64 environments that differ in looks alone, as one picture.

python examples/visual_variation.py
"""

from __future__ import annotations

import itertools

import torch

import manikin
from manikin.render.files.video import tile, write_png
from manikin.spec.looks import Looks

env = manikin.make("PickCube-v2", num_envs=64, observe="rgb", looks=Looks.strong())
observation, _ = env.reset(seed=0)
images = observation["cameras"]["base_camera"]["rgb"]  # (64, 128, 128, 3) uint8
write_png("visual_variation.png", tile(list(images.numpy()), columns=8))

differences = [(a.float() - b.float()).abs().mean() for a, b in itertools.combinations(images, 2)]
print(f"mean difference of two environments: {torch.stack(differences).mean():.0f} of 255")
assert min(differences) > 5
env.close()
