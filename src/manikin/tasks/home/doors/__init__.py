"""Opening and closing of drawers and doors."""
