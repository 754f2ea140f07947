"""Dead letters sent to their topics once more."""
