"""Things to manipulate, as shapes for ``b.part``; one file each."""
