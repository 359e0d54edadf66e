"""mjlab's task of lifting a cube with a YAM arm, on a GPU; another robot and another cube than PickCube's. Written for
mjlab 1.6.0. No episode ends and no cube is put elsewhere meanwhile: resets are not timed here.

Arguments: device (cuda:0), seconds, number of environments. Prints JSON: control steps per second, time to make it,
bytes of the card in use. Not run yet where this was written, for want of a GPU.
"""

import json
import sys
import time

import mjlab.tasks  # noqa: F401
import torch
from mjlab.envs import ManagerBasedRlEnv
from mjlab.tasks.registry import load_env_cfg

device, seconds, n = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
torch.cuda.set_device(torch.device(device))
torch.zeros(1, device=device)
free = torch.cuda.mem_get_info()[0]
begin = time.perf_counter()
config = load_env_cfg("Mjlab-Lift-Cube-Yam")
config.scene.num_envs = n
config.terminations = {}
for command in config.commands.values():
    command.resampling_time_range = (1e9, 1e9)  # [s]; a new command puts the cube elsewhere
env = ManagerBasedRlEnv(cfg=config, device=device)
env.reset()
moves = torch.rand(32, n, env.action_manager.total_action_dim, device=device) * 2 - 1
for k in range(10):
    env.step(moves[k])
torch.cuda.synchronize()
create, steps, start = time.perf_counter() - begin, 0, time.perf_counter()
while time.perf_counter() - start < seconds:
    env.step(moves[steps % 32])
    steps += 1
    torch.cuda.synchronize()
rate = steps * n / (time.perf_counter() - start)
used = free - torch.cuda.mem_get_info()[0]
print(json.dumps({"num_envs": n, "env": rate, "create_s": create, "card_bytes": used}))
