"""Is a robot right? Its declaration checked, its motions tried, its reach filmed."""
