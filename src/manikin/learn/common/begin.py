"""A policy that begins as another one, which was trained for the same task or for one that shows less."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from manikin.env.interface import BatchEnv
from manikin.errors import ConfigError
from manikin.learn.common.numerics.moments import Moments
from manikin.learn.common.teacher import differences
from manikin.policy.choices import find_trained
from manikin.policy.networks.cloned import Cloned, MixtureCloned
from manikin.policy.networks.mlp import GaussianActor
from manikin.policy.networks.scaling import Scaling
from manikin.policy.trained import load_trained, weights_hash

__all__ = ["begin_as"]

_ACTS = ("robot", "control", "control_hz")
_SIZES = {"hidden": (), "activation": "", "state_std": False}  # and what they are where a file does not say
_COLUMNS = {"scaling.mean": 0.0, "scaling.std": 1.0, "mean.0.weight": 0.0}  # by column of the observation; of new ones
_CLONED = 1e12  # steps that a cloned policy counts as: another scale of what it observes would undo what it does


def begin_as(
    word: str, actor: GaussianActor, options: Mapping[str, Any], moments: Moments, env: BatchEnv
) -> dict[str, Any]:
    """Give an actor what another policy has learned: its weights, and mean and spread of what it observed.

    Columns of a flat observation are matched by their names (``policy/qpos[0]``). The weights of columns that the other
    policy does not observe are 0. So the actor gives the other policy's actions, whatever is in these columns, until it
    learns. The moments of these columns begin empty; those of the others are as if all steps that the other policy was
    trained for had been seen, and of a cloned one as if so many that they stay as they are. The spread of the actions
    stays the actor's own.

    A policy of ``bc`` gives the mean of its actions. What it hides is a column that it does not observe.

    Args:
        word: a training run's folder, its ``policy.safetensors``, or the name of a policy that comes with manikin; one
            that ``ppo`` has trained, or ``bc`` with the head ``mse`` and from one flat observation.
        actor: that begins; its weights are written.
        options: that the actor was built with.
        moments: of what it observes, still empty; they are written.
        env: that the actor will act in.

    Returns:
        What the policy was, for the actor's file: algorithm, task, seed, recipe_hash, steps, sha256 of the weights.

    Raises:
        AssetError, DataError: as :func:`~manikin.policy.trained.load_trained`.
        ConfigError: a policy with another kind of network, other sizes, another robot or controller, or one that
            observes what the environment does not show.
    """
    module, about = load_trained(find_trained(word))
    kind, theirs = about["network"]["kind"], about["network"]["options"]
    state = _state(module)
    if state is None or "steps" not in about:
        raise ConfigError(
            f"{word} is a policy of {about.get('algorithm')!r} with a network of the kind {kind!r}. A policy begins "
            "only from one that ppo has trained, or bc with head='mse', recurrent=0 and one flat observation"
        )
    if other := differences(_ACTS, about, env.fingerprint()):
        raise ConfigError(f"{word} acts otherwise: {other}. A policy begins from one whose actions mean the same")
    sizes = [
        f"{name} {there!r}, here {here!r}"
        for name, unsaid in _SIZES.items()
        if (there := theirs.get(name, unsaid)) != (here := options.get(name, unsaid))
    ]
    if sizes:
        raise ConfigError(f"{word} has a network of other sizes: {'; '.join(sizes)}. Set them as they are there")
    seen, shown = list(about.get("observation") or ()), list(env.observation_names)
    if isinstance(module, Cloned):
        sees = module.scaling.std.isfinite()
        seen = [name for name, one in zip(seen, sees.tolist(), strict=True) if one]
        state |= {name: state[name][..., sees] for name in _COLUMNS}
    if seen and shown:
        if missing := [name for name in seen if name not in shown]:
            raise ConfigError(
                f"{word} observes {', '.join(missing[:5])}{' and more' if missing[5:] else ''}, which this environment "
                "does not show"
            )
        known = torch.tensor([shown.index(name) for name in seen])
        for name, empty in _COLUMNS.items():
            value = state[name]
            state[name] = value.new_full((*value.shape[:-1], len(shown)), empty)
            state[name][..., known] = value
    elif theirs["observations"] != options["observations"]:
        raise ConfigError(
            f"{word} observes {about.get('observe')!r}, here {env.observe!r}: pictures and the numbers beside them "
            "must be the same ones"
        )
    else:
        known = torch.arange(len(actor.scaling.mean))
    actor.load_state_dict(state, strict=False)
    count = torch.zeros(len(actor.scaling.mean), dtype=torch.float64)
    count[known] = _CLONED if isinstance(module, Cloned) else float(about["steps"])
    moments.begin(count, actor.scaling.mean, actor.scaling.std)
    told = {name: about.get(name) for name in ("algorithm", "task", "seed", "recipe_hash", "steps")}
    return {**told, "sha256": weights_hash(module)}


def _state(module: nn.Module) -> dict[str, Tensor] | None:
    """What a :class:`GaussianActor` holds that acts as this network; None where none does."""
    if isinstance(module, GaussianActor):
        return {name: value.clone() for name, value in module.state_dict().items() if name != "log_std"}
    if not isinstance(module, Cloned) or isinstance(module, MixtureCloned) or len(module.cells):
        return None
    if module.window > 1 or not isinstance(module.scaling, Scaling):
        return None
    state = {name.replace("layers.", "mean.", 1): value.clone() for name, value in module.state_dict().items()}
    shift, scale = state.pop("span.shift"), state.pop("span.scale")
    last = max(int(name.split(".")[1]) for name in state if name.startswith("mean."))
    state[f"mean.{last}.weight"] *= scale[:, None]
    state[f"mean.{last}.bias"] = state[f"mean.{last}.bias"] * scale + shift
    return state
