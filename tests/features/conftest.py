# SPDX-License-Identifier: Apache-2.0
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from tool import Tool  # noqa: E402


@pytest.fixture(scope="session")
def tool(build_dir):
    """The helper program of this folder."""
    return Tool(build_dir / "tests" / "features" / "features_tool")
