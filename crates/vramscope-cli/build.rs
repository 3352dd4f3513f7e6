//! Rebuilds the program when the site that it embeds changes.

use std::path::Path;

const SITE: &str = "../../web/site/dist";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var_os("CARGO_FEATURE_PAGE").is_none() {
        return;
    }
    println!("cargo::rerun-if-changed={SITE}");
    let is_release = std::env::var("PROFILE").is_ok_and(|profile| profile == "release");
    if is_release && !Path::new(SITE).join("index.html").is_file() {
        println!(
            "cargo::warning=the page is not built, so `vramscope serve` will not work: \
             run `cargo xtask build` first"
        );
    }
}
