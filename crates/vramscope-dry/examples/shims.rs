//! Writes shims: `shims PACKAGES CORE OUT [soname | cached]`. Prints what was written, as JSON.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program")]

use std::path::Path;
use std::process::ExitCode;
use vramscope_dry::shims::{Naming, cached, write};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (packages, core, out, mode) = match arguments[..] {
        [packages, core, out] => (packages, core, out, ""),
        [packages, core, out, mode @ ("soname" | "cached")] => (packages, core, out, mode),
        _ => {
            eprintln!("usage: shims PACKAGES CORE OUT [soname | cached]");
            return ExitCode::FAILURE;
        }
    };
    let (packages, core, out) = (Path::new(packages), Path::new(core), Path::new(out));
    let written = match mode {
        "cached" => cached(packages, core, out),
        "soname" => write(packages, core, out, Naming::Soname),
        _ => write(packages, core, out, Naming::Cache),
    };
    let text = written
        .map_err(|error| error.to_string())
        .and_then(|written| serde_json::to_string(&written).map_err(|error| error.to_string()));
    match text {
        Ok(text) => println!("{text}"),
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
