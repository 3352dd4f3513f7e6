//! Paint of diagnostics on a terminal.

use crate::output::{ERROR, FAINT, STRONG, WARNING};
use crate::printable::Shield;
use crate::width::columns;
use anstyle::{AnsiColor, Color, Style};
use std::io::{self, Write};
use vramscope_report::diagnostic::{Level, Paint, Span};
use vramscope_units::color::{CATEGORIES, Terminal};

/// A terminal with more columns gets no longer lines: they are hard to read.
const MAX_WIDTH: usize = 160;

/// The columns of the lines that [`write`] gets.
pub(crate) fn width() -> usize {
    columns().min(MAX_WIDTH)
}

const GOOD: Style = colored(AnsiColor::Green);
const BLUE: Style = colored(AnsiColor::Blue);
const CYAN: Style = colored(AnsiColor::Cyan);
const MAGENTA: Style = colored(AnsiColor::Magenta);

/// The styles of painted text beside those of tables.
pub(crate) const STYLES: [Style; 4] = [GOOD, BLUE, CYAN, MAGENTA];

const fn colored(color: AnsiColor) -> Style {
    Style::new().fg_color(Some(Color::Ansi(color)))
}

fn style(paint: Paint) -> Style {
    match paint {
        Paint::Plain => Style::new(),
        Paint::Strong => STRONG,
        Paint::Faint => FAINT,
        Paint::Level(Level::Error) => ERROR,
        Paint::Level(Level::Warning) => WARNING,
        Paint::Level(Level::Note) => CYAN,
        Paint::Good => GOOD,
        Paint::Part(name) => match CATEGORIES.iter().find(|of| of.name == name) {
            Some(of) => terminal(of.terminal),
            None => FAINT,
        },
    }
}

fn terminal(color: Terminal) -> Style {
    match color {
        Terminal::Blue => BLUE,
        Terminal::Cyan => CYAN,
        Terminal::Green => GOOD,
        Terminal::Magenta => MAGENTA,
        Terminal::Red => ERROR,
        Terminal::Yellow => WARNING,
        Terminal::Plain => Style::new(),
    }
}

/// Prints painted lines. They are as wide as they should be: commands to paste are not broken.
///
/// # Errors
/// The output cannot be written.
pub(crate) fn print(lines: &[Vec<Span>]) -> io::Result<()> {
    let out = io::BufWriter::new(anstream::stdout().lock());
    let mut out = Shield::new(out, usize::MAX);
    write(&mut out, lines)?;
    out.flush()
}

/// Writes painted lines. The output stream removes the colors where there are none.
///
/// # Errors
/// The output cannot be written.
pub(crate) fn write(out: &mut dyn Write, lines: &[Vec<Span>]) -> io::Result<()> {
    for line in lines {
        for (paint, text) in line {
            let style = style(*paint);
            write!(out, "{style}{text}{style:#}")?;
        }
        writeln!(out)?;
    }
    Ok(())
}
