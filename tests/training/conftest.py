# SPDX-License-Identifier: Apache-2.0
"""The modules of training/ import one another by name, as scripts in one folder do."""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "training"))
