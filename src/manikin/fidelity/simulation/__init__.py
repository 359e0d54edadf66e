"""The ten tasks in MuJoCo: settings, scenes, and repeats as rows of one batch."""
