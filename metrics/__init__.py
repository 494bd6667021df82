"""One self-contained folder per metric; each is loaded through ``evaluate.load``."""
