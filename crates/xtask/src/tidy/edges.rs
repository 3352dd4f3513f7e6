//! Dependencies between the crates of the workspace.

use cargo_metadata::{DependencyKind, Metadata, Package};

/// Every crate of the product with all crates of the product that it depends on. An edge that is
/// missing here may not be added to a manifest, and an edge that no manifest has may not stay here.
const EDGES: [(&str, &[&str]); 18] = [
    ("vramscope-units", &[]),
    ("vramscope-allocator", &[]),
    ("vramscope-gpus", &[]),
    ("vramscope-dry", &["vramscope-gpus"]),
    ("vramscope-holders", &[]),
    ("vramscope-pickle", &[]),
    ("vramscope-snapshot", &["vramscope-pickle", "vramscope-units"]),
    ("vramscope-trace", &["vramscope-allocator", "vramscope-snapshot", "vramscope-units"]),
    (
        "vramscope-inference",
        &[
            "vramscope-allocator",
            "vramscope-gpus",
            "vramscope-snapshot",
            "vramscope-trace",
            "vramscope-units",
        ],
    ),
    ("vramscope-render", &["vramscope-units"]),
    (
        "vramscope-layout",
        &[
            "vramscope-inference",
            "vramscope-render",
            "vramscope-snapshot",
            "vramscope-trace",
            "vramscope-units",
        ],
    ),
    (
        "vramscope-report",
        &[
            "vramscope-gpus",
            "vramscope-inference",
            "vramscope-snapshot",
            "vramscope-trace",
            "vramscope-units",
        ],
    ),
    (
        "vramscope-dataset",
        &[
            "vramscope-inference",
            "vramscope-report",
            "vramscope-snapshot",
            "vramscope-trace",
            "vramscope-units",
        ],
    ),
    (
        "vramscope-session",
        &[
            "vramscope-inference",
            "vramscope-layout",
            "vramscope-render",
            "vramscope-report",
            "vramscope-snapshot",
            "vramscope-trace",
            "vramscope-units",
        ],
    ),
    ("vramscope-worker", &["vramscope-session"]),
    ("vramscope-view", &["vramscope-render", "vramscope-units"]),
    ("vramscope-cli", &["vramscope-dataset", "vramscope-report", "vramscope-units"]),
    (
        "vramscope-python",
        &[
            "vramscope-cli",
            "vramscope-dataset",
            "vramscope-dry",
            "vramscope-gpus",
            "vramscope-holders",
            "vramscope-inference",
            "vramscope-report",
            "vramscope-snapshot",
            "vramscope-trace",
        ],
    ),
];

/// Packages that do not ship. They may depend on everything.
const TOOLS: [&str; 4] = ["vramscope-bench", "vramscope-fuzz", TEST_DATA, "xtask"];

/// The tool that crates of the product may have as a dev-dependency.
const TEST_DATA: &str = "vramscope-testgen";

/// The crate that may ask for the feature `gl` of vramscope-render.
const GL_USER: &str = "vramscope-view";

/// Packages of the browser's interface, and the crates that may depend on them.
const BROWSER: [&str; 6] = [
    "wasm-bindgen",
    "js-sys",
    "web-sys",
    "serde-wasm-bindgen",
    "console_error_panic_hook",
    "wasm-bindgen-rayon",
];
const BROWSER_USERS: [&str; 2] = ["vramscope-worker", "vramscope-view"];

/// An entry of a manifest.
#[derive(Clone, Copy)]
struct Edge<'a> {
    from: &'a str,
    to: &'a str,
    is_dev: bool,
    with_gl: bool,
}

pub(super) fn check(metadata: &Metadata) -> Vec<String> {
    let packages = metadata.workspace_packages();
    let edges: Vec<Edge<'_>> = packages.iter().flat_map(|package| edges(package)).collect();
    let names: Vec<&str> = packages.iter().map(|package| package.name.as_str()).collect();
    let mut broken = unlisted(&names);
    broken.extend(edges.iter().filter_map(refused));
    broken.extend(stale(&edges));
    let gl_by_default = |package: &&Package| {
        package.name.as_str() == "vramscope-render"
            && package.features.get("default").is_some_and(|on| on.iter().any(|f| f == "gl"))
    };
    if packages.iter().any(|package| gl_by_default(&&**package)) {
        broken
            .push("vramscope-render has `gl` on by default: vramscope-layout would get it".into());
    }
    broken
}

fn edges(package: &Package) -> impl Iterator<Item = Edge<'_>> {
    package.dependencies.iter().map(|dependency| Edge {
        from: package.name.as_str(),
        to: dependency.name.as_str(),
        is_dev: dependency.kind == DependencyKind::Development,
        with_gl: dependency.features.iter().any(|feature| feature == "gl"),
    })
}

