"""Few demonstrations become many: their segments are carried over to other starts (MimicGen, arXiv:2310.17596)."""
