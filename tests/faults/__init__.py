"""The fault run: a copy under load while everything around it, and parts of it, are killed; see `__main__`."""
