"""A training run: recipe, loop, checkpoints, validation, log, page."""
