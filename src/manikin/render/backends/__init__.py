"""One file per renderer, and what several of them share."""
