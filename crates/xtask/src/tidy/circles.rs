//! Circles of files: files of a crate that import each other in a loop.

use super::Source;
use std::collections::{BTreeMap, BTreeSet};
use syn::visit::{self, Visit};

/// Rooms without a circle.
const ROOMS: [&str; 2] =
    ["crates/vramscope-inference/src/claims/", "crates/vramscope-inference/src/evidence/"];

/// A circle inside one of [`ROOMS`] breaks the rule.
pub(super) fn check(sources: &[Source]) -> Vec<String> {
    let house = House::new(sources);
    let circles = house.circles();
    let arrows: usize = circles.iter().map(|circle| house.arrows_within(circle)).sum();
    println!("tidy: {} circles of files, {arrows} arrows within them", circles.len());
    let in_room = |circle: &Vec<&str>| {
        ROOMS.iter().any(|room| circle.iter().filter(|file| file.starts_with(room)).count() > 1)
    };
    let text = |circle: &Vec<&str>| {
        format!("{} import each other: move what they share to a file below", circle.join(", "))
    };
    circles.iter().filter(|circle| in_room(circle)).map(text).collect()
}

/// The files of all crates, by module, and what each names.
struct House<'a> {
    /// Files by crate and module path: `vramscope_units`, `color`.
    modules: BTreeMap<Vec<String>, &'a str>,
    /// The items that a file defines, and the names that it hands on with their paths.
    files: BTreeMap<&'a str, Names>,
    arrows: BTreeMap<&'a str, BTreeSet<&'a str>>,
}

/// What a file defines, hands on and names.
#[derive(Default)]
struct Names {
    module: Vec<String>,
    defined: BTreeSet<String>,
    handed_on: BTreeMap<String, Vec<String>>,
    globs: Vec<Vec<String>>,
    named: BTreeSet<Vec<String>>,
}

impl<'a> House<'a> {
    fn new(sources: &'a [Source]) -> Self {
        let mut house =
            Self { modules: BTreeMap::new(), files: BTreeMap::new(), arrows: BTreeMap::new() };
        for source in sources {
            let Some(module) = module_of(&source.name) else { continue };
            let Ok(file) = syn::parse_file(&source.text) else { continue };
            let mut names = Names { module: module.clone(), ..Names::default() };
            names.visit_file(&file);
            house.modules.insert(module, &source.name);
            house.files.insert(&source.name, names);
        }
        for (&file, names) in &house.files {
            let mut to = BTreeSet::new();
            for path in &names.named {
                to.extend(house.file_of(path, 0).filter(|other| *other != file));
            }
            house.arrows.insert(file, to);
        }
        house
    }

    /// The file that defines the item at the end of a path.
    fn file_of(&self, path: &[String], depth: usize) -> Option<&'a str> {
        let at = (1..=path.len()).rev().find(|&at| self.modules.contains_key(&path[..at]))?;
        let file = self.modules[&path[..at]];
        let Some(name) = path.get(at) else { return Some(file) };
        let names = &self.files[file];
        match names.handed_on.get(name) {
            Some(other) if depth < 8 && !names.defined.contains(name) => {
                let path = [&other[..], &path[at + 1..]].concat();
                self.file_of(&path, depth + 1)
            }
            // The root of the crate, for what no file is known to define.
            _ => names.defined.contains(name).then_some(file),
        }
    }

    /// Strongly connected files, at least two each: those that reach each other.
    fn circles(&self) -> Vec<Vec<&'a str>> {
        let reach: BTreeMap<&str, BTreeSet<&str>> =
            self.files.keys().map(|&file| (file, self.reached(file))).collect();
        let mut circles: Vec<Vec<&'a str>> = Vec::new();
        for &file in self.files.keys() {
            let is_known = circles.iter().any(|circle| circle.contains(&file));
            let others = self.files.keys().copied();
            let loops =
                others.filter(|&other| reach[file].contains(other) && reach[other].contains(file));
            let circle: Vec<&'a str> = loops.collect();
            if circle.len() > 1 && !is_known {
                circles.push(circle);
            }
        }
        circles
    }

    fn reached(&self, from: &'a str) -> BTreeSet<&'a str> {
        let mut reached = BTreeSet::new();
        let mut next = vec![from];
        while let Some(file) = next.pop() {
            next.extend(self.arrows[file].iter().copied().filter(|&other| reached.insert(other)));
        }
        reached
    }

    fn arrows_within(&self, circle: &[&str]) -> usize {
        let within =
            |file: &&str| self.arrows[*file].iter().filter(|to| circle.contains(to)).count();
        circle.iter().map(within).sum()
    }
}

