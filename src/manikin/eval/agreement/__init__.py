"""How well success in simulation predicts success on real robots."""
