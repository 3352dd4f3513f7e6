//! `vramscope record`, `dry-run` and `fix`: they are parts of the Python package.

use crate::Failure;
use crate::arguments::InPython as Arguments;
use crate::output;
use std::process::{Command, Stdio};

/// Exits with 0 where Python has the package.
const PROBE: &str = "import importlib.util as u, sys; sys.exit(u.find_spec('vramscope') is None)";

/// Runs `python -m vramscope NAME` with these arguments. Returns its exit code.
///
/// # Errors
/// No Python is found, or none that has the package.
pub(crate) fn run(name: &str, arguments: &Arguments) -> Result<u8, Failure> {
    let mut found = None;
    for python in ["python", "python3"] {
        let mut probe = Command::new(python);
        let probe = probe.args(["-c", PROBE]).stdin(Stdio::null()).stderr(Stdio::null());
        match probe.stdout(Stdio::null()).status() {
            Ok(status) if status.success() => {
                let mut command = Command::new(python);
                command.args(["-m", "vramscope", name]).args(&arguments.arguments);
                return start(command);
            }
            Ok(_) => found = found.or(Some(python)),
            Err(_) => {}
        }
    }
    output::complain(match found {
        Some(python) => format!(
            "{name}: `{python}` has no package vramscope. Install it where your program runs: \
             {python} -m pip install vramscope"
        ),
        None => format!("{name}: no `python` or `python3` on the PATH, and it runs in Python"),
    });
    Err(Failure::Input)
}

/// Python takes the place of this process, so that signals reach the recorded program.
#[cfg(unix)]
fn start(mut command: Command) -> Result<u8, Failure> {
    use std::os::unix::process::CommandExt as _;
    Err(command.exec().into())
}

#[cfg(not(unix))]
fn start(mut command: Command) -> Result<u8, Failure> {
    let code = command.status()?.code();
    Ok(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}