/// The module of a source file, after the name of its crate; `None` for other files.
fn module_of(name: &str) -> Option<Vec<String>> {
    let (folder, path) = name.strip_prefix("crates/")?.split_once("/src/")?;
    let path = path.strip_suffix(".rs")?;
    let parts = path.split('/').filter(|part| !matches!(*part, "lib" | "main" | "mod"));
    Some(std::iter::once(folder.replace('-', "_")).chain(parts.map(str::to_owned)).collect())
}

impl Names {
    /// The whole path of a path in this file; `None` for other crates and for local names.
    fn whole(&self, path: &[String]) -> Option<Vec<String>> {
        let mut base = match path.first()?.as_str() {
            "crate" => vec![self.module[0].clone()],
            "self" => self.module.clone(),
            "super" => self.module[..self.module.len() - 1].to_vec(),
            _ => return None,
        };
        for part in &path[1..] {
            match part.as_str() {
                "super" => drop(base.pop()),
                _ => base.push(part.clone()),
            }
        }
        Some(base)
    }

    /// Reads a tree of imports. `is_public` hands its names on.
    fn import(&mut self, tree: &syn::UseTree, before: &[String], is_public: bool) {
        let push = |ident: &syn::Ident| [before, &[ident.to_string()]].concat();
        let (path, name) = match tree {
            syn::UseTree::Path(path) => {
                return self.import(&path.tree, &push(&path.ident), is_public);
            }
            syn::UseTree::Group(group) => {
                return group.items.iter().for_each(|item| self.import(item, before, is_public));
            }
            syn::UseTree::Glob(_) => (before.to_vec(), None),
            syn::UseTree::Name(name) if name.ident == "self" => {
                (before.to_vec(), before.last().cloned())
            }
            syn::UseTree::Name(name) => (push(&name.ident), Some(name.ident.to_string())),
            syn::UseTree::Rename(of) => (push(&of.ident), Some(of.rename.to_string())),
        };
        // `pub use child::Name` begins with a module of this file.
        let whole = self.whole(&path).unwrap_or_else(|| [&self.module[..], &path].concat());
        if matches!(tree, syn::UseTree::Glob(_)) && !is_public {
            return self.globs.push(whole);
        }
        if let Some(name) = name {
            self.handed_on.insert(name, whole.clone());
        }
        if !is_public {
            self.named.insert(whole);
        }
    }
}

/// The types that a macro declares.
fn types_in(tokens: &str) -> Vec<String> {
    let words: Vec<&str> = tokens.split_whitespace().collect();
    let pairs = words.windows(2).filter(|pair| matches!(pair[0], "enum" | "struct"));
    pairs.map(|pair| pair[1].to_owned()).collect()
}

fn is_test(attributes: &[syn::Attribute]) -> bool {
    let is_test = |attribute: &syn::Attribute| {
        attribute.path().is_ident("cfg")
            && attribute.parse_args::<syn::Path>().is_ok_and(|of| of.is_ident("test"))
    };
    attributes.iter().any(is_test)
}

