//! Runs other programs, with an empty stdin. An error names the whole command.

use anyhow::{Context, Result, bail};
use std::path::Path;
use std::process::{Command, Stdio};

/// A command in `folder` with an empty stdin.
pub(crate) fn command(program: &str, args: &[&str], folder: &Path) -> Command {
    let mut command = Command::new(program);
    command.args(args).current_dir(folder).stdin(Stdio::null());
    command
}

/// The cargo that runs this program.
pub(crate) fn cargo(args: &[&str], folder: &Path) -> Command {
    command(&std::env::var("CARGO").unwrap_or_else(|_| "cargo".into()), args, folder)
}

/// The command line, for messages.
pub(crate) fn text(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

/// Prints the command and runs it. Fails when the command fails.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let text = text(command);
    println!("$ {text}");
    let status = command.status().with_context(|| format!("cannot start `{text}`"))?;
    if !status.success() {
        bail!("`{text}` failed ({status})");
    }
    Ok(())
}

/// The stdout of a command. Its stderr is passed on.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let text = text(command);
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot start `{text}`"))?;
    if !output.status.success() {
        bail!("`{text}` failed ({})", output.status);
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The trimmed stdout of a command; `None` when it fails or is not installed.
pub(crate) fn probe(command: &mut Command) -> Option<String> {
    let output = command.stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
