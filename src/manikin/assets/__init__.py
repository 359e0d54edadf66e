"""Where models come from: built-in primitives, MuJoCo Menagerie."""
