"""One self-contained page of scored runs: tables, plots, and every row with its picture."""
