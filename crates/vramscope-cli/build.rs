//! Packs the site into a release of the program, and builds it again when the site changes.

#[cfg(feature = "page")]
#[path = "src/serve/site_files.rs"]
mod site_files;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(packed_page)");
    #[cfg(feature = "page")]
    pack();
}

/// Writes `page.zst`, unless this is a debug build: of each file the lengths of name and content,
/// the name and the content. They are packed together: two builds of the worker are alike.
#[cfg(feature = "page")]
fn pack() {
    use std::{env, fs, path::Path};

    println!("cargo::rerun-if-changed=src/serve/site_files.rs");
    println!("cargo::rerun-if-changed={}", site_files::site().display());
    if env::var_os("PROFILE").is_none_or(|profile| profile != "release") {
        return;
    }
    let files = site_files::all().unwrap_or_default();
    if !files.contains_key("index.html") {
        println!(
            "cargo::warning=the page is not built, so `vramscope serve` will not work: \
             run `cargo xtask build` first"
        );
        return;
    }
    let mut page = Vec::new();
    for (name, path) in files {
        let bytes = fs::read(path).expect("a file of the site");
        for length in [name.len(), bytes.len()] {
            page.extend(u32::try_from(length).expect("less than 4 GiB").to_le_bytes());
        }
        page.extend(name.as_bytes());
        page.extend(bytes);
    }
    let mut packer = zstd::bulk::Compressor::new(19).expect("a compressor");
    packer.long_distance_matching(true).and_then(|()| packer.window_log(24)).expect("a window");
    let folder = env::var_os("OUT_DIR").expect("set by cargo");
    fs::write(Path::new(&folder).join("page.zst"), packer.compress(&page).expect("packed"))
        .expect("page.zst");
    println!("cargo::rustc-cfg=packed_page");
}