fn allowed(name: &str) -> Option<&'static [&'static str]> {
    EDGES.iter().find(|(from, _)| *from == name).map(|(_, to)| *to)
}

/// Packages without an entry in the table, and entries without a package.
fn unlisted(names: &[&str]) -> Vec<String> {
    let unknown = names.iter().filter(|name| allowed(name).is_none() && !TOOLS.contains(name));
    let missing = EDGES.iter().map(|(name, _)| name).filter(|name| !names.contains(name));
    unknown
        .map(|name| format!("crate {name} is unknown: add it to tidy/edges.rs and ARCHITECTURE.md"))
        .chain(missing.map(|name| format!("tidy/edges.rs names {name}, which does not exist")))
        .collect()
}

/// Why an edge may not be there.
fn refused(edge: &Edge<'_>) -> Option<String> {
    let &Edge { from, to, is_dev, with_gl } = edge;
    if BROWSER.contains(&to) && !BROWSER_USERS.contains(&from) {
        return Some(format!("{from} depends on {to}: only {} may", BROWSER_USERS.join(" and ")));
    }
    if from == "vramscope-pickle" && to == "serde" {
        return Some("vramscope-pickle depends on serde: it hands values to a sink".into());
    }
    if TOOLS.contains(&from) {
        return None;
    }
    if to == "vramscope-render" && with_gl && from != GL_USER {
        return Some(format!("{from} asks vramscope-render for `gl`: only {GL_USER} may"));
    }
    let is_test_data = to == TEST_DATA && is_dev;
    let is_ours = allowed(to).is_some() || TOOLS.contains(&to);
    let is_allowed = is_test_data || allowed(from).is_some_and(|allowed| allowed.contains(&to));
    (is_ours && !is_allowed)
        .then(|| format!("{from} depends on {to}: tidy/edges.rs does not have that edge"))
}

/// Edges of the table that no manifest has.
fn stale(edges: &[Edge<'_>]) -> Vec<String> {
    let used = |from: &str, to: &str| {
        edges.iter().any(|edge| edge.from == from && edge.to == to && !edge.is_dev)
    };
    EDGES
        .iter()
        .flat_map(|(from, all)| all.iter().map(move |to| (*from, *to)))
        .filter(|(from, to)| !used(from, to))
        .map(|(from, to)| format!("tidy/edges.rs lets {from} depend on {to}, which it does not"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edge<'a>(from: &'a str, to: &'a str) -> Edge<'a> {
        Edge { from, to, is_dev: false, with_gl: false }
    }

    #[test]
    fn edges_outside_of_the_table_are_refused() {
        assert!(refused(&edge("vramscope-snapshot", "vramscope-pickle")).is_none());
        assert!(refused(&edge("vramscope-pickle", "vramscope-snapshot")).is_some());
        assert!(refused(&edge("vramscope-cli", "vramscope-session")).is_some());
        // Other packages are none of the table's business.
        assert!(refused(&edge("vramscope-cli", "clap")).is_none());
    }

    #[test]
    fn tools_depend_on_everything_and_only_tests_on_them() {
        assert!(refused(&edge("vramscope-bench", "vramscope-session")).is_none());
        assert!(refused(&edge("vramscope-session", "vramscope-bench")).is_some());
        let test_data = edge("vramscope-trace", TEST_DATA);
        assert!(refused(&test_data).is_some());
        assert!(refused(&Edge { is_dev: true, ..test_data }).is_none());
    }

    #[test]
    fn browser_and_gl_have_their_users() {
        assert!(refused(&edge("vramscope-worker", "js-sys")).is_none());
        assert!(refused(&edge("vramscope-session", "js-sys")).is_some());
        assert!(refused(&edge("xtask", "web-sys")).is_some());
        let gl = |from| Edge { with_gl: true, ..edge(from, "vramscope-render") };
        assert!(refused(&gl("vramscope-view")).is_none());
        assert!(refused(&gl("vramscope-layout")).is_some());
        assert!(refused(&edge("vramscope-pickle", "serde")).is_some());
    }

    #[test]
    fn unused_edges_and_unknown_crates_are_named() {
        let all: Vec<Edge<'_>> =
            EDGES.iter().flat_map(|(from, all)| all.iter().map(move |to| edge(from, to))).collect();
        assert!(stale(&all).is_empty());
        assert_eq!(stale(&all[1..]).len(), 1);
        let mut names: Vec<&str> = EDGES.iter().map(|(name, _)| *name).collect();
        assert!(unlisted(&names).is_empty());
        names[0] = "vramscope-new";
        assert_eq!(unlisted(&names).len(), 2);
    }
}
