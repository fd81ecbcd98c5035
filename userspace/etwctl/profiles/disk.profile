# SPDX-License-Identifier: GPL-2.0-only
# Who reads and writes, and how long the device takes.
description Processes and block I/O
provider process
provider block
