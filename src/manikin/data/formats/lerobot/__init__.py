"""LeRobotDataset v3.0: episodes written to one, and a recording turned into one."""

from manikin.data.formats.lerobot.export import LeRobotExport
from manikin.data.formats.lerobot.writer import OWN, VERSION, LeRobotWriter

__all__ = ["OWN", "VERSION", "LeRobotExport", "LeRobotWriter"]
