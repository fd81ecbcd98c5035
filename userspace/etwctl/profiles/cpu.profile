# SPDX-License-Identifier: GPL-2.0-only
# Who runs, who waits, who wakes whom.
description Processes and scheduling
provider process
provider sched
