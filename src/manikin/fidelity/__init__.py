"""Distance of simulations from reality, on the recordings of the CSIRO manipulation benchmark or on your own.

Example:
    from manikin.fidelity import score_folder

    found = score_folder("my_engine", "collins2020/real_mean_10hz", mode="released")
    print(found.subgroups)

Source: Collins et al., IEEE RA-L 2020, arXiv 1911.01557.
"""

from __future__ import annotations

from manikin.fidelity.metrics.modes import METRICS, fidelity_metrics, subgroup_scores
from manikin.fidelity.protocol import SUBGROUPS, TASKS
from manikin.fidelity.recordings.defects import KINDS, Defect, find_defects, masked
from manikin.fidelity.recordings.own import read_own, write_own
from manikin.fidelity.recordings.recording import (
    Recording,
    read_reality,
    read_recording,
    read_repeats,
    write_repeats,
    write_summary,
)
from manikin.fidelity.score import Score, TaskScore, published, score_folder, score_task

__all__ = [
    "KINDS",
    "METRICS",
    "SUBGROUPS",
    "TASKS",
    "Defect",
    "Recording",
    "Score",
    "TaskScore",
    "fidelity_metrics",
    "find_defects",
    "masked",
    "published",
    "read_own",
    "read_reality",
    "read_recording",
    "read_repeats",
    "score_folder",
    "score_task",
    "subgroup_scores",
    "write_own",
    "write_repeats",
    "write_summary",
]
