# SPDX-License-Identifier: GPL-2.0-only
# Who touches memory that is not there yet.
description Processes and page faults
provider process
provider fault
