"""The environment as other libraries want it: Gymnasium's single and vector environments, PettingZoo, a window."""
