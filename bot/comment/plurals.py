"""The form of a word that goes with a number, by CLDR's rules for whole numbers.

https://cldr.unicode.org/index/cldr-spec/plural-rules. The form for exact millions in Spanish,
French and Portuguese (``1 000 000 de commentaires``) is left out.
"""

from __future__ import annotations


def plural_form(number: int, language: str) -> str:
    """``one``, ``few``, ``many`` or ``other``."""
    match language:
        case "ja" | "ko" | "zh":
            return "other"
        case "fr" | "pt":
            return "one" if number in (0, 1) else "other"
        case "ru":
            return _russian_form(number % 10, number % 100)
        case _:
            return "one" if number == 1 else "other"


def _russian_form(last_digit: int, last_two: int) -> str:
    if last_digit == 1 and last_two != 11:
        return "one"
    return "few" if 2 <= last_digit <= 4 and not 12 <= last_two <= 14 else "many"
