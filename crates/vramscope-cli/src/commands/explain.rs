//! `vramscope explain`: out-of-memory messages without a snapshot.

use crate::Failure;
use crate::arguments::{DiffFormat, Explain as Arguments};
use crate::output::{ERROR, print, styled};
use crate::printable::printable;
use std::io::{self, IsTerminal as _, Read as _, Write};
use std::path::Path;
use vramscope_report::explain::{Explained, explain, markdown, text};

/// Prints what the out-of-memory messages of a text mean.
///
/// # Errors
/// Standard input cannot be read, or the output cannot be written.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let explained = explain(&input(&arguments.message)?);
    let lines = match arguments.format {
        DiffFormat::Markdown => markdown,
        DiffFormat::Text | DiffFormat::Json => text,
    };
    print(&explained, arguments.format.into(), |out, explained| {
        if explained.messages.is_empty() {
            name_file(&arguments.message);
        }
        write(out, explained, lines)
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

fn write(
    out: &mut dyn Write,
    explained: &Explained,
    lines: fn(&Explained) -> Vec<String>,
) -> io::Result<()> {
    for line in lines(explained) {
        match line.split_once(": ") {
            Some((head @ "error[oom]", rest)) => {
                writeln!(out, "{}: {}", styled(ERROR, head), printable(rest))?;
            }
            _ => writeln!(out, "{}", printable(&line))?,
        }
    }
    Ok(())
}
