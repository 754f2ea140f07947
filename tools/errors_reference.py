"""Writes docs/reference/errors.md from the error tree: `python tools/errors_reference.py`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from headgate import errors
from headgate.errors import HeadgateError

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "headgate"
PAGE = ROOT / "docs" / "reference" / "errors.md"
INTRODUCTION = """# Errors

Every error is three lines: what happened, why, and what to do. The code in front of it is a heading
of this page. `--debug` adds the trace; `$?` tells a script which kind it was.

<!-- Written by tools/errors_reference.py from the classes in src/headgate and the words in that tool. -->
"""
# What a person sees and can do about each, beyond what the error itself says.
WORDS = {
    "HG-1000": """Something went wrong that has no kind of its own. Run the command again with
`--debug` and report the trace.""",
    "HG-1001": """The operation ran and failed: dbt could not build a model, DuckDB refused a query,
a job raised. The `why` line carries the words of the part that failed. A job's last error also
stands in `headgate job list`, and its log in `headgate local logs --service engine`.""",
    "HG-1002": """A batch was refused because taking it would lose or repeat records: its range does
not start where the table's last commit ended, it covers offsets that are already settled, or its
outcomes do not sum to the records read. Nothing was written to the ledger.

- After a lost or damaged checkpoint: `headgate job repair <job>` starts again from the offsets
  that the table itself has committed.
- After the ops store was lost: `headgate ledger rebuild`, then the same command again.
- If outcomes do not add up, that is a fault of Headgate: keep the ops store and report it.""",
    "HG-1003": """Records expired on the topic before a job read them: the pause was longer than the
topic's retention. Nothing is skipped by itself.

- `headgate job lag` shows the offsets that are gone, by partition.
- If their producer still has them, send them again: they come with new offsets. Then accept the gap.
- `headgate job accept-gap <job>` goes on behind them. The ledger and every later certificate name
  how many records are missing, who accepted it and when.
- Raise the topic's retention above the longest pause you foresee.""",
    "HG-1004": """A rule with `on_fail: stop` matched a row. The batch with that row is written,
counted and settled like any other; then the job stopped, so that no later record is judged before a
person has looked.

- `SELECT * FROM dq_results_<table> WHERE array_contains(dq_rules, '<rule>')` shows the rows.
- Mend the source, or the rule (`headgate rules deploy <table>`).
- `headgate job start quality-<table>`, or `job run`, goes on behind the batch.""",
    "HG-1005": """A row cannot be hashed by its contract: it lacks a field that the contract names, or
has a value of another type. The message names the field, never its value. In a stream such a record
is a dead letter. [hash_contract.md](../hash_contract.md) says which values each type takes.""",
    "HG-1006": """Nothing of that name is there: a filter, a revision, an operation, a key. The `do` line
names the nearest name that is there, or the command that lists them.""",
    "HG-1007": """The replay of a filter cannot go on: the filter raises on a record, or its topic cannot be
written. What it is owed waits, and nothing of it is skipped; live traffic of other filters goes on.
The `why` line has the reason. Mend the document or the topic, deploy the filter again, and the replay
goes on where it stopped. [router_job.md](../router_job.md) tells how filters are suspended and resumed.""",
    "HG-2001": """The command was called wrongly: an unknown dataset, a service that is not run here.
`headgate <noun> <verb> --help` shows what it takes.""",
    "HG-2002": """A change over the API must say which state it was made from: the ETag that was read
goes into `If-Match`. Without it the change of somebody else could be overwritten unseen. `*` says
nothing and is not taken. [api.md](../api.md) shows both calls.""",
    "HG-2003": """The body of a request is larger than the API takes. Send less at once: events in
several bulk requests, a filter with fewer values.""",
    "HG-2004": """As many of these are under way as the server allows: dry runs, checks of documents,
comparisons with git, looks at dead letters, event streams, connections that wait. Or too many wrong keys
came from one address. Try again after the seconds that `Retry-After` names.""",
    "HG-2006": """The head or the body of a request did not come within the time that it may take. Send the
whole request at once; a proxy in front of the server should read requests before it passes them on.""",
    "HG-2005": """The API takes JSON. Send `Content-Type: application/json` with the body.""",
    "HG-3001": """A manifest, rule set or filter is not valid. All faults are listed at once, each
with its file, line, field and what to write instead. Nothing was compiled or run.""",
    "HG-3002": """A variable is missing, malformed, or contradicts another. `headgate config show`
prints every value and where it came from (default, profile, running services, environment);
`headgate config check` checks them all. "TOPIC is not set" means that the chosen profile lacks it.""",
    "HG-5001": """A check found a difference. Nothing is wrong with the command: the data, or what
was done with it, is not as it must be.

- `validate`: the numbered check says its value and its limit.
- `certify`: a line with ✗ says which sum does not hold. Records on the topic that are not yet
  processed: `headgate job run bronze`, after `headgate job repair bronze` if the topic was made
  again. Rows that silver has not read: `headgate job run silver`. Other counts on the topic than in
  the ledger: a batch was settled wrongly, which only a person can judge. A snapshot that is not
  ours: something other than Headgate wrote to a managed table.
- `dbt test`: the rows that a test found are shown by its compiled SQL.""",
    "HG-6001": """Someone else changed it or holds it: a job that is already running, the marts opened
by a notebook. Look again, then try again. An ops store made by another version of Headgate stays
refused: use that version, or point `OPS_STORE_URL` at a new database.""",
    "HG-6002": """This engine, or this run of a job, is no longer the active one: it did not renew its
lease in time and another took over. It stops by itself; the new holder carries on from what is
committed. Seen often, it means that the machine is overloaded or its clock jumps.""",
    "HG-6003": """The table already holds a commit of this start: another run of the same job was
quicker. The batch is taken from that commit when it is of the same range, and refused otherwise.
Seen by a person, it means that two runs cut the topic differently: `headgate job repair <job>`.""",
    "HG-6004": """Another commit came between staging and publishing a statement that may only follow
the version it was made from. The statement is run again whole; seen by a person, it means that
something else writes to the table all the time.""",
    "HG-6005": """It changed since it was last read: the ETag in `If-Match` is not the one it has now.
Read it again, look at what is different, and send the change with the new ETag. `headgate filters
update` does the reading by itself and says so when someone was quicker.""",
    "HG-6006": """The status of the filter does not allow this: one that waits for approval cannot be
deployed, one that is being deployed cannot be changed. The answer lists in `allowed` what can be done
now; [filter_lifecycle.md](../filter_lifecycle.md) has the whole table.""",
    "HG-6007": """Something of that name is there already. Choose another name, or update what is
there. An `Idempotency-Key` that was used with another body is refused with this code too.""",
    "HG-7001": """The identity is known and may not do this. The message names the roles that may. An
approval by somebody who wrote the revision is refused with this code as well, whatever their roles:
[identity.md](../identity.md).""",
    "HG-7002": """Nobody knows who is asking: there is no key or token, or it does not hold (unknown,
revoked, expired, wrong issuer or audience, a signature by an algorithm that is not allowed).

- `headgate keys create <name> --role author` makes a key, on the machine of the ops store.
- `HEADGATE_API_KEY` gives it to the command line, `Authorization: Bearer …` to the API.""",
    "HG-8001": """Something needed is away: the broker, the catalog, the engine, a download, a table
that no job has made yet. `headgate doctor` says what this machine lacks, `headgate local status`
what runs. A retry may help.""",
    "HG-8003": """The engine's JVM was killed, crashed, ran out of memory or answers no more. The engine
ends with this code and the supervisor starts another, which goes on with the same runs; a batch run that
loses the JVM three times without settling a batch is FAILED. When the heap was full, raise
`SPARK_DRIVER_MEMORY` and start the engine again; [local_services.md](../local_services.md#when-one-dies)
has the rest.""",
    "HG-1300": """Stopped by a signal. What was begun can be resumed: run the same command again, and
a half-done batch is finished, never repeated.""",
}


