"""The dataset ``rrs``."""
