"""SIMPLER's tasks (Li et al. 2024, arXiv 2405.05941): real robots' evaluations, in simulation."""
