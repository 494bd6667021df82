"""Putting built datasets and metrics where the Hugging Face libraries find them."""
