"""Frozen records that the other layers exchange. No behaviour, no imports from manikin."""
