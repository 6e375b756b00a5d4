"""``python -m treppe`` is ``treppe``."""

import sys

from treppe.cli import main

sys.exit(main())
