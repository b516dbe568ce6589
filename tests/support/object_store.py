"""A real S3 server that checks signatures: OpenStack Swift, one node, on loopback.

Swift needs an older setuptools than this project, so it has a separate environment, which takes
some ten seconds to create.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.environments import environment_of
from tests.support.network import end, free_port, wait_for_port
from tests.support.running import printed

if TYPE_CHECKING:
    from obstore.store import S3Store

_KINDS = ("object", "container", "account")
_COMMON = """[DEFAULT]
bind_ip = 127.0.0.1
bind_port = {port}
user = {user}
swift_dir = {folder}
workers = 0
log_level = WARNING
devices = {folder}/devices
mount_check = false
disable_fallocate = true
"""
_STORAGE = """[pipeline:main]
pipeline = {kind}-server
[app:{kind}-server]
use = egg:swift#{kind}
conn_timeout = 20
node_timeout = 60
container_update_timeout = 60
"""
_PROXY = """[pipeline:main]
pipeline = catch_errors gatekeeper healthcheck listing_formats s3api tempauth slo proxy-server
[app:proxy-server]
use = egg:swift#proxy
account_autocreate = true
# By default half a second, which a busy machine may take.
conn_timeout = 20
node_timeout = 60
recoverable_node_timeout = 60
[filter:s3api]
use = egg:swift#s3api
location = {region}
[filter:tempauth]
use = egg:swift#tempauth
user_{account} = {secret} .admin
[filter:catch_errors]
use = egg:swift#catch_errors
[filter:gatekeeper]
use = egg:swift#gatekeeper
[filter:healthcheck]
use = egg:swift#healthcheck
[filter:listing_formats]
use = egg:swift#listing_formats
[filter:slo]
use = egg:swift#slo
"""
_HASH = """[swift-hash]
swift_hash_path_suffix = tests
[storage-policy:0]
name = one
default = yes
"""


# Where the only device is, for each kind of server: what `swift-ring-builder` does.
_MAKE_RINGS = """
import sys
from swift.common.ring import RingBuilder
for kind, port in (word.split("=") for word in sys.argv[1:]):
    builder = RingBuilder(4, 1, 1)
    here = {"ip": "127.0.0.1", "port": int(port), "device": "d1", "meta": ""}
    here |= {f"replication_{name}": here[name] for name in ("ip", "port")}
    builder.add_dev({**here, "region": 1, "zone": 1, "weight": 1.0})
    builder.rebalance()
    builder.get_ring().save(f"{kind}.ring.gz")
"""


@dataclass(frozen=True)
class ObjectStore:
    """A running S3 server, and its credentials."""

    port: int
    access_key: str = "mirror:operator"
    secret_key: str = "correct-horse-battery-staple"
    region: str = "us-east-1"

    @property
    def environment(self) -> dict[str, str]:
        """The environment for a client of S3."""
        return {
            "AWS_ACCESS_KEY_ID": self.access_key,
            "AWS_SECRET_ACCESS_KEY": self.secret_key,
            "AWS_REGION": self.region,
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}",
            "AWS_ALLOW_HTTP": "true",
        }

    def upload(self, folder: Path, bucket: str, prefix: str = "") -> None:
        """Create `bucket`, and upload every file of `folder` into it, below `prefix`."""
        import obstore
        import requests

        # obstore cannot create buckets, but can sign a request that does: with the bucket in the
        # host name, the path is only the key.
        root = self._client(bucket, virtual_hosted_style_request=True)
        address = obstore.sign(root, "PUT", bucket, timedelta(minutes=1))
        requests.put(address, timeout=60).raise_for_status()
        client = self._client(bucket, virtual_hosted_style_request=False)
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                obstore.put(client, f"{prefix}{path.relative_to(folder)}", path.read_bytes())

    def _client(self, bucket: str, *, virtual_hosted_style_request: bool) -> S3Store:
        from obstore.store import S3Store

        return S3Store(
            bucket,
            access_key_id=self.access_key,
            secret_access_key=self.secret_key,
            region=self.region,
            endpoint=f"http://127.0.0.1:{self.port}",
            virtual_hosted_style_request=virtual_hosted_style_request,
            client_options={"allow_http": True},
        )


@contextlib.contextmanager
def object_store(folder: Path) -> Iterator[ObjectStore]:
    """Run the server until the block ends; `folder` takes its data."""
    programs = environment_of("object-store-server") / "bin"
    store, started = ObjectStore(free_port()), []
    with contextlib.ExitStack() as stack:
        for name, configuration, port in _configure(programs, folder, store):
            output = stack.enter_context((folder / f"{name}.log").open("wb"))
            process = subprocess.Popen(
                [programs / "python", programs / name, configuration],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
            stack.callback(end, process)
            started.append((port, process))
        for port, process in started:
            wait_for_port(port, process)
        yield store


def _configure(programs: Path, folder: Path, store: ObjectStore) -> list[tuple[str, Path, int]]:
    """Write the configuration; return name, file and port of each server, the proxy last."""
    (folder / "devices/d1").mkdir(parents=True)
    (folder / "swift.conf").write_text(_HASH)
    ports = {kind: free_port() for kind in _KINDS} | {"proxy": store.port}
    bodies = {kind: _STORAGE.format(kind=kind) for kind in _KINDS}
    account = store.access_key.replace(":", "_")
    bodies["proxy"] = _PROXY.format(account=account, secret=store.secret_key, region=store.region)
    user = pwd.getpwuid(os.getuid()).pw_name
    servers = []
    for kind, port in ports.items():
        configuration = folder / f"{kind}.conf"
        common = _COMMON.format(port=port, user=user, folder=folder)
        configuration.write_text(common + bodies[kind])
        servers.append((f"swift-{kind}-server", configuration, port))
    rings = (f"{kind}={ports[kind]}" for kind in _KINDS)
    printed(programs / "python", "-c", _MAKE_RINGS, *rings, cwd=folder)
    return servers
