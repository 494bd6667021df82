"""SOU-VQA: multiple-choice questions about small objects."""
