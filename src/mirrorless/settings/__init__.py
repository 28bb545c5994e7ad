"""Reads a configuration file into typed clusters and flows."""

from mirrorless.settings.cluster import Cluster
from mirrorless.settings.load import load
from mirrorless.settings.model import Flow, Settings

__all__ = ["Cluster", "Flow", "Settings", "load"]
