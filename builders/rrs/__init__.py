"""Rare remote sensing: 20 leaf tasks from expert records, drawn sites and detection labels."""
