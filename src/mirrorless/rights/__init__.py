"""Rights (ACL operations) that each function and job needs on source and target; `mirrorless doctor` checks this table.

docs/rights.md shows it, and the tests grant exactly it.
"""

from mirrorless.rights.model import CONNECT, IMPLIED, SWITCHES, Function, On, Operation, Row, Side, When
from mirrorless.rights.table import ROWS, functions_of, name_of, needed, of_the_way_back, without_implied

__all__ = [
    "CONNECT",
    "IMPLIED",
    "ROWS",
    "SWITCHES",
    "Function",
    "On",
    "Operation",
    "Row",
    "Side",
    "When",
    "functions_of",
    "name_of",
    "needed",
    "of_the_way_back",
    "without_implied",
]
