"""Checks of a deployment on AWS: a stack of the templates, or a file with the parameters of one that is to be deployed.

`stacks` and `files` make a `Deployment`, `examination` runs the checks over it, each with `api`.
"""
