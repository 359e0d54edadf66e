"""Drawing with a stick and cleaning with an eraser."""
