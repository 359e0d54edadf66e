"""``python -m manikin.cli`` is the command ``manikin``."""

from __future__ import annotations

import sys

from manikin.cli import main

sys.exit(main())