@dataclass(frozen=True)
class Kind:
    """One kind of error, as its class says."""

    code: str
    name: str
    says: str
    exit_code: int
    retryable: bool


def page() -> str:
    """The whole page."""
    found = sorted(kinds(), key=lambda kind: (kind.exit_code, kind.code))
    rows = [
        f"| [{k.code}](#{k.code.lower()}) | `{k.name}` | {k.exit_code} | {_retry(k)} |"
        for k in found
    ]
    table = "\n".join(["| code | kind | exit code | retry |", "|---|---|---|---|", *rows])
    return "\n".join([INTRODUCTION, table, *(_section(kind) for kind in found)]) + "\n"


def kinds() -> Iterator[Kind]:
    """Every kind with a code of its own: the tree of errors.py, and those beside their only use."""
    yield from (_imported(kind) for kind in tree(HeadgateError))
    for file in sorted(SOURCE.rglob("*.py")):
        if file.name != "errors.py" and 'code = "HG-' in file.read_text(encoding="utf-8"):
            yield from _read(ast.parse(file.read_text(encoding="utf-8")))


def tree(kind: type[HeadgateError]) -> Iterator[type[HeadgateError]]:
    """A kind and all below it that errors.py declares."""
    if kind.__module__ == errors.__name__:
        yield kind
    for below in kind.__subclasses__():
        yield from tree(below)


def _imported(kind: type[HeadgateError]) -> Kind:
    return Kind(kind.code, kind.__name__, kind.__doc__ or "", kind.exit_code, kind.retryable)


def _read(module: ast.Module) -> Iterator[Kind]:
    """Read, not imported: such a module may need Spark."""
    for node in ast.walk(module):
        if not isinstance(node, ast.ClassDef):
            continue
        values = {
            ast.unparse(part.targets[0]): ast.literal_eval(part.value)
            for part in node.body
            if isinstance(part, ast.Assign)
        }
        if str(values.get("code", "")).startswith("HG-"):
            base = _imported(getattr(errors, ast.unparse(node.bases[0])))
            retryable = bool(values.get("retryable", base.retryable))
            says = ast.get_docstring(node) or ""
            yield Kind(values["code"], node.name, says, base.exit_code, retryable)


def _section(kind: Kind) -> str:
    return f"\n## {kind.code}\n\n**{kind.says}** Exit code {kind.exit_code}.\n\n{WORDS[kind.code]}"


def _retry(kind: Kind) -> str:
    return "may help" if kind.retryable else "does not help"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
