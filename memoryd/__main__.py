"""``python -m memoryd`` is the command line."""

import sys

from memoryd.cli import main

if __name__ == "__main__":
    sys.exit(main())
