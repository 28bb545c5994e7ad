"""What the Lambda functions share; each `functions/<name>/app.py` is a few lines over one module of this package."""
