"""Kernels of manikin's own; importing one imports Warp."""
