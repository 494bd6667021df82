"""``python -m soubench``: the same as the ``soubench`` command."""

import sys

from soubench.cli import main

if __name__ == "__main__":
    sys.exit(main())
