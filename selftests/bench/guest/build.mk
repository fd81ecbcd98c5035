# SPDX-License-Identifier: GPL-2.0-only
# In the guest: the build whose time is taken, some files of libetw without debug information, into O.
OBJECTS := $(addprefix $(O)/,packet.o guid.o closing.o)

all: $(OBJECTS)

$(O)/%.o: userspace/lib/%.c
	gcc-12 -std=gnu11 -D_GNU_SOURCE -O1 -Iuapi -Iuserspace/lib/include -c $< -o $@
