"""Objects from files: a mesh or a scan made into a prop, and articulated models from MJCF or URDF."""
