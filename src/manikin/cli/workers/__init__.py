"""What workers of `--on` do for commands whose options they need: the commands name these by their words."""
