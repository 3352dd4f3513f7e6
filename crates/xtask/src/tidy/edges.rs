//! Who may depend on whom.

use cargo_metadata::{Metadata, Package};

/// Every crate of the product and the ones that it may name. A crate may also name what stands
/// below its neighbors where that is listed; nothing may point upwards.
const EDGES: [(&str, &[&str]); 10] = [
    ("vramscope-units", &[]),
    ("vramscope-pickle", &[]),
    ("vramscope-snapshot", &["vramscope-pickle", "vramscope-units"]),
    ("vramscope-analysis", &["vramscope-snapshot", "vramscope-units"]),
    ("vramscope-render", &[]),
    (
        "vramscope-layout",
        &["vramscope-analysis", "vramscope-snapshot", "vramscope-render", "vramscope-units"],
    ),
    (
        "vramscope-engine",
        &["vramscope-layout", "vramscope-analysis", "vramscope-snapshot", "vramscope-units"],
    ),
    ("vramscope-worker", &["vramscope-engine"]),
    ("vramscope-view", &["vramscope-render", "vramscope-units"]),
    ("vramscope-cli", &["vramscope-engine", "vramscope-render"]),
];

/// Packages of the workspace that are not the product: anything may be measured, and nothing may
/// depend on them.
const TOOLS: [&str; 3] = ["vramscope-bench", "vramscope-fuzz", "xtask"];

/// Who may draw.
const GL_USERS: [&str; 2] = ["vramscope-view", "vramscope-cli"];

/// What only the two crates at the browser's edge may name.
const BROWSER: [&str; 6] = [
    "wasm-bindgen",
    "js-sys",
    "web-sys",
    "serde-wasm-bindgen",
    "console_error_panic_hook",
    "wasm-bindgen-rayon",
];
const BROWSER_USERS: [&str; 2] = ["vramscope-worker", "vramscope-view"];

pub(super) fn check(metadata: &Metadata) -> Vec<String> {
    let mut broken: Vec<String> =
        metadata.workspace_packages().into_iter().flat_map(package).collect();
    for (name, _) in EDGES {
        if metadata.workspace_packages().iter().all(|p| p.name.as_str() != name) {
            broken.push(format!("there is no crate {name}, though the architecture names it"));
        }
    }
    broken
}

fn package(package: &Package) -> Vec<String> {
    let name = package.name.as_str();
    let mut broken = Vec::new();
    let tool = TOOLS.contains(&name);
    let allowed = EDGES.iter().find(|(n, _)| *n == name).map(|(_, allowed)| *allowed);
    if allowed.is_none() && !tool {
        broken.push(format!(
            "crate {name} has no place in the architecture: give it one in tidy/edges.rs and ARCHITECTURE.md"
        ));
    }
    for dependency in &package.dependencies {
        let to = dependency.name.as_str();
        let ours = EDGES.iter().any(|(n, _)| *n == to) || TOOLS.contains(&to);
        if ours && !tool && !allowed.unwrap_or_default().contains(&to) {
            broken.push(format!("{name} depends on {to}: that edge is not in the architecture"));
        }
        if to == "vramscope-render"
            && dependency.features.iter().any(|f| f == "gl")
            && !tool
            && !GL_USERS.contains(&name)
        {
            broken.push(format!(
                "{name} takes vramscope-render with `gl`: only {} draw",
                GL_USERS.join(" and ")
            ));
        }
        if BROWSER.contains(&to) && !BROWSER_USERS.contains(&name) {
            broken.push(format!(
                "{name} names {to}: only {} know that there is a browser",
                BROWSER_USERS.join(" and ")
            ));
        }
    }
    if name == "vramscope-render"
        && package.features.get("default").is_some_and(|on| on.iter().any(|f| f == "gl"))
    {
        broken.push("vramscope-render has `gl` on by default: layout would get it".into());
    }
    if name == "vramscope-pickle" && !package.dependencies.iter().all(|d| d.name != "serde") {
        broken.push(
            "vramscope-pickle depends on serde: it hands values to a sink, and has no tree of them"
                .into(),
        );
    }
    broken
}
