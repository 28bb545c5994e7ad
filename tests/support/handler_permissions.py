"""Prints, as JSON, the rights that CloudFormation needs for types of resources: those of their handlers, by cfn-lint.

`python handler_permissions.py TYPE...`, run by the Python of `.venv-sam`. A type without a schema has none.
"""

from __future__ import annotations

import json
import sys

from cfnlint.schema.manager import PROVIDER_SCHEMA_MANAGER

KINDS = ("create", "read", "update", "delete")


def permissions(name: str) -> list[str]:
    """Return the rights of a type's handlers."""
    handlers = PROVIDER_SCHEMA_MANAGER.get_resource_schema("us-east-1", name).schema.get("handlers", {})
    return sorted({right for kind in KINDS for right in handlers.get(kind, {}).get("permissions", ())})


if __name__ == "__main__":
    json.dump({name: permissions(name) for name in sys.argv[1:]}, sys.stdout)
