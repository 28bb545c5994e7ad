"""A configuration file in, typed clusters and flows out."""

from mirrorless.settings.load import load
from mirrorless.settings.model import Cluster, Flow, Settings

__all__ = ["Cluster", "Flow", "Settings", "load"]
