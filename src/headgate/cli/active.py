"""The dataset that a command acts on when none is named."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.cli.console import console

if TYPE_CHECKING:
    from headgate.settings import Settings


def active_dataset(settings: Settings) -> str:
    """The dataset of DATASET; said on stderr where a profile chose it among several."""
    from headgate.profile import ENVIRONMENT
    from headgate.spec.loader import available_datasets

    name, origin = settings.need("dataset"), settings.origin("dataset")
    known = available_datasets(settings.root)
    if origin != ENVIRONMENT and len(known) > 1:
        others = ", ".join(other for other in known if other != name)
        console.say(f"dataset {name} ({origin}); DATASET=… chooses another: {others}")
    return name
