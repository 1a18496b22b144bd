# SPDX-License-Identifier: Apache-2.0
# Short names for the scripts; the build itself is described by meson.build.
#
#   make                       build (folder build/)
#   make demo [WEIGHTS=FILE]   install what is missing, build, find keypoints on the example picture
#   make test                  install what is missing, build, run every test
#   make robustness            20,000 damaged pictures through the sanitizer build
#   make bench [WEIGHTS=FILE]  compare the speed with other programs
#   make bench-server [WEIGHTS=FILE]
#                              compare the server with the same service in Python
#   make wheel                 the wheel of the Python package, with the libraries that it needs (build/wheel/)
#   make install PREFIX=DIR    install under DIR (default /usr/local)
#   make format                format the C sources with clang-format
#   make clean                 remove everything that was made

PREFIX ?= /usr/local
WEIGHTS ?=

.PHONY: build deps demo test robustness bench bench-server wheel install format clean

build:
	@scripts/build.sh build

deps:
	@scripts/install-deps.sh --test

demo:
	@scripts/demo.sh '$(WEIGHTS)'

test:
	@scripts/test.sh

robustness:
	@scripts/robustness.sh

bench:
	@scripts/bench.sh '$(WEIGHTS)'

bench-server:
	@scripts/bench.sh --server '$(WEIGHTS)'

wheel:
	@scripts/install-deps.sh --python
	@scripts/wheel.sh

install:
	@scripts/install.sh '$(PREFIX)'

format:
	@find include src python tests training \( -name '*.c' -o -name '*.h' \) -exec clang-format -i {} +

clean:
	rm -rf build build-* demo
