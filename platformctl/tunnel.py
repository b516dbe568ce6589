"""The tunnel from the internet to this device: the command line of cloudflared.

It leads only to the gateway of the active profile, because the dashboard has no login.
Secrets stay in files.
"""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from platform_common.errors import AccessError, PlatformError
from platform_common.formats.decode import shaped
from platform_common.formats.strict_json import load_strict
from platform_common.message import Sentence
from platform_common.paths import Paths
from platform_common.records.installed_profiles import active_profile
from platform_common.records.profiles import gateway_url
from platform_common.storage.safe_read import read_own
from wizard_app.setup.plan.actions import TUNNEL_CREDENTIALS
from wizard_app.setup.steps.tunnel import Credentials, tunnel_of

PROGRAM = "cloudflared"
# The names of systemd's copies start with the name that the unit gives their folder.
_COPY = "tunnel_"
_CONFIG = str(PurePosixPath(TUNNEL_CREDENTIALS).with_name("config.yml"))
_LIMIT_BYTES = 64 << 10


def command(paths: Paths, copies: Path | None) -> list[str]:
    """The command line of cloudflared: by `config.yml`, as a named tunnel, or as a quick one.

    `copies` is systemd's copy of the tunnel's folder. Raises `PlatformError` without a gateway
    or with invalid credentials.
    """
    credentials = _file(paths, copies, TUNNEL_CREDENTIALS)
    config = _file(paths, copies, _CONFIG)
    words = [PROGRAM, "tunnel", "--no-autoupdate"]
    if config.exists():
        words += ["--config", str(config), "run"]
        return words + (_named(credentials) if credentials.exists() else [])
    origin = ["--url", _gateway(paths)]
    if credentials.exists():
        *options, name = _named(credentials)
        return [*words, "run", *options, *origin, name]
    return words + origin


def _file(paths: Paths, copies: Path | None, path: str) -> Path:
    name = PurePosixPath(path).name
    return copies / f"{_COPY}{name}" if copies else paths.on_device(path)


def _gateway(paths: Paths) -> str:
    profile = active_profile(paths)
    if profile is None:
        raise PlatformError(
            "No profile is active, so there is no assistant for a tunnel to reach",
            hint="Set the device up with the wizard, then run: systemctl restart platform-tunnel",
        )
    return gateway_url(profile)


def _named(credentials: Path) -> list[str]:
    """The options of a named tunnel, and its id, for which cloudflared needs no account."""
    try:
        data = read_own(credentials, _LIMIT_BYTES)
    except FileNotFoundError as error:
        raise AccessError.of(credentials, error) from error
    name = tunnel_of(data)
    if isinstance(name, Sentence):
        raise PlatformError(
            f"The credentials of the tunnel cannot be used: {name}",
            hint=f"Save your tunnel's credentials as {TUNNEL_CREDENTIALS}.",
        )
    known = shaped(load_strict(data), Credentials).id
    return ["--credentials-file", str(credentials), known if isinstance(known, str) else name]
