#!/usr/bin/env bash
# Try what depends on Python's own library with other Pythons than .venv's: Debian's, and one of 3.12 or newer.
# Unpacking, patterns, times, settings, --help and doctor; with the few packages that these need, in build/smoke.
set -euo pipefail
cd "$(dirname "$0")/.."
packages="alembic annotated-types attrs click confluent-kafka hypothesis iniconfig jinja2 mako markupsafe orjson packaging
 pluggy pydantic pydantic-core pygments pytest pytest-timeout ruamel-yaml sortedcontainers sqlalchemy sqlglot
 typing-extensions typing-inspection"
tests="tests/unit/core/runtime/test_bundles.py tests/unit/core/runtime/test_java.py tests/unit/test_settings.py tests/unit/config/test_config_cli.py
 tests/unit/local/test_local_state.py tests/unit/cli/test_make_targets.py tests/unit/core/runtime/test_archive.py
 tests/unit/core/engine/test_spark_options.py tests/unit/conditions/test_regex.py tests/unit/conditions/test_twin.py
 tests/unit/conditions/test_parse.py tests/unit/conditions/test_literals.py tests/unit/hashing/test_hash_vectors.py tests/unit/local/test_local.py tests/unit/terminal/test_steps.py"

version_of() { "$1" -c 'import sys; print("%d.%d.%d" % sys.version_info[:3])' 2>/dev/null; }

newer_python() { # the first that runs of 3.14 to 3.12, on the path or of pyenv
  local minor found
  for minor in 14 13 12; do
    for found in "python3.$minor" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3."$minor".*/bin/python; do
      if [ -n "$(version_of "$found")" ]; then echo "$found"; return; fi
    done
  done
}

try() { # a Python: set up an environment of its own, then run everything in it
  local python=$1 version folder
  version=$(version_of "$python")
  folder=build/smoke/$version
  echo "smoke: Python $version ($python)"
  [ -x "$folder/bin/python" ] || "$python" -m venv "$folder"
  awk -v names=" $(echo $packages) " '/^[A-Za-z]/ {split($0, part, "=="); mine = index(names, " " part[1] " ")} mine' \
    requirements/dev.txt >"$folder/packages.txt"
  "$folder/bin/python" -m pip install --disable-pip-version-check -q --no-deps --require-hashes \
    -r "$folder/packages.txt" -r requirements/build.txt 2>&1 | tail -n 20
  "$folder/bin/python" -m pip install --disable-pip-version-check -q --no-deps --no-build-isolation -e .
  "$folder/bin/headgate" --help >/dev/null
  # The large packages are not here, which doctor says; what it says of Python counts.
  "$folder/bin/headgate" doctor >"$folder/doctor.txt" 2>&1 || [ $? = 8 ]
  grep -Eq "✓ python +$version" "$folder/doctor.txt" || { cat "$folder/doctor.txt"; return 1; }
  "$folder/bin/python" -m pytest -q -p no:cacheprovider -m "not slow" $tests
}

own=$(version_of .venv/bin/python || true)
if [ ! -x /usr/bin/python3 ] || [ "$(version_of /usr/bin/python3)" = "$own" ]; then
  echo "smoke: skipped /usr/bin/python3: it is not there, or the same as .venv's ($own)"
elif ! /usr/bin/python3 -c 'import ensurepip, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
  echo "smoke: skipped /usr/bin/python3: $(version_of /usr/bin/python3) is too old or has no venv"
else
  try /usr/bin/python3
fi
newer=$(newer_python)
if [ -n "$newer" ]; then try "$newer"; else echo "smoke: skipped Python 3.12 or newer: none was found"; fi
