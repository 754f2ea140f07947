"""Write `schemas/event/*.schema.json` from the models: `python tools/event_schemas.py`."""

from __future__ import annotations

from headgate.filters.events.model import schemas


def main() -> None:
    for path, content in schemas():
        path.write_bytes(content)


if __name__ == "__main__":
    main()
