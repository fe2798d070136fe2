"""`python -m services.agent`."""

import sys

from services.agent import main

if __name__ == "__main__":
    sys.exit(main())
