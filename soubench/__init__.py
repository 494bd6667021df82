"""Annotation files in, versioned Hugging Face datasets out, any model's replies scored."""
