"""Sessions and logs of this machine, searched by words. Nothing of them leaves it."""

from bot.glance.logs.logs import Logs, Outline, Unheard

__all__ = ["Logs", "Outline", "Unheard"]
