"""Pictures and films as files."""
