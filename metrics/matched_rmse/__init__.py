"""Count and center errors of matched points; see README.md."""
