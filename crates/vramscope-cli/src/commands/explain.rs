//! `vramscope explain`: out-of-memory messages without a snapshot, and names in answers.

use crate::Failure;
use crate::arguments::{DiffFormat, Explain as Arguments};
use crate::output::print;
use crate::terminal;
use std::io::{self, IsTerminal as _, StdinLock, Write as _};
use std::path::Path;
use vramscope_report::diagnostic::{markdown, text};
use vramscope_report::explain::{explain, explained};
use vramscope_report::meaning::{NameKind, meaning, meanings};

/// The kinds of names, with a word for each.
const LISTS: [(NameKind, &str); 4] = [
    (NameKind::Finding, "finding"),
    (NameKind::BlindSpot, "blind spot"),
    (NameKind::Warning, "warning"),
    (NameKind::Change, "change"),
];

/// Prints what a name in answers means, or the out-of-memory messages of a text.
///
/// # Errors
/// Standard input cannot be read, or the output cannot be written.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    if arguments.list {
        return Ok(list()?);
    }
    if let [name] = arguments.message.as_slice()
        && let Some(of) = meaning(name)
    {
        // Markdown is not wrapped: a row of a table is a line.
        return match arguments.format {
            DiffFormat::Markdown => {
                Ok(writeln!(io::stdout(), "# {} (`{}`)\n\n{}", of.title, of.name, of.text)?)
            }
            format => {
                print(&of, format.into(), |out, of| writeln!(out, "{}\n\n{}", of.title, of.text))
            }
        };
    }
    let explained = match arguments.message.as_slice() {
        [] => explained(input()?)?,
        [dash] if dash == "-" => explained(io::stdin().lock())?,
        words => explain(&words.join(" ")),
    };
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

/// Lists all names, each with its kind.
fn list() -> io::Result<()> {
    let mut out = anstream::stdout().lock();
    for (kind, word) in LISTS {
        for of in meanings(kind) {
            writeln!(out, "{word:<10}  {:<24}  {}", of.name, of.title)?;
        }
    }
    Ok(())
}

/// Standard input, if it is no terminal.
fn input() -> Result<StdinLock<'static>, Failure> {
    let stdin = io::stdin().lock();
    if stdin.is_terminal() {
        let text = "no message: vramscope explain 'CUDA out of memory. ...', or vramscope explain \
                    < log.txt";
        return Err(Failure::Usage(text.to_owned()));
    }
    Ok(stdin)
}

/// Says how a file is read, if the message is the name of one.
fn name_file(message: &[String]) {
    if let [name] = message
        && Path::new(name).is_file()
    {
        crate::output::complain(format_args!("{name} is a file: vramscope explain < {name}"));
    }
}
