"""A real machine with its own kernel, disk and network card, emulated by QEMU.

It takes half a minute to boot, so it is for what a container cannot show. Commands reach it through
a separate channel, independent of the firewall; its ports are forwarded from loopback.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.support.first_boot import DASHBOARD_PORT, WIZARD_PORT, Device
from tests.support.network import free_port
from tests.support.running import printed
from tests.support.web_servers import unverified

_PACKAGES = ("linux-image-cloud-amd64", "initramfs-tools", "udev", "iproute2", "libpam-systemd")
_DISK_MIB = 2048
# For a host with far more work than cores; an idle one needs a tenth of this.
_BOOT_TIMEOUT_S = 900
_TIMEOUT_S = 600
_PORT_NAME = "commands"
# Runs commands, one line of JSON each, and returns their results.
_AGENT = f"""#!/usr/bin/python3 -I
import json, os, subprocess
port = os.open("/dev/virtio-ports/{_PORT_NAME}", os.O_RDWR)
with os.fdopen(port, "rb", buffering=0, closefd=False) as asked:
    pending = b""
    os.write(port, b'"up"\\n')
    while True:
        data = asked.read(65536)
        if not data:
            import time
            time.sleep(0.1)
            continue
        pending += data
        while b"\\n" in pending:
            line, pending = pending.split(b"\\n", 1)
            told = json.loads(line)
            done = subprocess.run(told["argv"], input=told["stdin"], capture_output=True, text=True)
            said = [done.returncode, done.stdout, done.stderr]
            rest = json.dumps(said).encode() + b"\\n"
            while rest:
                rest = rest[os.write(port, rest):]
"""
_AGENT_UNIT = """[Unit]
After=multi-user.target
# On a busy host udev may name the port later than that.
StartLimitIntervalSec=0
[Service]
ExecStart=/usr/local/lib/commands
Restart=on-failure
RestartSec=1
Environment=PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin
[Install]
WantedBy=multi-user.target
"""
_NETWORK = """[Match]
Name=eth0
[Network]
DHCP=yes
"""


@dataclass(frozen=True)
class Disk:
    """What a machine boots from: its disk, its kernel, and its initial RAM disk."""

    image: Path
    kernel: Path
    initrd: Path


class VirtualMachine:
    """A running machine; `call` runs a command in it as root."""

    def __init__(self, process: subprocess.Popen[bytes], channel: socket.socket) -> None:
        self._process = process
        self._channel = channel
        self._lines = channel.makefile("rb")
        self._ports: Mapping[int, int] = {}

    def call(self, *argv: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Run a command inside the machine; return the finished process."""
        self._channel.sendall(json.dumps({"argv": argv, "stdin": stdin}).encode() + b"\n")
        status, stdout, stderr = json.loads(self._lines.readline())
        return subprocess.CompletedProcess(argv, status, stdout, stderr)

    def wait_until_up(self) -> None:
        """Wait until the machine accepts commands."""
        assert json.loads(self._lines.readline()) == "up"

    def cut(self) -> None:
        """Cut the power: what the kernel has not written to the disk is lost."""
        self._process.kill()
        self._process.wait(_TIMEOUT_S)

    def close(self) -> None:
        """Close the connection."""
        self._lines.close()
        self._channel.close()


def disk_of(tree: Path, folder: Path) -> Disk:
    """Make a disk in `folder` with the files of `tree` and a kernel."""
    _add_kernel(tree)
    image = folder / "disk"
    printed("mkfs.ext4", "-q", "-F", "-d", str(tree), "-L", "root", str(image), f"{_DISK_MIB}M")
    kernel, initrd = (folder / name for name in ("kernel", "initrd"))
    for target, pattern in ((kernel, "vmlinuz-*"), (initrd, "initrd.img-*")):
        (source,) = (tree / "boot").glob(pattern)
        shutil.copyfile(source, target)
    return Disk(image, kernel, initrd)


def _add_kernel(tree: Path) -> None:
    environment = ("env", "DEBIAN_FRONTEND=noninteractive", "chroot", str(tree))
    resolver = tree / "etc/resolv.conf"
    shutil.copyfile("/etc/resolv.conf", resolver)
    for words in (
        ("apt-get", "update", "-qq"),
        ("apt-get", "install", "-qq", "--yes", "--no-install-recommends", *_PACKAGES),
    ):
        printed(*environment, *words)
    for path, text, mode in (
        ("usr/local/lib/commands", _AGENT, 0o755),
        ("etc/systemd/system/commands.service", _AGENT_UNIT, 0o644),
        ("etc/systemd/network/eth0.network", _NETWORK, 0o644),
        ("etc/fstab", "/dev/vda / ext4 rw 0 1\n", 0o644),
    ):
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / path).write_text(text)
        (tree / path).chmod(mode)
    printed("systemctl", f"--root={tree}", "enable", "commands", "systemd-networkd")


@contextlib.contextmanager
def running(disk: Disk, log: Path) -> Iterator[tuple[VirtualMachine, Device]]:
    """Boot a machine from `disk`, which keeps its changes; `log` receives the console.

    When the block ends, the power is cut.
    """
    ports = {port: free_port() for port in (WIZARD_PORT, DASHBOARD_PORT)}
    channel_path = disk.image.with_name("commands")
    channel_path.unlink(missing_ok=True)
    forwarded = "".join(f",hostfwd=tcp:127.0.0.1:{ours}-:{its}" for its, ours in ports.items())
    with socket.socket(socket.AF_UNIX) as listening, log.open("ab") as console:
        listening.bind(str(channel_path))
        listening.listen(1)
        listening.settimeout(_BOOT_TIMEOUT_S)
        process = subprocess.Popen(
            [
                # Every instruction is emulated: with normal priority, time limits inside could be
                # exceeded.
                *("nice", "-n", "-10"),
                *("qemu-system-x86_64", "-accel", "tcg,thread=multi", "-m", "1024", "-smp", "2"),
                *("-nographic", "-nodefaults", "-serial", "stdio", "-no-reboot"),
                *("-kernel", str(disk.kernel), "-initrd", str(disk.initrd), "-append"),
                # A busy host may be too slow for the kernel's check of its timer.
                "root=/dev/vda rw console=ttyS0 panic=-1 quiet net.ifnames=0 no_timer_check",
                "-drive",
                f"file={disk.image},format=raw,if=virtio,cache=unsafe",
                *("-netdev", f"user,id=net{forwarded}", "-device", "virtio-net-pci,netdev=net"),
                *("-device", "virtio-serial-pci"),
                *("-chardev", f"socket,id=c,path={channel_path}"),
                *("-device", f"virtserialport,chardev=c,name={_PORT_NAME}"),
            ],
            stdin=subprocess.DEVNULL,
            stdout=console,
            stderr=console,
            env={"PATH": os.environ["PATH"]},
        )
        try:
            channel, _ = listening.accept()
            channel.settimeout(_BOOT_TIMEOUT_S)
            machine = VirtualMachine(process, channel)
            try:
                machine.wait_until_up()
                yield machine, Device(machine.call, lambda port: _connection(port, ports))
            finally:
                machine.close()
        finally:
            process.kill()
            process.wait(_TIMEOUT_S)


def _connection(port: int, ports: Mapping[int, int]) -> http.client.HTTPConnection:
    if port == WIZARD_PORT:
        return http.client.HTTPSConnection(
            "127.0.0.1", ports[port], timeout=_TIMEOUT_S, context=unverified()
        )
    return http.client.HTTPConnection("127.0.0.1", ports[port], timeout=_TIMEOUT_S)
