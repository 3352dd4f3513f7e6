//! With feature `page` the built site goes into the program, for `vramscope serve`.

use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() -> Result<(), Box<dyn Error>> {
    let mut table = String::from("pub(crate) static PAGE: &[(&str, &[u8])] = &[\n");
    if env::var_os("CARGO_FEATURE_PAGE").is_some() {
        let site = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("../../web/site/dist");
        println!("cargo::rerun-if-changed={}", site.display());
        if site.join("index.html").is_file() {
            embed(&site, "", &mut table)?;
        } else {
            println!(
                "cargo::warning=the page is not built, so `vramscope serve` will not have it: cargo xtask build"
            );
        }
    }
    println!("cargo::rerun-if-changed=build.rs");
    table.push_str("];\n");
    fs::write(PathBuf::from(env::var("OUT_DIR")?).join("page.rs"), table)?;
    Ok(())
}

fn embed(folder: &Path, prefix: &str, table: &mut String) -> Result<(), Box<dyn Error>> {
    let mut entries = fs::read_dir(folder)?.collect::<Result<Vec<_>, _>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path().canonicalize()?;
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        // The copy for hosts that cannot send headers, and what keeps a hosted page: the program
        // needs neither.
        if ["isolated", "open", "sw.js"].contains(&name.as_str()) {
            continue;
        }
        if path.is_dir() {
            embed(&path, &format!("{name}/"), table)?;
        } else {
            writeln!(table, "    ({name:?}, include_bytes!({:?})),", path.to_string_lossy())?;
        }
    }
    Ok(())
}
