"""What real sensors do to a value: noise, a lower rate, delay, lost samples. Declared as data, applied without state.

    model = SensorModel((Noise(0.002, bias_std=0.001), Rate(30), Delay(1), Dropout(0.02)), control_hz=100)
    carry = model.start(value, rng)                              # at the start of an episode
    seen, carry = model(carry, value, rng.derive(elapsed))       # once per control step, the first one included

Imperfections act in the order given. ``carry`` is a flat dict of tensors with a leading row dimension, so rows of it
can be saved, loaded and replaced like any other tensor. Random numbers are functions of episode, step and the sensor's
name: neither the row nor the batch it is in matters.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import torch
from torch import Tensor

from manikin.errors import ConfigError, UnknownNameError
from manikin.rng import EpisodeRng
from manikin.sense.kinds import built_in

__all__ = [
    "Carry",
    "Delay",
    "Drift",
    "Dropout",
    "Imperfection",
    "Noise",
    "Rate",
    "SensorModel",
    "SensorSuite",
    "leaves",
    "replaced",
]

Carry = dict[str, Tensor]


class Imperfection(Protocol):
    """One effect. ``name`` is that of its random streams; ``control_hz`` how often ``apply`` is called."""

    def start(self, value: Tensor, rng: EpisodeRng, name: str, control_hz: float) -> Carry:
        """What is remembered at the start of an episode, where ``value`` (n, ...) is the first true value."""
        ...

    def apply(self, carry: Carry, value: Tensor, rng: EpisodeRng, name: str, control_hz: float) -> tuple[Tensor, Carry]:
        """The value that comes out and what is remembered next; arguments stay as they are."""
        ...


def _check(good: bool, what: str) -> None:
    if not good:
        raise ConfigError(what)


def _rows(mask: Tensor, like: Tensor) -> Tensor:
    """(n,) to a shape that broadcasts against (n, ...)."""
    return mask.view(-1, *[1] * (like.dim() - 1))


@built_in
@dataclass(frozen=True)
class Noise:
    """Independent normal noise per element and step, and a constant offset drawn once per episode.

    Attributes:
        std, bias_std: in the value's unit; a number, or one per element of the value's last dimension.
        keep_zero: leave zeros alone, which in a depth image mean that nothing was hit.

    uint8 values are rounded and kept in 0..255.
    """

    std: float | tuple[float, ...]
    bias_std: float | tuple[float, ...] = 0.0
    keep_zero: bool = False

    def __post_init__(self) -> None:
        for width in (self.std, self.bias_std):
            least = min(width) if isinstance(width, tuple) else width
            _check(least >= 0, f"a standard deviation cannot be negative: {self}")

    def start(self, value: Tensor, rng: EpisodeRng, name: str, control_hz: float) -> Carry:
        shape = tuple(value.shape[1:])
        self._width(self.std, value)  # a wrong shape shows here, not in the first step
        return {"bias": rng.normal(f"{name}/bias", 0.0, 1.0, shape) * self._width(self.bias_std, value)}

    def apply(self, carry: Carry, value: Tensor, rng: EpisodeRng, name: str, control_hz: float) -> tuple[Tensor, Carry]:
        noise = rng.normal(f"{name}/noise", 0.0, 1.0, tuple(value.shape[1:])) * self._width(self.std, value)
        out = value + carry["bias"] + noise
        if self.keep_zero:
            out = torch.where(value == 0, torch.zeros_like(out), out)
        if value.dtype == torch.uint8:
            out = out.round().clamp(0, 255).to(torch.uint8)
        return out, carry

    @staticmethod
    def _width(std: float | tuple[float, ...], value: Tensor) -> Tensor:
        width = torch.tensor(std, dtype=torch.float32, device=value.device)
        if width.dim() and (value.dim() < 2 or value.shape[-1] != len(width)):
            raise ConfigError(f"noise has {len(width)} widths but the value has shape {tuple(value.shape[1:])}")
        return width


@built_in
@dataclass(frozen=True)
class Drift:
    """An offset that walks: after t seconds it is normal with a standard deviation of ``std`` times the root of t.

    Attributes:
        std: in the value's unit per root second; the bias instability of inertial sensors is given so.
    """

    std: float

    def __post_init__(self) -> None:
        _check(self.std >= 0, f"a standard deviation cannot be negative: {self}")

    def start(self, value: Tensor, rng: EpisodeRng, name: str, control_hz: float) -> Carry:
        return {"offset": torch.zeros_like(value)}

    def apply(self, carry: Carry, value: Tensor, rng: EpisodeRng, name: str, control_hz: float) -> tuple[Tensor, Carry]:
        walked = rng.normal(f"{name}/drift", 0.0, self.std / math.sqrt(control_hz), tuple(value.shape[1:]))
        return value + carry["offset"], {"offset": carry["offset"] + walked}


@built_in
@dataclass(frozen=True)
class Delay:
    """The value of some control steps ago; before there is one, the first.

    Attributes:
        steps: how many, or (fewest, most): then each episode has its own number, all equally likely.
    """

    steps: int | tuple[int, int]

    def __post_init__(self) -> None:
        whole = all(isinstance(steps, int) and not isinstance(steps, bool) for steps in self._range)
        in_order = whole and 0 <= self._range[0] <= self._range[1]
        _check(in_order, f"a delay needs whole steps, 0 <= fewest <= most: {self}")

    @property
    def _range(self) -> tuple[int, int]:
        return self.steps if isinstance(self.steps, tuple) else (self.steps, self.steps)

    def start(self, value: Tensor, rng: EpisodeRng, name: str, control_hz: float) -> Carry:
        low, high = self._range
        history = value.unsqueeze(1).expand(-1, high, *value.shape[1:]).clone()
        return {"history": history, "steps": rng.integers(f"{name}/steps", low, high + 1)}

    def apply(self, carry: Carry, value: Tensor, rng: EpisodeRng, name: str, control_hz: float) -> tuple[Tensor, Carry]:
        history = torch.cat([carry["history"], value.unsqueeze(1)], 1)  # oldest first, now last
        row = torch.arange(len(value), device=value.device)
        out = history[row, history.shape[1] - 1 - carry["steps"]]
        return out, {**carry, "history": history[:, 1:].clone()}


@built_in
@dataclass(frozen=True)
class Dropout:
    """Each step, with some probability for each row, the value is lost and the one before stays."""

    probability: float

    def __post_init__(self) -> None:
        _check(0 <= self.probability < 1, f"a probability of loss must be in [0, 1): {self}")

    def start(self, value: Tensor, rng: EpisodeRng, name: str, control_hz: float) -> Carry:
        return {"last": value.clone(), "fresh": torch.ones(len(value), dtype=torch.bool, device=value.device)}

    def apply(self, carry: Carry, value: Tensor, rng: EpisodeRng, name: str, control_hz: float) -> tuple[Tensor, Carry]:
        lost = (rng.uniform(f"{name}/lost") < self.probability) & ~carry["fresh"]  # the first always arrives
        out = torch.where(_rows(lost, value), carry["last"], value)
        return out, {"last": out.clone(), "fresh": torch.zeros_like(lost)}


@built_in
@dataclass(frozen=True)
class Rate:
    """A sensor slower than control: sampled ``hz`` times a second, held between. Any ratio; faster is every step."""

    hz: float

    def __post_init__(self) -> None:
        _check(self.hz > 0, f"a rate must be positive: {self}")

    def start(self, value: Tensor, rng: EpisodeRng, name: str, control_hz: float) -> Carry:
        return {"held": value.clone(), "step": torch.zeros(len(value), dtype=torch.int64, device=value.device)}

    def apply(self, carry: Carry, value: Tensor, rng: EpisodeRng, name: str, control_hz: float) -> tuple[Tensor, Carry]:
        ratio = Fraction(self.hz).limit_denominator(10**6) / Fraction(control_hz).limit_denominator(10**6)
        p, q = min(ratio, Fraction(1)).as_integer_ratio()
        step = carry["step"]
        due = (step * p) // q != ((step - 1) * p) // q  # whole numbers: no drift over a long episode
        out = torch.where(_rows(due, value), value, carry["held"])
        return out, {"held": out.clone(), "step": step + 1}


_KINDS: dict[str, type] = {kind.__name__: kind for kind in (Delay, Drift, Dropout, Noise, Rate)}


def _described(effect: Any) -> dict[str, Any]:
    """An imperfection as plain values: ``{"kind": "Noise", "std": 0.01, ...}``."""
    kind = type(effect)
    word = kind.__name__ if _KINDS.get(kind.__name__) is kind else f"{kind.__module__}.{kind.__qualname__}"
    fields = dataclasses.fields(kind) if dataclasses.is_dataclass(kind) else ()
    return {"kind": word, **{one.name: getattr(effect, one.name) for one in fields}}


def _made(plain: Mapping[str, Any]) -> Any:
    """The imperfection that was described."""
    kind = plain.get("kind")
    if kind not in _KINDS:
        raise UnknownNameError("imperfection", kind, _KINDS, "One of your own cannot be made by name: pass sensors=.")
    fields = {name: tuple(v) if isinstance(v, list) else v for name, v in plain.items() if name != "kind"}
    try:
        return _KINDS[kind](**fields)
    except TypeError as error:
        raise ConfigError(f"this does not describe a {kind}: {error} in {plain!r}") from error


class SensorModel:
    """Imperfections of one sensor, in order.

    Args:
        imperfections: what happens to the value, first things first; or as :meth:`SensorSuite.describe` described them.
        control_hz: how often the model is called [1/s].
        name: of the sensor; two sensors of one name would have the same noise.

    Raises:
        ConfigError: where something else is given.
    """

    def __init__(self, imperfections: Sequence[Imperfection], *, control_hz: float, name: str = "sensor") -> None:
        effects = imperfections if isinstance(imperfections, Sequence) else [None]
        effects = [_made(effect) if isinstance(effect, Mapping) else effect for effect in effects]
        if not all(callable(getattr(effect, "apply", None)) for effect in effects):
            kinds = ", ".join(sorted(_KINDS))
            raise ConfigError(f"sensor {name!r} takes a list of imperfections ({kinds}), not {imperfections!r:.80}")
        self.imperfections: tuple[Imperfection, ...] = tuple(effects)
        self.control_hz, self.name = control_hz, name

    def _name(self, k: int) -> str:
        return f"sense/{self.name}/{k}"

    def start(self, value: Tensor, rng: EpisodeRng) -> Carry:
        """What is remembered at the start of episodes.

        Args:
            value: (n, ...) the first true values.
            rng: of the n episodes (not derived): what lasts an episode is drawn from it.
        """
        if rng.n != len(value):
            raise ConfigError(f"sensor {self.name!r}: {len(value)} values but random streams of {rng.n} rows")
        carry: Carry = {"value": value.clone()}
        for k, effect in enumerate(self.imperfections):
            made = effect.start(value, rng, self._name(k), self.control_hz)
            carry |= {f"{k}/{key}": v for key, v in made.items()}
        return carry

    def __call__(
        self, carry: Mapping[str, Tensor], value: Tensor, rng: EpisodeRng, active: Tensor | None = None
    ) -> tuple[Tensor, Carry]:
        """One control step.

        Args:
            carry: what ``start`` or the last call returned; stays as it is.
            value: (n, ...) true values now.
            rng: ``rng.derive(elapsed)`` of the n episodes.
            active: (n,) bool; other rows keep what they last gave, and their carry. None means all.

        Returns:
            What the sensor says (n, ...), owned by the caller, and the next carry.
        """
        out: Carry = {}
        for k, effect in enumerate(self.imperfections):
            prefix = f"{k}/"
            mine = {key.removeprefix(prefix): v for key, v in carry.items() if key.startswith(prefix)}
            value, mine = effect.apply(mine, value, rng, self._name(k), self.control_hz)
            out |= {prefix + key: v for key, v in mine.items()}
        out["value"] = value.clone()
        if active is not None:
            out = {key: torch.where(_rows(active, v), v, carry[key]) for key, v in out.items()}
        return out["value"].clone(), out

    def read(self, carry: Mapping[str, Tensor]) -> Tensor:
        """What the last call gave (n, ...), again: for observing a second time, or after loading a carry."""
        return carry["value"].clone()


class SensorSuite:
    """The imperfections of a whole observation, a nested dict of tensors (n, ...).

    Args:
        sensors: path in the observation, for example ``"policy/qpos"`` or ``"cameras/hand_camera/depth"`` -> what
            happens there. Everything else passes as it is.
        control_hz: how often the suite is called [1/s].

    Raises:
        ConfigError: ``sensors`` is no mapping, or as :class:`SensorModel`.
    """

    def __init__(self, sensors: Mapping[str, Sequence[Imperfection]], *, control_hz: float) -> None:
        if not isinstance(sensors, Mapping):
            raise ConfigError(
                "sensors must map paths to lists of imperfections, like {'policy/qpos': [Delay(1)]}, not "
                f"{sensors!r:.60}"
            )
        self.models = {path: SensorModel(made, control_hz=control_hz, name=path) for path, made in sensors.items()}

    def describe(self) -> dict[str, Any]:
        """What happens at which path, as plain values for JSON, from which a suite can be made again. An imperfection
        of one's own is only named."""
        plain = {path: [_described(effect) for effect in model.imperfections] for path, model in self.models.items()}
        found: dict[str, Any] = json.loads(json.dumps(plain, default=str))
        return found

    def start(self, observation: Mapping[str, Any], rng: EpisodeRng) -> Carry:
        """What is remembered at the start of episodes; see :meth:`SensorModel.start`.

        Raises:
            UnknownNameError: if a sensor's path is not in the observation.
        """
        values = dict(leaves(observation))
        for path in self.models:
            if path not in values:
                raise UnknownNameError("sensor", path, values)
        return {
            f"{path}|{key}": v
            for path, model in self.models.items()
            for key, v in model.start(values[path], rng).items()
        }

    def __call__(
        self, carry: Mapping[str, Tensor], observation: Mapping[str, Any], rng: EpisodeRng, active: Tensor | None = None
    ) -> tuple[dict[str, Any], Carry]:
        """One control step: the observation as the sensors give it, and the next carry; see SensorModel."""
        values, out = dict(leaves(observation)), dict[str, Tensor]()
        seen: dict[str, Tensor] = {}
        for path, model in self.models.items():
            seen[path], mine = model(self._of(carry, path), values[path], rng, active)
            out |= {f"{path}|{key}": v for key, v in mine.items()}
        return replaced(observation, seen), out

    def read(self, carry: Mapping[str, Tensor], observation: Mapping[str, Any]) -> dict[str, Any]:
        """``observation`` with what the sensors gave at the last call, again."""
        seen = {path: model.read(self._of(carry, path)) for path, model in self.models.items()}
        return replaced(observation, seen)

    @staticmethod
    def _of(carry: Mapping[str, Tensor], path: str) -> Carry:
        return {k.removeprefix(f"{path}|"): v for k, v in carry.items() if k.startswith(f"{path}|")}


def leaves(tree: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Tensor]]:
    """Paths and tensors of a nested dict."""
    for key, value in tree.items():
        if isinstance(value, Mapping):
            yield from leaves(value, f"{above}{key}/")
        else:
            yield above + key, value


def replaced(tree: Mapping[str, Any], seen: Mapping[str, Tensor], above: str = "") -> dict[str, Any]:
    """A nested dict with other tensors at some paths."""
    return {
        key: replaced(value, seen, f"{above}{key}/") if isinstance(value, Mapping) else seen.get(above + key, value)
        for key, value in tree.items()
    }
