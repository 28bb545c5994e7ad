"""Measurements: each a command that anybody can run, each figure beside what it is to be compared with."""
