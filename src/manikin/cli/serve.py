"""`manikin serve`: a policy behind a websocket."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from manikin.cli.common.documented import documented
from manikin.cli.common.options import PictureOptions, TaskOptions, load_task
from manikin.cli.common.terminal import OK, console

if TYPE_CHECKING:
    from manikin.policy.api import Policy

__all__ = ["ServeOptions", "main", "run", "served_policy"]


@dataclass(frozen=True, kw_only=True)
class ServeOptions(TaskOptions, PictureOptions):
    """Options of `manikin serve`."""

    policy: tyro.conf.Positional[str]
    """Folder of a training run, its policy.safetensors, one that comes with manikin, or policy.pt2. With --task any
    stateless policy, such as file.py:function."""
    host: str = "127.0.0.1"
    """Address to listen on. By default only this machine can connect."""
    port: int = 8000
    """Port to listen on; 0 takes a free one."""
    device: str = "cpu"
    """Where a trained policy computes: cpu or cuda."""
    together: int | None = None
    """Rows of different clients that a trained policy computes at once; by default 1 on the CPU, for the bits of eval,
    and as many as in training on a GPU. With any number an answer does not depend on the other rows."""
    task: str | None = None
    """For a policy that is a function of an environment: the task of that environment, whose other options follow."""
    control: Annotated[str | None, documented("control")] = None
    observe: Annotated[str | None, documented("observe")] = None


def main(options: Annotated[ServeOptions, tyro.conf.arg(name="")]) -> int:
    """Serve a policy over openpi's protocol. With MANIKIN_POLICY_KEY set, clients must send that key."""
    return run(options)


def run(options: ServeOptions) -> int:
    """Serve until Ctrl-C."""
    from manikin.assets.paths import file_hash
    from manikin.errors import ConfigError
    from manikin.policy.choices import policy_file
    from manikin.policy.network import NetworkPolicy
    from manikin.policy.remote.client import HASH, KEY
    from manikin.policy.remote.server import PolicyServer

    key = os.environ.get(KEY) or None
    if key is None and options.host not in ("127.0.0.1", "localhost", "::1"):
        raise ConfigError(
            f"--host {options.host} can be reached from other machines: set {KEY} to a key that clients send"
        )
    policy, shapes, told = served_policy(options)
    if (file := policy_file(options.policy)) is not None:
        told[HASH] = file_hash(file)
    takes = ", ".join(f"{name} {tuple(shape)}" for name, shape in shapes.items())
    server = PolicyServer(
        policy,
        shapes,
        metadata=told,
        host=options.host,
        port=options.port,
        key=key,
        batch=isinstance(policy, NetworkPolicy),
    )
    out = console()
    what = told.get("algorithm") or options.policy
    goal = f" for {told['task']}" if told.get("task") else ""
    out.print(f"{what}{goal} at {server.url}; it takes {takes}", soft_wrap=True)
    out.print(f"try it: manikin eval PROTOCOL --policy {server.url}; stop with Ctrl-C", soft_wrap=True)
    for number in (signal.SIGINT, signal.SIGTERM):  # also where whoever started this ignores them
        signal.signal(number, signal.default_int_handler)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass
    finally:
        server.close()
    return OK


def served_policy(options: ServeOptions) -> tuple[Policy, Mapping[str, Any], dict[str, Any]]:
    """The policy, the shapes of what it is shown by name, and what clients are told of it.

    Raises:
        ConfigError: a policy that is made for an environment, without a task, or one that is not stateless.
        UnknownNameError, AssetError, DataError: as :func:`~manikin.policy.choices.policy_maker`.
    """
    from manikin.assets import packages
    from manikin.data.recording.format import flatten
    from manikin.errors import ConfigError
    from manikin.policy.choices import GRADED, POLICIES, policy_maker, trained_file, unknown_policy
    from manikin.policy.chunk import Execution
    from manikin.policy.files.checkpoint import load_policy
    from manikin.policy.network import WIDTH, NetworkPolicy
    from manikin.policy.remote.client import NAME
    from manikin.policy.trained import about_env, load_trained, trained_name
    from manikin.sim.device import torch_device

    word, can = options.policy, "a run's folder, policy.safetensors, policy.pt2; with --task file.py:function"
    if word in POLICIES or word.startswith(GRADED) or word.endswith(".toml"):
        raise ConfigError(
            f"{word} cannot be served: the protocol does not say when episodes begin, so a policy must be stateless. "
            f"Serve {can}, or one that `manikin policies` lists"
        )
    asked = ("task", "robot", "control", "control_hz")
    trained = None if options.task is not None else trained_file(options.policy)
    if trained is None and (options.device != "cpu" or options.together is not None):
        raise ConfigError("--device and --together are for a trained policy: a run's folder or its .safetensors")
    if options.task is not None:
        from manikin.env.make import make

        task = load_task(options.task)
        env = make(task, options=options.env_options(task, num_envs=1, vision=options.vision()))
        space, about = flatten(env.single_observation_space), about_env(env)
        told = {**{name: about[name] for name in asked}, "observation": about["observation"]}
        told[NAME] = options.policy.rpartition("/")[2]
        made = policy_maker(options.policy)(env)
        told["execution"] = getattr(made, "execution", Execution()).plain
        return made, _named({n: s.shape for n, s in space.items()}), told
    if trained is not None:
        module, about = load_trained(trained)
        told = {name: about.get(name) for name in ("algorithm", *asked, "recipe_hash", "observation")}
        columns, window = len(about["observation"]), int(about["network"]["options"].get("window", 1))
        shapes = about.get("shapes") or {"state": (columns,) if window == 1 else (window, columns)}
        execution = Execution.of(about)
        device = torch_device(options.device)
        alone = 1 if device.type == "cpu" else int(about.get("width", WIDTH))
        together = alone if options.together is None else options.together
        policy = NetworkPolicy(module, width=together, device=device, execution=execution)
        return policy, shapes, {**told, NAME: trained_name(trained, about), "execution": execution.plain}
    if options.policy.endswith(".pt2"):
        network = load_policy(options.policy)
        takes: Any = network.module.takes
        return (
            network,
            _named({name: leaf.shape[1:] for name, leaf in takes.items()}),
            {NAME: network.name, "execution": network.execution.plain},
        )
    offered = packages.offered("policy")
    if ":" not in word.strip(":") and word not in offered:
        raise unknown_policy(word, offered, f"Or {can}.")
    policy_maker(word)  # what is wrong with a file or module is said first
    raise ConfigError(
        f"the policy {options.policy} is made for an environment: give its task, "
        f"manikin serve {options.policy} --task PickCube-v2"
    )


def _named(shapes: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    """A flat observation, which has no name, is called ``state``."""
    return {"state" if name == "value" else name: tuple(shape) for name, shape in shapes.items()}
