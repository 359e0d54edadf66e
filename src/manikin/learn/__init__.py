"""Learning: trainers, each in one file (``ppo``, ...), what they share (``common``), and what a run is (``run``)."""
