#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Runs in a guest with one disk of 96 MiB: I/O of every kind the summary has to follow, recorded into /out/disks, for
# summary_check.py on the host. Partition and whole disk, scheduler, large and merged requests, flushes, writeback, a device
# on a file, one without requests, one with memory behind it. Some of it in steps that the script tells of.
set -eu
modprobe brd rd_nr=1 rd_size=32768
modprobe loop max_loop=2
modprobe null_blk nr_devices=1 queue_mode=2 irqmode=1 memory_backed=1 gb=1
modprobe ext4 2>/dev/null || true

printf 'n\np\n1\n\n\nw\n' | fdisk /dev/vda >/dev/null 2>&1
# Some kernels have no scheduler, or not this one: then requests are merged in the plug only.
modprobe mq-deadline 2>/dev/null || true
echo mq-deadline 2>/dev/null >/sys/block/vda/queue/scheduler || true
mke2fs /dev/vda1 >/dev/null
mkdir -p /mnt
mount -t ext4 /dev/vda1 /mnt

cat >/tmp/work <<'END'
exec 2>/dev/null
step() { id=$(etwctl emit --activity new --opcode start Summary-Disks StepStart "what=$1"); }
step_done() { etwctl emit --activity "$id" --opcode stop Summary-Disks StepStop; }
dd if=/dev/zero of=/mnt/big bs=1M count=24 conv=fsync
dd if=/mnt/big of=/dev/null bs=4M iflag=direct &
dd if=/mnt/big of=/dev/ram0 bs=64k &
dd if=/dev/vda of=/dev/null bs=4M skip=16 count=8 iflag=direct &
wait
dd if=/dev/zero of=/dev/nullb0 bs=1M count=32 oflag=direct
dd if=/dev/nullb0 of=/dev/null bs=16k count=200
losetup /dev/loop0 /mnt/big
dd if=/dev/loop0 of=/dev/null bs=256k
dd if=/dev/zero of=/dev/loop0 bs=4k count=50 conv=fsync
echo 3 >/proc/sys/vm/drop_caches
step cached
dd if=/mnt/big of=/dev/null bs=64k count=100
step_done
step direct
dd if=/mnt/big of=/dev/null bs=1M skip=8 count=8 iflag=direct
step_done
step memory
dd if=/dev/ram0 of=/dev/null bs=128k
step_done
echo 3 >/proc/sys/vm/drop_caches
for i in 1 2 3 4 5 6; do
	dd if=/dev/vda of=/dev/null bs=4k skip=$i count=300 &
done
wait
dd if=/dev/ram0 of=/dev/null bs=128k iflag=direct
dd if=/dev/zero of=/mnt/more bs=64k count=32
sync
sleep 1
END
etwctl record -q -p block -p process -p sched -p fault -p Summary-Disks --subbuf-size 512K -o /out/disks -- sh /tmp/work
losetup -d /dev/loop0
umount /mnt
etwctl summary /out/disks | tee /tmp/summary
grep -q '^Summary-Disks:Step  *3 ' /tmp/summary
