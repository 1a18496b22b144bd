# SPDX-License-Identifier: Apache-2.0
"""How weights are found: options, environment, the cache of a hub, those inside the library."""
import json
import shutil
from pathlib import Path

import pytest

from cli.tool import names_in, one_error, without_weights


def test_weights_by_every_way(tool, photo):
    folder = tool.folder / "model"
    folder.mkdir()
    shutil.copy(tool.weights, folder / "model.safetensors")
    (folder / "config.json").write_text('{"border_removal_distance": 4}')
    hub = tool.folder / "hub"
    commit = "0123456789abcdef0123456789abcdef01234567"
    for repository in ("models--magic-leap-community--superpoint", "models--someone--else"):
        snapshot = hub / repository / "snapshots" / commit
        shutil.copytree(folder, snapshot)
        (hub / repository / "refs").mkdir()
        (hub / repository / "refs" / "main").write_text(commit)
    cache = {"HF_HUB_CACHE": str(hub)}
    ways = [
        (["-w", tool.weights], {}),
        (["--weights=model"], {}),
        (["-w", "model/"], {}),
        (["-w", "someone/else"], cache),
        (["-w", "someone/else@" + commit], cache),
        (["-w", "someone/else@main"], cache),
        ([], {"SP_WEIGHTS_DIR": str(folder)}),
        ([], {"SP_WEIGHTS_DIR": str(folder), "HF_MODEL": "no/such"}),
        ([], {"HF_MODEL": str(folder)}),
        ([], {"HF_MODEL": tool.weights}),
        ([], {"HF_MODEL": "someone/else", **cache}),
        ([], {"HF_MODEL": "someone/else", "TT_WEIGHTS_REVISION": commit, **cache}),
        ([], {"TT_WEIGHTS_REVISION": commit, **cache}),
        ([], {"TT_WEIGHTS_REVISION": "main", "HF_HOME": str(tool.folder)}),
        ([], {"HF_MODEL": "", "SP_WEIGHTS_DIR": "", "TT_WEIGHTS_REVISION": commit, **cache}),
    ]
    results = set()
    for arguments, environment in ways:
        code, out, err = tool("detect", photo, *arguments, env=environment)
        assert (code, err) == (0, ""), (arguments, environment, err)
        results.add(without_weights(out))
    assert len(results) == 1


def test_weights_when_none_are_named(tool, photo, builtin_weights):
    """Those inside the library, whatever is in the cache; they are the file in models/."""
    name = builtin_weights.name.removesuffix(".safetensors")
    snapshot = tool.folder / "hub" / "models--magic-leap-community--superpoint" / "snapshots"
    shutil.copytree(tool.folder, snapshot / "0123456789abcdef0123456789abcdef01234567")
    for command in (["detect", photo], ["match", photo, photo]):
        expected = tool(*command, "-w", builtin_weights)[1]
        for arguments, environment in (
            ([], {}),
            ([], {"HF_MODEL": "", "SP_WEIGHTS_DIR": "", "TT_WEIGHTS_REVISION": "", "HF_HOME": str(tool.folder)}),
            ([], {"HF_MODEL": name, "TT_WEIGHTS_REVISION": "main"}),
            (["-w", name], {"HF_MODEL": "no/such"}),
        ):
            code, out, err = tool(*command, *arguments, env=environment)
            assert (code, err) == (0, "")
            assert without_weights(out) == without_weights(expected)
            result = json.loads(out)
            assert result.get("first", result)["weights"] == {"name": name, "license": "Apache-2.0"}
        assert without_weights(tool(*command, "-w", tool.weights)[1]) != without_weights(expected)
    code, out, err = tool("bench", "--runs", "1")
    assert (code, err) == (0, "")


@pytest.mark.parametrize(
    "arguments,environment",
    [
        ([], {"TT_WEIGHTS_REVISION": "main"}),
        (["-w", "no-such-file.safetensors"], {}),
        (["-w", "no/such"], {}),
        (["-w", "no/such@main"], {}),
        (["-w", "not a name!"], {}),
        (["-w", "."], {}),
        (["-w", "bad.safetensors"], {}),
        (["-w", "photo.png"], {}),
        ([], {"SP_WEIGHTS_DIR": "/no/such/folder"}),
        ([], {"HF_MODEL": "/no/such/folder"}),
        ([], {"HF_MODEL": "no/such", "TT_WEIGHTS_REVISION": "0123456789abcdef0123456789abcdef01234567"}),
    ],
)
def test_missing_or_wrong_weights(tool, photo, arguments, environment):
    (tool.folder / "bad.safetensors").write_bytes(Path(tool.weights).read_bytes()[:100000])
    before = names_in(tool.folder)
    for command in (["detect", photo, "-o", "out/"], ["detect", photo, "-o", "o.json"], ["match", photo, photo], ["bench"]):
        code, out, err = tool(*command, *arguments, env=environment)
        assert (code, out) == (3, b"")
        one_error(err)
    assert names_in(tool.folder) == before
