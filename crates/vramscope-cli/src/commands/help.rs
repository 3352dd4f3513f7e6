//! `vramscope help`.

use crate::Failure;
use crate::arguments::{Arguments, print_all_help, print_short_help, write_help};
use clap::CommandFactory as _;

/// Prints the help of one screen, of everything, or of a command.
///
/// # Errors
/// The command does not exist, or the output cannot be written.
pub(crate) fn run(all: bool, command: Option<&str>) -> Result<(), Failure> {
    let mut out = anstream::stdout().lock();
    let Some(name) = command else {
        let printed = if all { print_all_help(&mut out) } else { print_short_help(&mut out) };
        return Ok(printed?);
    };
    let mut known = Arguments::command();
    known.build();
    match known.find_subcommand_mut(name) {
        Some(found) => Ok(write_help(&mut out, &found.render_long_help().ansi().to_string())?),
        None => Err(Failure::Usage(format!(
            "no command {name}: `vramscope help --all` has all of them"
        ))),
    }
}
