"""PickCube-v1 of ManiSkill3 on a GPU, state observations, joint delta positions.

Arguments: device (cuda:0), seconds, number of environments. Prints JSON: control steps per second, time to make it,
bytes of the card in use.
"""

import json
import sys
import time
import warnings

warnings.filterwarnings("ignore")
import gymnasium  # noqa: E402
import mani_skill.envs  # noqa: E402, F401
import torch  # noqa: E402

device, seconds, n = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
torch.cuda.set_device(torch.device(device))
torch.zeros(1, device=device)
free = torch.cuda.mem_get_info()[0]
begin = time.perf_counter()
env = gymnasium.make(
    "PickCube-v1",
    num_envs=n,
    obs_mode="state",
    sim_backend=f"physx_{device}",
    render_backend="none",
    max_episode_steps=10**9,
)
env.reset(seed=0)
moves = torch.rand(32, n, env.unwrapped.single_action_space.shape[0], device=device) * 2 - 1
for k in range(10):
    env.step(moves[k])
env.reset()
torch.cuda.synchronize()
create, steps, start = time.perf_counter() - begin, 0, time.perf_counter()
while time.perf_counter() - start < seconds:
    env.step(moves[steps % 32])
    steps += 1
    torch.cuda.synchronize()
rate = steps * n / (time.perf_counter() - start)
used = free - torch.cuda.mem_get_info()[0]
print(json.dumps({"num_envs": n, "env": rate, "create_s": create, "card_bytes": used}))
