//! The terminal that text is printed on.

use crate::output::{ERROR, FAINT, STRONG, WARNING};
use anstyle::{AnsiColor, Color, Style};
use std::io::{self, Write};
use vramscope_report::diagnostic::{Level, Paint, Span};

/// The columns of text where there is no terminal.
const DEFAULT_WIDTH: usize = 100;

/// A terminal with more columns gets no longer lines: they are hard to read.
const MAX_WIDTH: usize = 160;

/// The columns of standard output: those of the terminal, or `COLUMNS`, else 100.
pub(crate) fn width() -> usize {
    let told = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    let own = || terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
    told.or_else(own).unwrap_or(DEFAULT_WIDTH).clamp(40, MAX_WIDTH)
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
        Paint::Part(name) => match name {
            "parameter" | "buffer" => BLUE,
            "optimizer_state" => GOOD,
            "gradient" | "input" => WARNING,
            "activation" => MAGENTA,
            "communication" => ERROR,
            "workspace" | "cache" => CYAN,
            "holes" | "free" | "other" | "outside" => FAINT,
            _ => Style::new(),
        },
    }
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
