"""One folder per published dataset: its builder class, card, citation and release notes."""
