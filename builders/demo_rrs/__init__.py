"""Drawn sites of the six scene types, with every fact about them, as records.

Nothing is taken from elsewhere: who has no imagery can build and try the whole benchmark.
"""

from soubench.builders.demo_rrs.write import write_demo_records

__all__ = ["write_demo_records"]
