"""Recordings: their files, their defects, synthetic ones, and what system identification takes of them."""
