# SPDX-License-Identifier: GPL-2.0-only
# What etwctl record and start take when no -p is given.
description Processes, scheduling, block I/O and page faults
provider process
provider sched
provider block
provider fault
