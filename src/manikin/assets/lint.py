"""What is wrong with a user's MJCF or URDF before anything compiles it, in words that name the place to change."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path

from manikin.errors import SceneError

__all__ = ["lint"]

_NAMED = {
    "body": "bodies",
    "link": "links",
    "joint": "joints",
    "freejoint": "joints",
    "geom": "geoms",
    "site": "sites",
    "camera": "cameras",
}


def lint(path: Path) -> None:
    """Refuse a file that names two parts alike or gives a joint or an actuator an empty range.

    What includes bring is left to MuJoCo, and so is a file that is no XML.

    Raises:
        SceneError: says which name or range, and on which lines.
    """
    text = path.read_text(encoding="utf-8", errors="replace")
    try:
        robot = ET.fromstring(text)
    except (ET.ParseError, ValueError):
        return
    urdf = path.suffix.lower() == ".urdf"
    parts = list(robot) if urdf else [e for top in robot.findall("worldbody") for e in top.iter()]
    seen: set[tuple[str, str]] = set()
    for part in parts:
        key = (_NAMED.get(part.tag, ""), part.get("name", ""))
        if all(key) and key in seen:
            lines = _lines(text, part.tag, "name", key[1])
            raise SceneError(f"{path.name}: two {key[0]} are called {key[1]!r}{lines}; names must differ")
        seen.add(key)
    if not urdf:
        for element in (*parts, *(e for top in robot.findall("actuator") for e in top)):
            for word in ("range", "ctrlrange", "forcerange", "actuatorfrcrange"):
                _check_range(element, word, path, text)


def _check_range(element: ET.Element, word: str, path: Path, text: str) -> None:
    """Equal bounds mean no limits where MuJoCo is not told to limit; bounds in the wrong order mean nothing."""
    try:
        low, high = map(float, element.get(word, "").split())
    except ValueError:
        return
    limited = element.get({"range": "limited"}.get(word, word.replace("range", "limited")), "auto") == "true"
    if low > high or (low == high and limited):
        what = (
            f"actuator of {element.get('joint')!r}"
            if element.get("joint")
            else f"{element.tag} {element.get('name')!r}"
        )
        lines = _lines(text, element.tag, word, element.get(word, ""))
        raise SceneError(
            f"{path.name}: the {word} of the {what} is empty, from {low:g} to {high:g}{lines}; write the lower bound "
            "first, or leave it out for no limits"
        )


def _lines(text: str, tag: str, attribute: str, value: str) -> str:
    """Where elements say so, as " (lines 3 and 12)"."""
    pattern = rf"<{tag}\b[^>]*\b{attribute}\s*=\s*[\"']{re.escape(value)}[\"']"
    places = [str(text.count("\n", 0, match.start()) + 1) for match in re.finditer(pattern, text)]
    found = list(dict.fromkeys(places))
    return f" (line{'s' * (len(found) > 1)} {' and '.join(found)})" if found else ""
