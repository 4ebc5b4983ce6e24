"""Patches of packages in the program's Python; each module has `patch(module)`."""
