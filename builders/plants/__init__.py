"""Leaf counts and leaf centers of plants seen from above (Minervini et al., 2016)."""
