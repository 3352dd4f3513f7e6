//! Who may depend on whom.

use cargo_metadata::{Metadata, Package};

/// Every crate of the product and the ones that it may name. A crate may also name what stands below its neighbours where
/// that is listed; nothing may point upwards.
const EDGES: [(&str, &[&str]); 10] = [
    ("memstrata-units", &[]),
    ("memstrata-pickle", &[]),
    ("memstrata-snapshot", &["memstrata-pickle", "memstrata-units"]),
    ("memstrata-analysis", &["memstrata-snapshot", "memstrata-units"]),
    ("memstrata-render", &[]),
    ("memstrata-layout", &["memstrata-analysis", "memstrata-snapshot", "memstrata-render", "memstrata-units"]),
    ("memstrata-engine", &["memstrata-layout", "memstrata-analysis", "memstrata-snapshot", "memstrata-units"]),
    ("memstrata-worker", &["memstrata-engine"]),
    ("memstrata-view", &["memstrata-render", "memstrata-units"]),
    ("memstrata-cli", &["memstrata-engine", "memstrata-render"]),
];

/// Packages of the workspace that are not the product: anything may be measured, and nothing may depend on them.
const TOOLS: [&str; 3] = ["memstrata-bench", "memstrata-fuzz", "xtask"];

/// Who may draw.
const GL_USERS: [&str; 2] = ["memstrata-view", "memstrata-cli"];

/// What only the two crates at the browser's edge may name.
const BROWSER: [&str; 6] =
    ["wasm-bindgen", "js-sys", "web-sys", "serde-wasm-bindgen", "console_error_panic_hook", "wasm-bindgen-rayon"];
const BROWSER_USERS: [&str; 2] = ["memstrata-worker", "memstrata-view"];

pub(super) fn check(metadata: &Metadata) -> Vec<String> {
    let mut broken: Vec<String> = metadata.workspace_packages().into_iter().flat_map(package).collect();
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
        if to == "memstrata-render"
            && dependency.features.iter().any(|f| f == "gl")
            && !tool
            && !GL_USERS.contains(&name)
        {
            broken.push(format!("{name} takes memstrata-render with `gl`: only {} draw", GL_USERS.join(" and ")));
        }
        if BROWSER.contains(&to) && !BROWSER_USERS.contains(&name) {
            broken
                .push(format!("{name} names {to}: only {} know that there is a browser", BROWSER_USERS.join(" and ")));
        }
    }
    if name == "memstrata-render" && package.features.get("default").is_some_and(|on| on.iter().any(|f| f == "gl")) {
        broken.push("memstrata-render has `gl` on by default: layout would get it".into());
    }
    if name == "memstrata-pickle" && !package.dependencies.iter().all(|d| d.name != "serde") {
        broken.push("memstrata-pickle depends on serde: it hands values to a sink, and has no tree of them".into());
    }
    broken
}
