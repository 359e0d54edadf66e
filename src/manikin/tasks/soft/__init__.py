"""Tasks with grains and with things that are not rigid."""
