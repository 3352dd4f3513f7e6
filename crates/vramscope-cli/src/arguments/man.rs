//! The manual page `vramscope.1`: the definition of the command line as roff. The wheel and the
//! archive of the program have it.

use super::Arguments;
use clap::CommandFactory as _;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};
use std::io::{self, Write as _};
use std::path::Path;

/// Where the builder of the wheel looks for what goes beside the package.
const PAGE: &str = "../../python/vramscope.data/data/share/man/man1/vramscope.1";

/// How roff writes an apostrophe. Each section begins with it, but once is enough.
const APOSTROPHE: &str = ".ie \\n(.g .ds Aq \\(aq\n.el .ds Aq '\n";

/// The page: of the program, then of each command.
fn page() -> io::Result<String> {
    let mut program = Arguments::command();
    program.build();
    let mut out = Vec::new();
    let manual = program.get_after_long_help().map(ToString::to_string).unwrap_or_default();
    let page = Man::new(program.clone());
    page.render_title(&mut out)?;
    page.render_name_section(&mut out)?;
    page.render_synopsis_section(&mut out)?;
    page.render_description_section(&mut out)?;
    for command in program.get_subcommands().filter(|command| command.get_name() != "help") {
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        let name = format!("vramscope {}", command.get_name());
        let mut head = Roff::new();
        head.control("SH", [name.as_str()]);
        head.text([roman(about)]);
        head.to_writer(&mut out)?;
        let command = Man::new(command.clone());
        let mut body = Vec::new();
        command.render_synopsis_section(&mut body)?;
        command.render_options_section(&mut body)?;
        // Sections of a section.
        write!(out, "{}", String::from_utf8_lossy(&body).replace(".SH ", ".SS "))?;
    }
    let mut rest = Roff::new();
    rest.control("SH", ["NOTES"]).control("nf", []).text([roman(manual)]).control("fi", []);
    rest.to_writer(&mut out)?;
    let page = String::from_utf8_lossy(&out).replace(APOSTROPHE, "");
    Ok(format!("{APOSTROPHE}{page}"))
}

#[test]
fn the_manual_page_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE);
    let page = page().expect("a page");
    if std::env::var_os("UPDATE_DOCUMENTS").is_some() {
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(&path, &page).expect("the page is written");
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == page, "{PAGE} is not current: run `cargo xtask docs`");
    let named = |name: &str| page.contains(&format!(".SH \"vramscope {name}\"\n"));
    assert!(["record", "diagnose", "dry-run", "what-if", "completions"].into_iter().all(named));
}
