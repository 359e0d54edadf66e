"""Pages of HTML: the report of an evaluation, and the pieces and style that other pages use too."""
