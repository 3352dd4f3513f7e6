//! `vramscope what-if`.

use crate::Failure;
use crate::arguments::WhatIf as Arguments;
use crate::output::{self, STRONG, Table, styled};
use crate::printable::printable;
use crate::read;
use std::io::{self, Write};
use vramscope_report::what_if::{
    Options, ScenarioRecord, WhatIfReport, basis_text, fit, outcome_text, peak_text, sentence,
    what_if,
};
use vramscope_units::Bytes;

/// Prints what other settings, another device or another batch would reserve.
///
/// # Errors
/// The file cannot be read, the device does not exist, a setting is wrong, or the output cannot be
/// written.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    read::with_device(&arguments.input, |target| {
        let options = Options {
            set: arguments.set.clone(),
            change: arguments.change.clone(),
            device_memory: arguments.fit.or(arguments.device_memory),
            pytorch_memory: arguments.pytorch_memory,
            tokens: arguments.tokens,
            without: arguments.without.clone(),
            scale: arguments.scale.clone(),
        };
        let mut report = what_if(target, &options).map_err(Failure::Usage)?;
        if arguments.fit.is_some() {
            report.fit = fit(target, &options);
        }
        output::print(&report, arguments.input.common.format, text)
    })
}

fn text(out: &mut dyn Write, report: &WhatIfReport<'_>) -> io::Result<()> {
    let device = vramscope_report::device_name(report.device);
    writeln!(out, "{}  {device}", styled(STRONG, report.path))?;
    if let Some(why) = &report.declined {
        return writeln!(out, "{}", printable(why));
    }
    writeln!(out, "The model reproduces this recording to the byte.")?;
    if let Some(sentence) = sentence(report) {
        writeln!(out, "{sentence}")?;
    }
    writeln!(out)?;
    let mut table = Table::new(
        &["change", "reserved peak", "active peak", "flushes", "needs", "outcome", "basis"],
        &[false, true, true, true, true, false, false],
    );
    report.scenarios.iter().for_each(|scenario| table.row(row(scenario)));
    table.write(out)?;
    if let Some(fit) = &report.fit {
        writeln!(out)?;
        let limit = fit.limited_by.map_or(String::new(), |by| format!(", limited by {by}"));
        writeln!(out, "x{} tokens fit at most ({}){limit}.", fit.tokens, fit.basis)?;
    }
    Ok(())
}

fn row(scenario: &ScenarioRecord) -> Vec<String> {
    vec![
        scenario.change.clone(),
        peak_text(scenario),
        Bytes(scenario.active_peak).to_string(),
        scenario.flushes.to_string(),
        scenario.least_device_memory.map_or(String::new(), |b| Bytes(b).to_string()),
        outcome_text(scenario),
        basis_text(scenario),
    ]
}
