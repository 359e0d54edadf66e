"""Several policies under one protocol: who is better, how sure that is, and whether reality agrees."""
