"""Six small-object sub-tasks made from detection labels (SOUBench, Sec. 3 and Appendix A)."""
