//! `vramscope explain`: out-of-memory messages without a snapshot.

use crate::Failure;
use crate::arguments::{DiffFormat, Explain as Arguments};
use crate::output::print;
use crate::terminal;
use std::io::{self, IsTerminal as _, Read as _};
use std::path::Path;
use vramscope_report::diagnostic::{markdown, text};
use vramscope_report::explain::explain;

/// Prints what the out-of-memory messages of a text mean.
///
/// # Errors
/// Standard input cannot be read, or the output cannot be written.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let explained = explain(&input(&arguments.message)?);
    print(&explained, arguments.format.into(), |out, explained| {
        if explained.messages.is_empty() {
            name_file(&arguments.message);
        }
        let answer = explained.answer();
        match arguments.format {
            DiffFormat::Markdown => out.write_all(markdown(&answer).as_bytes()),
            DiffFormat::Text | DiffFormat::Json => {
                terminal::write(out, &text(&answer, terminal::width()))
            }
        }
    })
}

/// The message, or standard input.
fn input(message: &[String]) -> Result<String, Failure> {
    if !message.is_empty() {
        return Ok(message.join(" "));
    }
    let mut stdin = io::stdin().lock();
    if stdin.is_terminal() {
        let text = "no message: vramscope explain 'CUDA out of memory. ...', or vramscope explain \
                    < log.txt";
        return Err(Failure::Usage(text.to_owned()));
    }
    let mut bytes = Vec::new();
    stdin.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Says how a file is read, if the message is the name of one.
fn name_file(message: &[String]) {
    if let [name] = message
        && Path::new(name).is_file()
    {
        crate::output::complain(format_args!("{name} is a file: vramscope explain < {name}"));
    }
}
