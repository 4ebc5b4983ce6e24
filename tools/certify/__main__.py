"""`python -m tools.certify`."""

import sys

from tools.certify import main

sys.exit(main())
