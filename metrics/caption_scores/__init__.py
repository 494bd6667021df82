"""BLEU, ROUGE and BERTScore of captions; see README.md."""
