"""Structured Attribute Matching Accuracy of described shapes; see README.md."""
