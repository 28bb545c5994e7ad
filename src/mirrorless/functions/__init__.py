"""Shared code of the Lambda functions; each `functions/<name>/app.py` is a few lines over a module of this package."""
