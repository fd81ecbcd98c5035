# SPDX-License-Identifier: GPL-2.0-only
# The verbs for people. Everything is built in build/; sources stay clean.
#
#   make            the module for the running kernel (or KDIR=...), the library and the command
#   make help       all verbs

KDIR ?= /lib/modules/$(shell uname -r)/build
BUILD := $(CURDIR)/build
export BUILD

PREFIX ?= /usr/local
DESTDIR ?=

all: tools
# Without headers there is no module for this machine, but the rest is still of use.
ifneq ($(wildcard $(KDIR)/Makefile),)
all: modules
else
all: no-modules
endif

help:
	@echo 'make              tools, and the module if KDIR has headers (KDIR=$(KDIR))'
	@echo 'make modules      etw.ko, in build/kmod/RELEASE/ (KDIR=DIR, or KDIR=6.1 or 6.12 for a kernel of the lab)'
	@echo 'make lib          libetw'
	@echo 'make tools        libetw, etwctl and what else is in userspace/'
	@echo 'make selftests    the test programs for guests, in build/selftests'
	@echo 'make host-tests   the test programs for this machine, in build/host-tests'
	@echo 'make check        everything a change must pass: scripts/check; STAGE=... for one stage'
	@echo 'make demo         records a workload in a guest and shows the trace: scripts/demo; NAME=... for another demo'
	@echo 'make bench        what tracing costs, beside the other tracers: scripts/bench; ARGS=--quick for the short one'
	@echo 'make install      library, command and manual pages under PREFIX=$(PREFIX) (DESTDIR=...)'
	@echo 'make modules_install   etw.ko for the kernel of KDIR'
	@echo 'make clean        removes build/'

modules:
	scripts/build-module '$(KDIR)' $(if $(W),W=$(W))

no-modules:
	@echo 'make: no headers in $(KDIR): etw.ko not built (apt install linux-headers-$(shell uname -r), or KDIR=DIR)' >&2

modules_install: modules
	$(MAKE) -C '$(KDIR)' M="$$(dirname "$$(scripts/build-module '$(KDIR)')")" modules_install

lib:
	$(MAKE) -C userspace lib

tools:
	$(MAKE) -C userspace all

selftests:
	$(MAKE) -C selftests

host-tests:
	$(MAKE) -C userspace host-tests
	$(MAKE) -C selftests host

install:
	$(MAKE) -C userspace install PREFIX='$(PREFIX)' DESTDIR='$(DESTDIR)'

check:
	scripts/check $(STAGE)

demo:
	scripts/demo $(NAME)

bench:
	scripts/bench $(ARGS)

clean:
	rm -rf build

.PHONY: all help modules no-modules modules_install lib tools selftests host-tests install check demo bench clean
