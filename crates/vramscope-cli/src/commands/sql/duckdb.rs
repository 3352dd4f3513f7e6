//! Asks DuckDB: its program, else its Python package.

use serde_json::{Map, Value, json};
use std::io::{self, Write as _};
use std::process::{Command, Stdio};
use std::thread;

/// A row of an answer.
type Row = Map<String, Value>;

/// Older versions do not read all encodings of the tables.
const LEAST_VERSION: u32 = 2;

/// No file of the user's settings is read.
const NO_SETTINGS: &str = if cfg!(windows) { "NUL" } else { "/dev/null" };

/// Exits with 0 where Python has the package. Modules of the working directory do not count.
const PROBE: &str = "import sys; sys.path = [p for p in sys.path if p]; \
                     import importlib.util as u; sys.exit(u.find_spec('duckdb') is None)";

/// Reads the statements from standard input, and writes the rows of the query as JSON.
const SCRIPT: &str = "\
import sys
sys.path = [p for p in sys.path if p]
import duckdb, json
told = json.load(sys.stdin)
try:
    connection = duckdb.connect()
    connection.execute(told['setup'])
    answer = connection.execute(told['query'])
    names = [column[0] for column in answer.description]
    rows = [dict(zip(names, row)) for row in answer.fetchall()]
except duckdb.Error as error:
    sys.exit(str(error))
json.dump(rows, sys.stdout, default=str)
";

/// The rows of a query.
///
/// # Errors
/// There is no DuckDB, or it fails. The error is a message for the user.
pub(super) fn rows(setup: &str, query: &str) -> Result<Vec<Row>, String> {
    let version = version();
    if version.as_ref().is_some_and(|(major, _)| *major >= LEAST_VERSION) {
        let mut program = Command::new("duckdb");
        program.args(["-init", NO_SETTINGS, "-batch", "-bail", "-json", ":memory:"]);
        let out = answer(program, &format!("{setup}\n{query}\n"));
        return parse(&out.map_err(|error| format!("duckdb: {error}"))??);
    }
    for python in ["python3", "python"] {
        let mut probe = Command::new(python);
        let probe = probe.args(["-c", PROBE]).stdin(Stdio::null()).stderr(Stdio::null());
        if !probe.stdout(Stdio::null()).status().is_ok_and(|status| status.success()) {
            continue;
        }
        let mut command = Command::new(python);
        command.args(["-c", SCRIPT]);
        let input = json!({ "setup": setup, "query": query }).to_string();
        return match answer(command, &input) {
            Ok(out) => parse(&out?),
            Err(error) => Err(format!("{python}: {error}")),
        };
    }
    let found = match version {
        Some((_, version)) => format!("the program `duckdb` on the PATH is {version}"),
        None => "there is no program `duckdb` on the PATH".to_owned(),
    };
    Err(format!(
        "no DuckDB {LEAST_VERSION}.0 or later: {found}, and neither `python3` nor `python` has the \
         package duckdb. `python3 -m pip install duckdb` installs it"
    ))
}

/// The major version of the program, and all that it says of it; `None` without a program.
fn version() -> Option<(u32, String)> {
    let output = Command::new("duckdb").arg("--version").stdin(Stdio::null()).output().ok()?;
    let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let number = said.trim_start_matches('v').split('.').next().and_then(|n| n.parse().ok());
    Some((number?, said))
}

/// The output of a program that reads `input`; its errors if it fails.
fn answer(mut command: Command, input: &str) -> io::Result<Result<Vec<u8>, String>> {
    let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = pipes.spawn()?;
    let stdin = child.stdin.take();
    let output = thread::scope(|scope| {
        // A program that ends early does not read all of it: its error says why.
        scope.spawn(move || stdin.map(|mut stdin| stdin.write_all(input.as_bytes())));
        child.wait_with_output()
    })?;
    if output.status.success() {
        return Ok(Ok(output.stdout));
    }
    Ok(Err(format!("DuckDB: {}", String::from_utf8_lossy(&output.stderr).trim())))
}

/// The rows of the last answer: statements before the query have none.
fn parse(out: &[u8]) -> Result<Vec<Row>, String> {
    let mut rows = Vec::new();
    for answer in serde_json::Deserializer::from_slice(out).into_iter::<Vec<Row>>() {
        rows = answer.map_err(|error| format!("DuckDB wrote no JSON: {error}"))?;
    }
    Ok(rows)
}
