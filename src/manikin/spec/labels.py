"""How a run came about, in words: events, and modes of success and failure as conditions on the list of events.

A task declares which of its flags make events when they rise or fall. An episode's events, in order and with repeats
side by side merged, are its story; each mode is a condition on that story. :meth:`Labels.check` goes through every
story that the events allow and proves that exactly one mode holds for each.

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
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

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

MOST = 20_000  # kinds of stories; seconds


@dataclass(frozen=True)
class Event:
    """Something that happens in a step.

    Attributes:
        name: what it is called.
        flag: name of the boolean that ``Task.evaluate`` gives, or of a number where ``at_least`` is set.
        edge: ``rise`` or ``fall`` of the flag; before the first step every flag is down.
        at_least: the flag is a number and counts as up from here on.
    """

    name: str
    flag: str
    edge: str = "rise"
    at_least: float | None = None

    @property
    def signal(self) -> tuple[str, float | None]:
        """What rises and falls."""
        return self.flag, self.at_least


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
        events: in the order in which those of one step are listed. One is ``Event("success", "success")``; success
            after ``fail`` does not count and is none.
        success: modes of episodes with the event ``success``; failure: of those without.
        ordered: the first mode whose condition holds is taken; otherwise conditions must exclude one another.
        source: where the definitions come from.

    Raises:
        ConfigError: a condition that cannot be read, a name or an edge used twice, or no event ``success``, or
            another one than the rise of the task's own flag.
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
        edges: dict[tuple[object, str], str] = {}
        for event in self.events:
            if event.edge not in ("rise", "fall"):
                raise UnknownNameError(f"edge of event {event.name!r}", event.edge, ("rise", "fall"))
            if event.name == "success" and event != Event("success", "success"):
                raise ConfigError(
                    "the event 'success' is the rise of the task's own flag, Event('success', 'success'), as rates "
                    f"count it; not the {event.edge} of {event.flag!r}"
                )
            other = edges.setdefault((event.signal, event.edge), event.name)
            if other != event.name:
                raise ConfigError(
                    f"the events {other!r} and {event.name!r} are both the {event.edge} of {event.flag!r}"
                )
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

    def check(self) -> int:
        """Prove, for every story of any length, that exactly one mode holds, and that none never does.

        Returns:
            how many stories were looked at: one of each kind, see :meth:`stories`.

        Raises:
            ConfigError: a gap or an overlap, with the shortest story that shows it; a mode that no story reaches; or
            more kinds of stories than can be gone through in seconds.
        """
        return _checked(self)

    def stories(self) -> Iterator[Story]:
        """Every kind of story that flags can tell, by its shortest one: the rises and falls of one flag take turns, and
        neighbours differ.

        Two stories are of one kind if all that the conditions ask has the same answer, and has so again after any
        further events that both may have. So what holds for these holds for all. An exception are counts that are
        compared with one another or with places: up to two of an event are looked at.
        """
        asked = _Asked.of(self)
        signals = [event.signal for event in self.events]
        turns = {signal for signal in signals if signals.count(signal) > 1}
        rises = {event.flag: event.name for event in self.events if event.edge == "rise" and event.at_least is None}
        first: tuple[tuple[str, ...], frozenset[object]] = ((), frozenset())
        known, waiting = {self._kind(*first, asked)}, deque([first])
        while waiting:
            events, up = waiting.popleft()
            in_first = set(self._first_step(events)) if asked.began else set()
            for bits in range(1 << len(asked.began)):
                began = frozenset(flag for i, flag in enumerate(asked.began) if bits >> i & 1)
                if {rises[flag] for flag in began if flag in rises} <= in_first:
                    yield Story(events, began)
            for event in self.events:
                turning = event.signal in turns
                if events[-1:] == (event.name,) or (turning and (event.signal in up) == (event.edge == "rise")):
                    continue
                longer = ((*events, event.name), up ^ {event.signal} if turning else up)
                kind = self._kind(*longer, asked)
                if kind not in known:
                    known.add(kind)
                    waiting.append(longer)

    def _kind(self, events: tuple[str, ...], up: frozenset[object], asked: _Asked) -> object:
        """Equal for stories that no condition tells apart, now or after the same further events.

        Of places that are compared the order is enough: what happens next has a larger one than all before.
        """
        story, begun = Story(events), self._first_step(events) if asked.began else ()
        numbers = [number(story) for number in asked.numbers]
        return (
            up,
            asked.occurred.intersection(events),
            events[: asked.start],
            events[-asked.end :],
            min(len(events), asked.length),
            tuple([min(events.count(name), most) for name, most in asked.counts]),
            tuple([numbers[a] > numbers[b] for a, b in asked.pairs]),
            (begun == events, asked.began_with.intersection(begun)),
        )

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


@functools.lru_cache(maxsize=256)
def _checked(labels: Labels) -> int:
    count, reached = 0, set()
    for story in labels.stories():
        reached.add(labels.label(story))
        count += 1
        if count > MOST:
            raise ConfigError(f"more than {MOST:,} kinds of stories; compare counts and places with smaller numbers")
    dead = [name for name in labels.modes if name not in reached]
    if dead:
        raise ConfigError(f"no story reaches the mode {dead[0]!r}")
    return count


@dataclass(frozen=True, kw_only=True)
class _Asked:
    """All that the conditions of some labels ask of a story.

    Attributes:
        occurred: events of which it matters whether they did.
        numbers: that are compared with each other; pairs: which, by their places.
        counts: events that are counted, and from where on it does not matter how many there are.
        length: likewise of the story's length, and of the places in it.
        start, end: how many events of its beginning and of its end are looked at; at least the last.
        began: flags that are asked for; began_with: the events that they make.
    """

    occurred: frozenset[str]
    numbers: tuple[Callable[[Story], int], ...]
    pairs: tuple[tuple[int, int], ...]
    counts: tuple[tuple[str, int], ...]
    length: int
    start: int
    end: int
    began: tuple[str, ...]
    began_with: frozenset[str]

    @classmethod
    def of(cls, labels: Labels) -> _Asked:
        names = tuple(event.name for event in labels.events)
        occurred, pairs, counts = {"success"}, set[tuple[str, str]](), dict[str, int]()
        began, length, spans = set[str](), 0, {"starts": 0, "ends": 1}
        nodes = [n for m in (*labels.success, *labels.failure) for n in ast.walk(ast.parse(m.when, mode="eval"))]
        within = {id(a) for n in nodes if isinstance(n, ast.Call) and _called(n) != "first" for a in n.args}
        for node in nodes:
            if isinstance(node, ast.Compare):
                sides = [ast.unparse(side) for side in (node.left, *node.comparators)]
                enough = 2 + max((int(side) for side in sides if _digits(side)), default=0)
                kinds = {"place" if side.startswith(("first(", "last(")) else side[:6] for side in sides}
                if "length" in kinds or ("place" in kinds and len(kinds) > 1):
                    length = max(length, enough)
                for name in (side[6:-1] for side in sides if side.startswith("count(")):
                    counts[name] = max(enough, counts.get(name, 0))
                if "place" in kinds or not any(map(_digits, sides)):
                    pairs.update(pair for a, b in pairwise(sides) for pair in ((a, b), (b, a)))
            elif isinstance(node, ast.Name) and node.id in names and id(node) not in within:
                occurred.add(node.id)
            elif isinstance(node, ast.Call) and _called(node) == "began":
                began.update(argument.id for argument in node.args if isinstance(argument, ast.Name))
            elif isinstance(node, ast.Call) and _called(node) in spans:
                spans[_called(node)] = max(spans[_called(node)], len(node.args))
        sides = sorted({side for pair in pairs for side in pair})
        return cls(
            occurred=frozenset(occurred),
            numbers=tuple(_number(ast.parse(side, mode="eval").body, names, "") for side in sides),
            pairs=tuple((sides.index(a), sides.index(b)) for a, b in sorted(pairs)),
            counts=tuple(sorted(counts.items())),
            length=length,
            start=spans["starts"],
            end=spans["ends"],
            began=tuple(sorted(began)),
            began_with=frozenset(e.name for e in labels.events if e.edge == "rise" and e.flag in began),
        )


def _called(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else ""


def _digits(text: str) -> bool:
    return text.lstrip("-").isdigit()


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
    raise ConfigError(f"{where}{ast.unparse(node)!r} is not a condition; see manikin.spec.labels for the language")


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
        return lambda story: len(story.events) - 1 - story.events[::-1].index(name) if name in story.events else -1
    raise ConfigError(
        f"{where}{ast.unparse(node)!r} is not a number: use length, last(), first(), count() or an integer"
    )


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
