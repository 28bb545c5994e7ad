"""A live page about flows, and the same facts as JSON: read once in this process, sent to every open page."""
