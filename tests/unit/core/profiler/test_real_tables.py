"""What a draft makes of data that nobody here made."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.nycflights import write_nycflights_table

from headgate.core.profiler.draft import Draft, Wishes, draw_up


def drafted(name: str, folder: Path, *, times_as_text: bool = True) -> Draft:
    file = write_nycflights_table(name, folder / f"{name}.parquet", times_as_text=times_as_text)
    return draw_up(Wishes(name, file))


@pytest.mark.parametrize(("times_as_text", "fraction"), [(True, ""), (False, "[.SSSSSS]")])
def test_weather_is_known_by_place_and_hour(
    tmp_path: Path, times_as_text: bool, fraction: str
) -> None:
    draft = drafted("weather", tmp_path, times_as_text=times_as_text)
    assert draft.event_time == "time_hour"
    assert draft.profile.column("time_hour").bronze_type == "TIMESTAMP_LTZ(3)"
    assert draft.ts_format == f"yyyy-MM-dd'T'HH:mm:ss{fraction}XXX"
    assert (draft.key.columns, draft.key.sharing) == (("origin", "time_hour"), 0)
    assert draft.profile.column("wind_gust").nulls == 20_778
