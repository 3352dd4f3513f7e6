//! `vramscope explain`: out-of-memory messages without a snapshot.

use crate::Failure;
use crate::arguments::{DiffFormat, Explain as Arguments};
use crate::output::print;
use crate::terminal;
use std::io::{self, IsTerminal as _, StdinLock};
use std::path::Path;
use vramscope_report::diagnostic::{markdown, text};
use vramscope_report::explain::{explain, explained};

/// Prints what the out-of-memory messages of a text mean.
///
/// # Errors
/// Standard input cannot be read, or the output cannot be written.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
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
