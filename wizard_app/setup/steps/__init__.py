"""The steps, in order. A new one is a file, a template, and a line here."""

from __future__ import annotations

from wizard_app.setup.steps.backup import BackupStep
from wizard_app.setup.steps.base import AnyStep
from wizard_app.setup.steps.channels import ChannelsStep
from wizard_app.setup.steps.mesh_vpn import MeshVpnStep
from wizard_app.setup.steps.profile import ProfileStep
from wizard_app.setup.steps.provider import ProviderStep
from wizard_app.setup.steps.ssh import SshStep
from wizard_app.setup.steps.system import SystemStep
from wizard_app.setup.steps.tunnel import TunnelStep

STEPS: tuple[AnyStep, ...] = (
    SystemStep(),
    ProfileStep(),
    ProviderStep(),
    ChannelsStep(),
    SshStep(),
    MeshVpnStep(),
    TunnelStep(),
    BackupStep(),
)
