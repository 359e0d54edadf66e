"""Robots of LeRobot by name. LeRobot is imported only when one is asked for."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from manikin.deploy.interface import RobotInterface
from manikin.errors import ConfigError, UnknownNameError

__all__ = ["FOLLOWERS", "lerobot_robot"]

FOLLOWERS = {"so101_follower": "so101", "so100_follower": "so101", "koch_follower": "koch"}
"""LeRobot's names of follower arms -> the arm that each is."""


def lerobot_robot(
    kind: str,
    *,
    port: str,
    id: str | None = None,
    cameras: Mapping[str, Mapping[str, Any]] | None = None,
) -> RobotInterface:
    """A follower arm of LeRobot, not connected, its body motors in degrees.

    Args:
        kind: of :data:`FOLLOWERS`.
        port: the serial port, ``/dev/ttyACM0``.
        id: the name under which LeRobot has its calibration.
        cameras: by name, the fields of LeRobot's ``OpenCVCameraConfig``: ``{"front": {"index_or_path": 0, "fps": 30,
            "width": 640, "height": 480}}``.

    Raises:
        UnknownNameError: no such kind.
        ConfigError: LeRobot is not installed, or refuses the configuration; says why.
    """
    if kind not in FOLLOWERS:
        raise UnknownNameError("follower arm", kind, FOLLOWERS)
    try:
        robots = importlib.import_module("lerobot.robots")
        for module in (kind, "so_follower"):  # where versions of LeRobot declare the kinds of arms
            try:
                importlib.import_module(f"lerobot.robots.{module}")
            except ModuleNotFoundError as error:
                if not (error.name or "").startswith("lerobot.robots"):
                    raise
        make = importlib.import_module("lerobot.robots.utils").make_robot_from_config
        eyes = {}
        if cameras:
            camera = importlib.import_module("lerobot.cameras.opencv.configuration_opencv").OpenCVCameraConfig
            eyes = {name: camera(**fields) for name, fields in cameras.items()}
    except ImportError as error:
        raise ConfigError(
            f"LeRobot cannot be imported ({error}): pip install 'lerobot[feetech]' in this environment"
        ) from None
    except (TypeError, ValueError) as error:
        raise ConfigError(f"LeRobot refuses the cameras: {error}") from None
    try:
        config = robots.RobotConfig.get_choice_class(kind)(port=port, id=id, cameras=eyes, use_degrees=True)
        robot: RobotInterface = make(config)
    except ImportError as error:  # of the motors' own library
        raise ConfigError(f"LeRobot cannot drive {kind} ({error}): pip install 'lerobot[feetech,dynamixel]'") from None
    except (TypeError, ValueError) as error:
        raise ConfigError(f"LeRobot refuses the configuration of {kind}: {error}") from None
    return robot
