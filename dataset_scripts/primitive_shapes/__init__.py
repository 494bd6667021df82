"""primitive-shapes: drawn shapes and every attribute of them, as text."""
