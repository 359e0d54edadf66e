"""Data for training: demonstrations in memory, keyframes, recorded steps, replay, labelled frames."""
