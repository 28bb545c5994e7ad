"""The drill: facts are gathered from both clusters, pure checks judge them, and a report has the results.

`gather` reads, `positions`, `principals` and the checks decide, `report` and `page` show. Nothing is written to a
cluster.
"""
