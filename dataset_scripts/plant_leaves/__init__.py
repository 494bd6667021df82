"""plant-leaves: how many leaves a plant has, and where their centers are."""
