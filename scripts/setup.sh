#!/usr/bin/env bash
# Fill .venv: `setup.sh run` with what commands and demos need, `setup.sh dev` with the developers' tools.
# One line a stage; what pip says goes to .venv/setup.log. PYTHON and UV are the Makefile's.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=.venv/bin log=.venv/setup.log
[ "${OS:-}" != Windows_NT ] || bin=.venv/Scripts

install() { # files and options of one installation; hashes are checked
  if [ -n "${UV:-}" ]; then
    "$UV" pip install --python "$bin/python" --no-deps "$@"
  else
    # Python compiles what is imported, when it is; compiling all of it takes a third of the time.
    "$bin/python" -m pip install --disable-pip-version-check --no-compile --no-deps "$@"
  fi
}

stage() { # name, then the command; its end is shown when it fails
  local name=$1 begun=$SECONDS part
  shift
  part=$(mktemp .venv/stage.XXXXXX)
  if "$@" >"$part" 2>&1; then
    cat "$part" >>"$log"
    printf '  ✓ %-34s %3d s\n' "$name" $((SECONDS - begun)) >&2
    rm -f "$part"
  else
    cat "$part" >>"$log"
    { printf '  ✗ %s: the end of %s\n' "$name" "$log"; tail -n 20 "$part" | sed 's/^/      /'; } >&2
    rm -f "$part"
    return 1
  fi
}

# PySpark is most of the bytes and comes as source, so it is built beside the others.
part_of_run() { awk -v spark="$1" '/^[A-Za-z]/ {mine = /^(pyspark|py4j)==/} mine == spark' requirements/run.txt; }

new_venv() { [ -x "$bin/python" ] || "${PYTHON:-python3}" -m venv .venv; }

install_spark() {
  # A wheel that is built to be unpacked at once need not be compressed.
  printf '[bdist_wheel]\ncompression = stored\n' >.venv/build.cfg
  DIST_EXTRA_CONFIG=$PWD/.venv/build.cfg install --require-hashes -r .venv/spark.txt
}

find_java() { PYTHONPATH=src "$bin/python" -m headgate.core.runtime.java --need || install --require-hashes -r requirements/java.txt; }

# It takes no package but PySpark, so it need not wait for the others.
fetch_jars() { PYTHONPATH=src "$bin/python" -c 'from headgate.core.runtime.bundles import bundle; bundle("kafka"); bundle("spark")'; }

install_others() { install --require-hashes -r .venv/others.txt -r requirements/build.txt; }

install_ours() { install --no-build-isolation -e . && { [ -z "${UV:-}" ] || return 0; "$bin/python" -m pip check; }; }

spark_and_jars() {
  stage "Java" find_java && stage "Spark" install_spark || return 1
  # `headgate engine prepare` fetches what is missing and says why it cannot; here they only come early.
  fetch_jars >>"$log" 2>&1 || true
}

case ${1:-run} in
  run)
    echo "setting up .venv with ${UV:-pip}; details are in $log" >&2
    mkdir -p .venv && : >"$log"
    stage "virtual environment" new_venv
    part_of_run 1 >.venv/spark.txt
    part_of_run 0 >.venv/others.txt
    spark_and_jars & spark=$!
    others=0; stage "other packages" install_others || others=$?
    wait "$spark" && [ "$others" = 0 ] || exit 1
    stage "headgate" install_ours
    ;;
  dev)
    stage "developers' tools" install --require-hashes -r requirements/dev.txt
    ;;
esac
