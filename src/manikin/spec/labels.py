"""How a run came about, in words: events, and modes of success and failure as conditions on the list of events.

A task declares which of its flags make events when they rise or fall. An episode's events, in order and with repeats
side by side merged, are its story; each mode is a condition on that story. :meth:`Labels.check` enumerates every story
that the events allow and proves that exactly one mode holds for each.

Conditions are a small language with the syntax of Python::

    success and length == 3                  an event's name: it occurred
    last(dropped) > last(grasped)            place of the last occurrence, -1 if none; first() likewise
    count(contact) >= 2
    starts(contact, grasped), ends(success)  the story begins or ends so
    began(at_goal)                           this flag was up after the first step
    otherwise                                always true, for the last mode

The event lists of mobile manipulation in MS-HAB (Shukla et al. 2024) are the model.
"""

from __future__ import annotations

import ast
import functools
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from manikin.errors import ConfigError, UnknownNameError

__all__ = ["PLAIN", "Event", "Labels", "Mode", "Story"]

_COMPARE: dict[type[ast.cmpop], Callable[[int, int], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}


@dataclass(frozen=True)
class Event:
    """Something that happens in a step.

    Attributes:
        name: what it is called.
        flag: name of the boolean that ``Task.evaluate`` gives, or of a number where ``above`` is set.
        edge: ``rise`` or ``fall`` of the flag; before the first step every flag is down.
        above: the flag is a number and counts as up above this.
    """

    name: str
    flag: str
    edge: str = "rise"
    above: float | None = None


@dataclass(frozen=True)
class Mode:
    """A way to succeed or fail: its name, when it holds, and what it means for people."""

    name: str
    when: str
    note: str = ""


@dataclass(frozen=True)
class Story:
    """What is known of an episode: its merged events, and the flags that were up after the first step."""

    events: tuple[str, ...]
    began: frozenset[str] = frozenset()


@dataclass(frozen=True, kw_only=True)
class Labels:
    """The events of a task and its modes.

    Attributes:
        events: in the order in which those of one step are listed.
        success: modes of episodes with the event ``success``; failure: of those without.
        ordered: the first mode whose condition holds is taken; otherwise conditions must exclude one another.
        source: where the definitions come from.

    Raises:
        ConfigError: a condition that cannot be read, a name used twice, or no event ``success``.
        UnknownNameError: a condition speaks of an event that is not declared.
    """

    events: tuple[Event, ...]
    success: tuple[Mode, ...]
    failure: tuple[Mode, ...]
    ordered: bool = True
    source: str = ""

    def __post_init__(self) -> None:
        names = [event.name for event in self.events]
        modes = [mode.name for mode in (*self.success, *self.failure)]
        for kind, words in (("events", names), ("modes", modes)):
            twice = {word for word in words if words.count(word) > 1}
            if twice:
                raise ConfigError(f"two {kind} are named {sorted(twice)[0]!r}")
        if "success" not in names:
            raise ConfigError(f"labels need an event named 'success'; there are {', '.join(names)}")
        for event in self.events:
            if event.edge not in ("rise", "fall"):
                raise UnknownNameError(f"edge of event {event.name!r}", event.edge, ("rise", "fall"))
        for mode in (*self.success, *self.failure):
            self._condition(mode)  # raises where it cannot be read

    @property
    def modes(self) -> tuple[str, ...]:
        """Names of all modes, successes first."""
        return tuple(mode.name for mode in (*self.success, *self.failure))

    def label(self, story: Story) -> str:
        """The mode of an episode.

        Raises:
            ConfigError: none holds, or, unless ``ordered``, several do.
        """
        found = self._holding(story)
        if len(found) != 1 and not (found and self.ordered):
            said = "no mode holds" if not found else f"{' and '.join(found)} hold together"
            raise ConfigError(f"{said} for the events ({', '.join(story.events)})")
        return found[0]

    def check(self, length: int = 6) -> int:
        """Prove, for every story of up to ``length`` events, that exactly one mode holds, and that none never does.

        Returns:
            how many stories were looked at.

        Raises:
            ConfigError: a gap, an overlap, or a mode that no story reaches; with the story.
        """
        count, reached = 0, set()
        for story in self.stories(length):
            reached.add(self.label(story))
            count += 1
        dead = [name for name in self.modes if name not in reached]
        if dead:
            raise ConfigError(f"no story of up to {length} events reaches the mode {dead[0]!r}")
        return count

    def stories(self, length: int) -> Iterator[Story]:
        """Every story of up to ``length`` events that flags can tell: the rises and falls of one flag take turns, what
        happens in one step is in the declared order, and a total that has passed its limit stays above it."""
        asked = sorted({name for mode in (*self.success, *self.failure) for name in _began(mode.when)})
        rises = {event.flag: event.name for event in self.events if event.edge == "rise"}
        turns = {event.flag for event in self.events if event.edge == "fall"} & rises.keys()

        def grow(events: tuple[str, ...], up: frozenset[str]) -> Iterator[tuple[str, ...]]:
            yield events
            for event in self.events if len(events) < length else ():
                merged = events[-1:] == (event.name,)
                over = event.above is not None and event.name in events
                if merged or over or (event.flag in turns and (event.flag in up) == (event.edge == "rise")):
                    continue
                yield from grow((*events, event.name), up ^ {event.flag} if event.flag in turns else up)

        for events in grow((), frozenset()):
            for bits in range(1 << len(asked)):
                began = frozenset(flag for i, flag in enumerate(asked) if bits >> i & 1)
                if {rises[flag] for flag in began if flag in rises} <= set(self._first_step(events)):
                    yield Story(events, began)

    def _first_step(self, events: Sequence[str]) -> tuple[str, ...]:
        """The longest beginning of a story that can be one step's: rises in the declared order."""
        order = [event.name for event in self.events if event.edge == "rise"]
        count, place = 0, -1
        for name in events:
            if name not in order or order.index(name) <= place:
                break
            count, place = count + 1, order.index(name)
        return tuple(events[:count])

    def _holding(self, story: Story) -> list[str]:
        modes = self.success if "success" in story.events else self.failure
        return [mode.name for mode in modes if self._condition(mode)(story)]

    def _condition(self, mode: Mode) -> Callable[[Story], bool]:
        return _compiled(mode.when, tuple(event.name for event in self.events), mode.name)


@functools.lru_cache(maxsize=1024)
def _compiled(text: str, events: tuple[str, ...], mode: str) -> Callable[[Story], bool]:
    try:
        tree = ast.parse(text, mode="eval").body
    except SyntaxError as error:
        raise ConfigError(f"mode {mode!r}: {text!r} cannot be read ({error.msg})") from None
    return _boolean(tree, events, f"mode {mode!r}: ")


def _boolean(node: ast.expr, events: tuple[str, ...], where: str) -> Callable[[Story], bool]:
    if isinstance(node, ast.BoolOp):
        parts = [_boolean(value, events, where) for value in node.values]
        if isinstance(node.op, ast.And):
            return lambda story: all(part(story) for part in parts)
        return lambda story: any(part(story) for part in parts)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        inner = _boolean(node.operand, events, where)
        return lambda story: not inner(story)
    if isinstance(node, ast.Name):
        if node.id == "otherwise":
            return lambda story: True
        name = _event(node, events, where)
        return lambda story: name in story.events
    if isinstance(node, ast.Compare):
        numbers = [_number(side, events, where) for side in (node.left, *node.comparators)]
        if all(type(op) in _COMPARE for op in node.ops):
            tests = [_COMPARE[type(op)] for op in node.ops]
            return lambda story: all(
                test(a(story), b(story)) for test, a, b in zip(tests, numbers, numbers[1:], strict=False)
            )
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("starts", "ends", "began"):
        if node.func.id == "began":
            flags = frozenset(_began(ast.unparse(node)))
            return lambda story: flags <= story.began
        names = tuple(_event(argument, events, where) for argument in node.args)
        if node.func.id == "starts":
            return lambda story: story.events[: len(names)] == names
        return lambda story: bool(names) and story.events[-len(names) :] == names
    raise ConfigError(f"{where}{ast.unparse(node)!r} is no condition; see manikin.spec.labels for the language")


def _number(node: ast.expr, events: tuple[str, ...], where: str) -> Callable[[Story], int]:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        value = node.value
        return lambda story: value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _number(node.operand, events, where)
        return lambda story: -inner(story)
    if isinstance(node, ast.Name) and node.id == "length":
        return lambda story: len(story.events)
    function = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
    if isinstance(node, ast.Call) and function in ("last", "first", "count") and len(node.args) == 1:
        name = _event(node.args[0], events, where)
        if function == "count":
            return lambda story: story.events.count(name)
        if function == "first":
            return lambda story: story.events.index(name) if name in story.events else -1
        return lambda story: max((i for i, event in enumerate(story.events) if event == name), default=-1)
    raise ConfigError(f"{where}{ast.unparse(node)!r} is no number: use length, last(), first(), count() or an integer")


def _event(node: ast.expr, events: tuple[str, ...], where: str) -> str:
    if not isinstance(node, ast.Name):
        raise ConfigError(f"{where}{ast.unparse(node)!r} is not the name of an event")
    if node.id not in events:
        raise UnknownNameError(f"{where}event", node.id, events)
    return node.id


def _began(text: str) -> list[str]:
    """Flags that a condition asks ``began`` about."""
    calls = [node for node in ast.walk(ast.parse(text, mode="eval")) if isinstance(node, ast.Call)]
    return [
        argument.id
        for call in calls
        if isinstance(call.func, ast.Name) and call.func.id == "began"
        for argument in call.args
        if isinstance(argument, ast.Name)
    ]


PLAIN = Labels(
    events=(Event("success", "success"), Event("lost", "success", "fall")),
    success=(
        Mode("success", "not lost"),
        Mode("success_then_lost", "last(lost) > last(success)", "it succeeded and did not stay so"),
        Mode("winding_success", "otherwise", "it succeeded, lost it, and succeeded again"),
    ),
    failure=(Mode("no_success", "otherwise"),),
    source="any task",
)
