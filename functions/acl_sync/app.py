"""acl_sync: adds the ACLs of source topics to their remote topics."""

from mirrorless.functions.invocation import FunctionHandler
from mirrorless.functions.metadata import sync_acls

handler = FunctionHandler("acl_sync", sync_acls, reserve_s=60.0)  # a request of hundreds of topics may take that long
