"""What trainers share: imitation, rollouts and their starts, seeds, streams, pictures, threads, data, numerics."""
