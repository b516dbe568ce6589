"""What a process in the place of one of our services can do: it tries, and tells.

It runs with every setting of the unit, but for the program and what that has to do with
systemd.
"""

from __future__ import annotations

import json
import re
from typing import Any

from tests.support.machine import Machine

FOLDER = "/usr/local/lib/systemd/system"
_PLACE = "/usr/local/lib/probe"
_SAID = "/run/probe.json"
_PROBE = r"""#!/usr/bin/python3 -I
import ctypes, json, mmap, os, pathlib, resource, socket, subprocess, sys
libc = ctypes.CDLL(None, use_errno=True)

def tried(do):
    try:
        return do() or "done"
    except OSError as error:
        return os.strerror(error.errno)

def called(name, *words):
    def do():
        if getattr(libc, name)(*words) < 0:
            raise OSError(ctypes.get_errno(), name)
    return tried(do)

def written(folder):
    file = pathlib.Path(folder, "probe")
    def do():
        file.write_text("x")
        file.unlink()
    return tried(do)

status = dict(line.split(":\t", 1) for line in open("/proc/self/status") if ":\t" in line)
said = {
    "secrets": tried(lambda: open("/etc/platform/secrets.env").read()),
    "homes": tried(lambda: sorted(os.listdir("/home"))),
    "written": {folder: written(folder) for folder in sys.argv[1:]},
    "new_rights": status["NoNewPrivs"].strip() == "0",
    "rights": int(status["CapEff"], 16),
    "may_get": int(status["CapBnd"], 16),
    "core": resource.getrlimit(resource.RLIMIT_CORE),
    "files": resource.getrlimit(resource.RLIMIT_NOFILE)[0],
    "others": sorted(
        entry for entry in os.listdir("/proc") if entry.isdigit() and int(entry) != os.getpid()
    ),
    # PTRACE_ATTACH, to process 1.
    "trace": called("ptrace", 16, 1, 0, 0),
    # CLONE_NEWUSER, and CLONE_NEWNS.
    "namespaces": [called("unshare", flag) for flag in (0x10000000, 0x20000)],
    "packets": tried(lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW).close()),
    "code": tried(lambda: mmap.mmap(-1, 4096, prot=7).close()),
    "mount": called("mount", b"none", b"/var/lib/platform", b"tmpfs", 0, None),
    "clock": called("settimeofday", ctypes.byref((ctypes.c_long * 2)(1, 1)), None),
    "sound": sorted(os.listdir("/dev/snd")) if os.path.isdir("/dev/snd") else None,
    "devices": sorted(set(os.listdir("/dev")) & {"kmsg", "mem", "tty1", "sda", "kvm"}),
}
print(json.dumps(said))
"""
# Of the program that is not run, or of its socket.
_DROPPED = re.compile(
    r"^(Exec\w+|Type|Restart\w*|Standard\w+|Requires|Wants|After|PartOf|Condition\w+)=.*\n",
    re.MULTILINE,
)


def probed(machine: Machine, unit: str, *folders: str) -> dict[str, Any]:
    """What a process of `unit` can do, and whether it can write to `folders`."""
    machine.write(_PLACE, _PROBE, mode="0755")
    text = _DROPPED.sub("", machine.run("cat", f"{FOLDER}/{unit}")).partition("[Install]")[0]
    service = f"""[Service]
Type=oneshot
StandardOutput=truncate:{_SAID}
ExecStart={_PLACE} {" ".join(folders)}
"""
    machine.write("/run/systemd/system/probe@.service", text.replace("[Service]\n", service, 1))
    machine.run("systemctl", "daemon-reload")
    # As a template, so that one for the helper is as it is.
    started = machine.call("systemctl", "start", "probe@x.service")
    log = machine.run("journalctl", "--no-pager", "--unit=probe@x.service")
    assert started.returncode == 0, log
    said: dict[str, Any] = json.loads(machine.run("cat", _SAID))
    return said
