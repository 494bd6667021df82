"""Fine-tuning with LoRA: the recipes of the papers, and what runs them."""
