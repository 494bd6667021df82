"""Multiple-choice accuracy from whole replies; see README.md."""
