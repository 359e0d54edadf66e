"""What trainers share: advantages, replay, running normalization, moving averages, schedules, threads."""
