"""The copier: fetch from the source, compare-and-append to the target, progress (design, sections 3 to 5)."""
