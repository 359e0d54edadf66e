"""What a recording is, and how it is read and written. Imports no simulator."""
