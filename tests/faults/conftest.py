# SPDX-License-Identifier: Apache-2.0
import pytest


@pytest.fixture(scope="session")
def weights(synthetic_weights):
    return synthetic_weights
