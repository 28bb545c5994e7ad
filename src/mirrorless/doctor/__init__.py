"""Looks at both ends of a flow before anybody relies on it; writes nothing."""
