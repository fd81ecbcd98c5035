# Who touches memory that is not there yet.
description Processes and page faults
provider process
provider fault
