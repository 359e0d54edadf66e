"""The 23 metrics: as the paper defines them, and as the released script computes them."""
