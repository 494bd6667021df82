"""Running models and baselines on the datasets, and scoring what they reply."""
