"""Reads a leader arm through LeRobot, in LeRobot's own Python. Run as a script; needs nothing of manikin.

Its one argument is JSON: ``{"kind": "so101_leader", "port": "/dev/ttyACM0", "id": "left"}``. It prints one line of JSON
for each reading: ``{"unit": "degrees", "values": {"shoulder_pan": 12.5, ...}}``, or ``{"error": "..."}`` and ends.
"""

from __future__ import annotations

import importlib
import json
import signal
import sys
import time
from typing import Any

RATE = 60.0  # [1/s]


def connect(about: dict[str, Any]) -> Any:
    """The leader arm, open and calibrated."""
    kind = about["kind"]
    teleoperators = importlib.import_module("lerobot.teleoperators")
    for module in (kind, "so_leader"):  # where versions of LeRobot declare the kinds of arms
        try:
            importlib.import_module(f"lerobot.teleoperators.{module}")
        except ModuleNotFoundError:
            continue
    config = teleoperators.TeleoperatorConfig.get_choice_class(kind)(port=about["port"], id=about["id"])
    arm = teleoperators.make_teleoperator_from_config(config)
    arm.connect(calibrate=False)  # calibration asks questions, which nobody would see
    if not arm.is_calibrated:
        arm.disconnect()
        raise RuntimeError(
            f"it is not calibrated: lerobot-calibrate --teleop.type={kind} --teleop.port={about['port']} "
            f"--teleop.id={about['id']}"
        )
    return arm


def main() -> int:
    """Read until nobody listens."""
    listener, sys.stdout = sys.stdout, sys.stderr  # what libraries print goes where errors go
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # so that the arm is let go of

    def say(**what: Any) -> None:
        listener.write(json.dumps(what) + "\n")
        listener.flush()

    try:
        arm = connect(json.loads(sys.argv[1]))
    except Exception as error:
        say(error=f"{type(error).__name__}: {error}")
        return 1
    unit = "degrees" if getattr(arm.config, "use_degrees", False) else "percent"
    try:
        while True:
            values = {name.removesuffix(".pos"): float(value) for name, value in arm.get_action().items()}
            say(unit=unit, values=values)
            time.sleep(1 / RATE)
    except BrokenPipeError:
        return 0
    except Exception as error:
        say(error=f"{type(error).__name__}: {error}")
        return 1
    finally:
        arm.disconnect()


if __name__ == "__main__":
    sys.exit(main())
