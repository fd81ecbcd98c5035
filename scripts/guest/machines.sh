# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
# The kinds of machine that guests run on: the emulator's command, and where the guest finds its channels. Sourced by
# scripts/vm; knows nothing of what runs in the guest.
#
# Each machine_ARCH fills in machine, the command to run, from scripts/vm's settings. The guest's channels to the host are
# four files in $work: console (what the kernel says), verdict, tar, and the FIFOs stdout and stderr.
# shellcheck disable=SC2034,SC2154  # variables are scripts/vm's

# Lines of /etw/config.
channels()
{
	case $arch in
	x86) printf 'out etw.out\nerr etw.err\ntar etw.tar\nverdict /dev/ttyS1\npoweroff 0\n' ;;
	arm64) printf 'out etw.out\nerr etw.err\ntar etw.tar\nverdict /dev/ttyS0\npoweroff 0\n' ;;
	# Its reboot would start it again.
	uml) printf 'out /dev/tty1\nerr /dev/tty2\ntar /dev/tty3\nverdict /dev/tty4\npoweroff 1\n' ;;
	esac
}

# The command's output and what is under /out, by virtio.
virtio_channels()
{
	machine+=(-device "virtio-serial-pci,max_ports=8")
	if [ "$interactive" = 1 ]; then
		machine+=(-chardev "stdio,id=tty,signal=off" -device "virtconsole,chardev=tty")
	else
		machine+=(-chardev "file,id=stdout,path=$work/stdout" -device "virtserialport,chardev=stdout,name=etw.out")
		machine+=(-chardev "file,id=stderr,path=$work/stderr" -device "virtserialport,chardev=stderr,name=etw.err")
	fi
	machine+=(-chardev "file,id=tar,path=$work/tar" -device "virtserialport,chardev=tar,name=etw.tar")
}

# machine_qemu QEMU-ARCHITECTURE
machine_qemu()
{
	local status=0 n

	"$ETW_TOP/scripts/qemu" "$1" >"$work/qemu" || status=$?
	case $status in
	0) ;;
	"$ST_SKIP") exit "$ST_VM_NO_KERNEL" ;;
	*) exit "$ST_VM_SETUP" ;;
	esac
	readarray -t machine <"$work/qemu"
	if [ "$icount" = 1 ]; then
		for n in "${!machine[@]}"; do
			machine[n]=${machine[n]/thread=multi/thread=single}
		done
		machine+=(-icount 'shift=0,sleep=off' -rtc 'clock=vm,base=2024-01-01' -seed 1)
	fi
	machine+=(-nodefaults -no-user-config -display none -no-reboot -m "$mem" -smp "$smp")
	machine+=(-chardev "file,id=console,path=$work/console" -chardev "file,id=verdict,path=$work/verdict")
}

machine_x86()
{
	machine_qemu x86_64
	machine+=(-cpu "$cpu" -serial chardev:console -serial chardev:verdict)
	virtio_channels
	machine+=(-kernel "$image" -initrd "$work/initrd" -append "console=ttyS0 no_timer_check $cmdline")
}

machine_arm64()
{
	machine_qemu aarch64
	# The real algorithm that authenticates pointers costs more than all the rest of the emulation.
	machine+=(-machine "virt,gic-version=3" -cpu "${cpu/#max/max,pauth-impdef=on}" -serial chardev:console)
	machine+=(-device "pci-serial,chardev=verdict")
	virtio_channels
	machine+=(-kernel "$image" -initrd "$work/initrd" -append "console=ttyAMA0 $cmdline")
}

# Its terminals are FIFOs, for it cannot wait until a file takes more; what should be a file is made one here.
machine_uml()
{
	local n fd

	[ "$icount$gdb$interactive${#disks[@]}${#qemu_args[@]}" = 00000 ] ||
		no_boot "User-Mode Linux has no --icount, --gdb, --disk, --qemu and no shell"
	# A directory for the socket that it can be asked by.
	mkdir -p "$work/uml"
	machine=("$image" "mem=$mem" "ncpus=$smp" seccomp=on "initrd=$work/initrd" rdinit=/init "uml_dir=$work/uml" con=null
		"con1=null,fd:$out_fd" "con2=null,fd:$err_fd" console=tty0)
	# First all readers, so that none of them keeps open what another waits for the end of.
	for n in console tar verdict; do
		mkfifo "$work/$n.fifo"
		cat <"$work/$n.fifo" >"$work/$n" {out_fd}>&- {err_fd}>&- &
		cat_pids+=($!)
	done
	for n in con0:console con3:tar con4:verdict; do
		exec {fd}<>"$work/${n#*:}.fifo"
		channel_fds+=("$fd")
		machine+=("${n%:*}=null,fd:$fd")
	done
	# Its clock ticks 100 times a second, and an ordinary grace period takes several ticks.
	machine+=(rcupdate.rcu_expedited=1)
	# shellcheck disable=SC2206  # words
	machine+=($cmdline)
}
