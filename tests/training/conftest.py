# SPDX-License-Identifier: Apache-2.0
"""The modules of training/ import one another by name, as scripts in one folder do."""
import sys

from conftest import ROOT

sys.path.insert(0, str(ROOT / "training"))
