"""Operations whose process is suspended before each of its writes, while another one completes or undoes them.

`python -m tests.suspended` tries every write of every kind of operation, `tests/kafka/operations/test_suspended.py`
some.
"""
