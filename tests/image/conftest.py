# SPDX-License-Identifier: Apache-2.0
"""The program that decodes files."""
import pytest

from image.comparison import Decoder


@pytest.fixture(scope="session")
def decoder_program(build_dir):
    return build_dir / "tests" / "image" / "decode_plane"


@pytest.fixture
def plain_decoder_program(decoder_program):
    """The program without sanitizers, whose memory says nothing."""
    if b"__asan_init" in decoder_program.read_bytes():
        pytest.skip("memory is not measured in a build with sanitizers")
    return decoder_program


@pytest.fixture
def decoder(decoder_program):
    made = Decoder(decoder_program)
    yield made
    made.close()
