# SPDX-License-Identifier: Apache-2.0
"""The program and its pictures."""
import pytest

from cli.tool import Tool, paint


@pytest.fixture
def tool(program, synthetic_weights, tmp_path):
    folder = tmp_path / "work"
    folder.mkdir()
    return Tool(program, synthetic_weights, folder)


@pytest.fixture
def photo(tool):
    paint(tool.folder / "photo.png", 1)
    return "photo.png"


@pytest.fixture
def photos(tool):
    names = ["a.png", "b.jpg", "c.png"]
    for seed, name in enumerate(names):
        paint(tool.folder / name, seed)
    return names