impl<'ast> Visit<'ast> for Names {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        let name = match item {
            syn::Item::Mod(of) if is_test(&of.attrs) => return,
            syn::Item::Macro(of) if is_test(&of.attrs) => return,
            syn::Item::Use(of) => {
                let is_public = !matches!(of.vis, syn::Visibility::Inherited);
                return self.import(&of.tree, &[], is_public);
            }
            syn::Item::Const(of) => Some(&of.ident),
            syn::Item::Enum(of) => Some(&of.ident),
            syn::Item::Fn(of) => Some(&of.sig.ident),
            syn::Item::Macro(of) => {
                self.defined.extend(types_in(&of.mac.tokens.to_string()));
                of.ident.as_ref()
            }
            syn::Item::Static(of) => Some(&of.ident),
            syn::Item::Struct(of) => Some(&of.ident),
            syn::Item::Trait(of) => Some(&of.ident),
            syn::Item::Type(of) => Some(&of.ident),
            _ => None,
        };
        self.defined.extend(name.map(ToString::to_string));
        visit::visit_item(self, item);
    }

    // `pub(in crate::claims)` names no item.
    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {}

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let parts: Vec<String> = path.segments.iter().map(|part| part.ident.to_string()).collect();
        if let Some(whole) = self.whole(&parts) {
            self.named.insert(whole);
        } else if parts.len() > 1 {
            // `child::name`, or `module::name` of an imported module.
            let base = self.handed_on.get(&parts[0]).cloned();
            let base = base.unwrap_or_else(|| [&self.module[..], &parts[..1]].concat());
            self.named.insert([&base[..], &parts[1..]].concat());
        } else if !self.defined.contains(&parts[0]) && !self.handed_on.contains_key(&parts[0]) {
            self.named.extend(self.globs.iter().map(|glob| [&glob[..], &parts].concat()));
        }
        visit::visit_path(self, path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn circles(files: &[(&str, &str)]) -> Vec<Vec<String>> {
        let sources: Vec<Source> = files
            .iter()
            .map(|(name, text)| Source {
                name: format!("crates/a/src/{name}.rs"),
                text: (*text).to_owned(),
            })
            .collect();
        let house = House::new(&sources);
        let circles = house.circles().into_iter();
        circles.map(|circle| circle.into_iter().map(str::to_owned).collect()).collect()
    }

    #[test]
    fn files_that_import_each_other_are_a_circle() {
        let found = circles(&[
            ("lib", "mod one; mod two; pub use two::Two;"),
            ("one", "use crate::Two; pub struct One;"),
            ("two", "pub struct Two; fn f() { crate::one::One; }"),
        ]);
        assert_eq!(found, [["crates/a/src/one.rs", "crates/a/src/two.rs"]]);
    }

    #[test]
    fn imports_of_all_names_count() {
        let found = circles(&[
            ("lib", "mod list; mod prelude; mod room;"),
            ("list", "pub static ALL: u32 = crate::room::ONE;"),
            ("prelude", "pub use crate::list::ALL;"),
            ("room", "use super::prelude::*; pub static ONE: u32 = ALL;"),
        ]);
        assert_eq!(found, [["crates/a/src/list.rs", "crates/a/src/room.rs"]]);
    }

    #[test]
    fn types_of_macros_are_defined() {
        let found = circles(&[
            ("lib", "mod one; mod two;"),
            ("one", "named! { pub enum One { A = \"a\" } } use crate::two::Two;"),
            ("two", "use crate::one::One; pub struct Two;"),
        ]);
        assert_eq!(found, [["crates/a/src/one.rs", "crates/a/src/two.rs"]]);
    }

    #[test]
    fn a_room_below_its_list_is_no_circle() {
        let found = circles(&[
            ("lib", "mod base; mod room; fn all() { room::detect(); }"),
            ("base", "pub struct Base;"),
            ("room", "use super::base::Base; pub fn detect() -> Base { Base }"),
            ("tests", "#[cfg(test)] mod tests { use crate::all; }"),
        ]);
        assert!(found.is_empty(), "{found:?}");
    }
}
