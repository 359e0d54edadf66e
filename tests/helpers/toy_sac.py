"""SAC so small that a test can train it."""

from __future__ import annotations

from manikin import make
from manikin.learn.sac import SAC, Config

SMALL = {"num_steps": 3, "updates": 2, "batch": 12, "buffer": 200, "start_steps": 36, "hidden": (16,)}
SMALL |= {"critic_hidden": (16,)}


def train_sac(iterations=4, *, threads=0, seed=3, device="cpu", rows=6, reward="normalized_dense", **settings):
    env = make(
        "PushCube-v2", num_envs=rows, threads=threads, device=device, horizon=8, reward=reward, autoreset="same_step"
    )
    trainer = SAC(env, Config(**{**SMALL, **settings}), seed)
    return trainer, [trainer.iterate() for _ in range(iterations)]
