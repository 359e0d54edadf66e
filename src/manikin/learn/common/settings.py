"""What the numbers of an algorithm's settings may be, by the names of the settings, for all algorithms."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from manikin.errors import ConfigError

__all__ = ["RANGES", "TrainerSettings"]

_HOLDS: dict[str, Callable[[Any], bool]] = {
    "1 or more": lambda x: x >= 1,
    "0 or more": lambda x: x >= 0,
    "above 0": lambda x: x > 0,
    "from 0 to 1": lambda x: 0 <= x <= 1,
    "above 0 and at most 1": lambda x: 0 < x <= 1,
    "0 or more and below 1": lambda x: 0 <= x < 1,
    "from 0 (of the horizon) to below 1": lambda x: 0 <= x < 1,
    "0 or 1": lambda x: x in (0, 1),
    "0 or more, or -1 for all frames": lambda x: x >= -1,
    "a finite number": lambda x: True,
}
_RISES = "two numbers that rise"
_MAY_RISE = f"{_RISES}, or none"
_NAMES = {
    "1 or more": """
        num_steps epochs minibatches updates batch batch_size buffer n_step critics min_of actor_every
        hidden critic_hidden channels unet_channels features width heads inner latent group kernel blocks bins modes
        encoder_layers decoder_layers predict execute rows train_steps steps plan iterations samples elites
        reverse_wins reverse_patience""",
    "0 or more": """
        value_weight entropy_weight bounds_weight kl_weight find_weight angle_weight gripper_weight consistency_weight
        reward_weight critic_rate temperature_rate encoder_share target_kl critic_first start_steps reverse
        demonstrations weight_decay warm_up average recurrent lead noise shift yaw corner proposals sharpness""",
    "above 0": "learning_rate clip max_grad_norm temperature min_std still near turned speed turn",
    "from 0 to 1": "gamma gae_lambda demo_share saturation pushes rho",
    "above 0 and at most 1": "follow",
    "0 or more and below 1": "noise_memory success_starts jitter dropout least_action",
    "0 or 1": "lag",
    "0 or more, or -1 for all frames": "after_success",
    "a finite number": "log_std min_log_std target_entropy ensemble_m",
    _RISES: "log_std_range std_range",
    _MAY_RISE: "value_range",
}
RANGES: Mapping[str, str] = {name: words for words, names in _NAMES.items() for name in names.split()}
"""Setting -> its range in words. Where 0 or -1 is allowed, the setting's docstring says what it means."""


class TrainerSettings:
    """Base of the settings of all algorithms. Making them checks every number.

    Raises:
        ConfigError: a number is out of its range; names setting, range and value.
    """

    ranges: ClassVar[Mapping[str, str]] = {}
    """Where an algorithm has another range than ``RANGES`` says."""

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):  # type: ignore[arg-type]  # its subclasses are dataclasses
            value = getattr(self, field.name)
            words = self.ranges.get(field.name) or RANGES.get(field.name)
            if words is None:
                continue
            if words in (_RISES, _MAY_RISE):
                if words == _MAY_RISE and not value:
                    continue
                if len(value) != 2 or not value[0] < value[1] or not all(map(math.isfinite, value)):
                    raise ConfigError(f"{field.name} must be {words}, got {list(value)}")
                continue
            several = isinstance(value, list | tuple)  # of a recipe they are lists
            if not all(math.isfinite(one) and _HOLDS[words](one) for one in (value if several else (value,))):
                said = f"each of {field.name}" if several else field.name
                raise ConfigError(f"{said} must be {words}, got {list(value) if several else value}")
