"""The names of the channels, for people."""

from __future__ import annotations

from collections.abc import Mapping

from platform_common.message import Sentence

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


def channel_name(channel_id: str) -> Sentence:
    """The name of a channel; its id if it is unknown."""
    name = _NAMES.get(channel_id, channel_id)
    return name if isinstance(name, Sentence) else Sentence("{some}", some=name)
