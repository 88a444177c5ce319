"""`python -m bgrl` is `bgrl`."""

import sys

from bgrl.cli.main import main

sys.exit(main())
