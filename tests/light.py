"""Programs for processes of their own."""

LIGHT = (
    "import sys; sys.modules['transformers'] = None; import evaluate\n"
    "del sys.modules['transformers']\n"
)
"""Start of a program that imports ``evaluate`` as where plain soubench is installed: it takes four
seconds more where ``transformers`` is there."""
