"""What goes on at the same time in one training run."""
