"""The git store that the settings name."""

from __future__ import annotations

from headgate.config.settings import Settings
from headgate.filters.git.git_store import BRANCH, GitStore

FOLDER = "git/filters.git"


def open_git(settings: Settings) -> GitStore:
    """Ours under HEADGATE_HOME, with GIT_REPOSITORY as its remote when that is set."""
    folder = (settings.root / settings.home / FOLDER).absolute()
    return GitStore(folder, settings.git_branch or BRANCH, settings.git_repository or "")
