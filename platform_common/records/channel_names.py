"""The channels: a check of a list of their ids, and their names for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from platform_common.formats.decode import check_member
from platform_common.message import Sentence
from platform_common.validation import check_id

MOST_CHANNELS = 64

# The channels of the shipped profiles and limits records.
_NAMES: Mapping[str, str | Sentence] = {
    "bluebubbles": "BlueBubbles",
    "desktop": Sentence("Desktop app"),
    "dingtalk": "DingTalk",
    "discord": "Discord",
    "discord-voice": Sentence("Discord voice"),
    "emacs": "Emacs",
    "email-imap-smtp": Sentence("E-mail"),
    "feishu": "Feishu",
    "google-chat": "Google Chat",
    "home-assistant": "Home Assistant",
    "imessage": "iMessage",
    "irc": "IRC",
    "line": "LINE",
    "matrix": "Matrix",
    "mattermost": "Mattermost",
    "microsoft-teams": "Microsoft Teams",
    "nextcloud-talk": "Nextcloud Talk",
    "nostr": "Nostr",
    "obsidian": "Obsidian",
    "qq": "QQ",
    "signal": "Signal",
    "slack": "Slack",
    "synology-chat": "Synology Chat",
    "telegram": "Telegram",
    "tlon": "Tlon",
    "twilio-sms": Sentence("SMS via Twilio"),
    "twitch": "Twitch",
    "web": Sentence("Web browser"),
    "webchat": Sentence("Web chat"),
    "webhook": "Webhook",
    "wechat": "WeChat",
    "wecom": "WeCom",
    "whatsapp": "WhatsApp",
    "whatsapp-cloud-webhook": Sentence("WhatsApp via webhook"),
    "whatsapp-twilio": Sentence("WhatsApp via Twilio"),
    "zalo": "Zalo",
}


def check_channels(channels: Sequence[str]) -> None:
    """Raise `ValueError` if the wizard's answers cannot have these channels."""
    if len(channels) > MOST_CHANNELS:
        raise ValueError(f"channels: must be at most {MOST_CHANNELS}")
    for number, channel in enumerate(channels):
        check_member(f"channels[{number}]", check_id, channel)


def channel_name(channel_id: str) -> Sentence:
    """The name of a channel; its id if it is unknown."""
    name = _NAMES.get(channel_id, channel_id)
    return name if isinstance(name, Sentence) else Sentence("{some}", some=name)
