"""`manikin serve`: a trained policy behind a websocket."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from manikin.cli.common.terminal import OK, console

__all__ = ["ServeOptions", "main", "run"]


@dataclass(frozen=True, kw_only=True)
class ServeOptions:
    """Options of `manikin serve`."""

    checkpoint: tyro.conf.Positional[Path]
    """Folder of a training run, its policy.safetensors, or a policy that comes with manikin (ppo-PickCube-v2)."""
    host: str = "127.0.0.1"
    """Address to listen on. By default only this machine can connect."""
    port: int = 8000
    """Port to listen on; 0 takes a free one."""


def main(options: Annotated[ServeOptions, tyro.conf.arg(name="")]) -> int:
    """Serve a trained policy over openpi's protocol. With MANIKIN_POLICY_KEY set, clients must send that key."""
    return run(options)


def run(options: ServeOptions) -> int:
    """Serve until Ctrl-C."""
    from manikin.assets.paths import file_hash
    from manikin.errors import ConfigError
    from manikin.policy.choices import policy_file
    from manikin.policy.chunk import Execution
    from manikin.policy.network import NetworkPolicy
    from manikin.policy.remote.client import HASH, KEY, NAME
    from manikin.policy.remote.server import PolicyServer
    from manikin.policy.trained import load_trained, trained_name

    key = os.environ.get(KEY) or None
    if key is None and options.host not in ("127.0.0.1", "localhost", "::1"):
        raise ConfigError(
            f"--host {options.host} can be reached from other machines: set {KEY} to a key that clients send"
        )
    file = policy_file(str(options.checkpoint)) or options.checkpoint
    module, about = load_trained(file)
    told = {name: about.get(name) for name in ("algorithm", "task", "robot", "control", "control_hz", "recipe_hash")}
    told |= {NAME: trained_name(file, about), HASH: file_hash(file)}
    columns, window = len(about["observation"]), int(about["network"]["options"].get("window", 1))
    shapes = about.get("shapes") or {"state": (columns,) if window == 1 else (window, columns)}
    takes = ", ".join(f"{name} {tuple(shape)}" for name, shape in shapes.items())
    execution = Execution.of(about)
    server = PolicyServer(
        NetworkPolicy(module, execution=execution),
        shapes,
        metadata={**told, "observation": about["observation"], "execution": execution.plain},
        host=options.host,
        port=options.port,
        key=key,
        batch=True,
    )
    out = console()
    out.print(f"{about['algorithm']} for {about['task']} at {server.url}; it takes {takes}", soft_wrap=True)
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
