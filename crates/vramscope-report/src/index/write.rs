//! Writes the lines of an index.

use super::{Card, SCHEMA};
use rustc_hash::FxHashMap;
use serde::Serialize;

/// Writes the lines of an index in order. Call sites and stacks are named by the first card that
/// has them. Memory is in proportion to the number of distinct ones.
#[derive(Debug, Default)]
pub struct Writer {
    sites: FxHashMap<String, u64>,
    /// By hash and call site: files may name the site of a stack differently.
    stacks: FxHashMap<(u64, u64), u64>,
}

#[derive(Serialize)]
struct Header<'a> {
    schema: &'static str,
    title: &'a str,
    files: usize,
}

#[derive(Serialize)]
struct Done {
    done: bool,
    skipped_files: usize,
}

/// What a line of this crate's own types is: they have neither maps nor numbers that JSON lacks.
const VALID: &str = "a card is always valid JSON";

impl Writer {
    /// The first line. `files` is the number of files that are looked at.
    pub fn header(title: &str, files: usize) -> String {
        serde_json::to_string(&Header { schema: SCHEMA, title, files }).expect(VALID)
    }

    /// The last line. `skipped_files` is the number of files that are no snapshots.
    pub fn done(skipped_files: usize) -> String {
        serde_json::to_string(&Done { done: true, skipped_files }).expect(VALID)
    }

    /// The line of a card that names its own call sites and stacks.
    ///
    /// # Errors
    /// The card refers to a call site or a stack that it does not name.
    pub fn card(&mut self, mut card: Card) -> Result<String, String> {
        let mut new_sites = Vec::new();
        let mut sites: Vec<u64> = Vec::with_capacity(card.new_sites.len());
        for site in std::mem::take(&mut card.new_sites) {
            let next = self.sites.len() as u64;
            sites.push(*self.sites.entry(site).or_insert_with_key(|site| {
                new_sites.push(site.clone());
                next
            }));
        }
        let (mut new_stacks, mut new_stack_sites) = (Vec::new(), Vec::new());
        let mut stacks: Vec<u64> = Vec::with_capacity(card.new_stacks.len());
        for (&hash, &site) in card.new_stacks.iter().zip(&card.new_stack_sites) {
            let site = renumbered(site, &sites)?;
            let next = self.stacks.len() as u64;
            stacks.push(*self.stacks.entry((hash, site)).or_insert_with(|| {
                new_stacks.push(hash);
                new_stack_sites.push(site);
                next
            }));
        }
        for site in card.sites.iter_mut().chain(&mut card.kept_sites) {
            *site = renumbered(*site, &sites)?;
        }
        for stack in &mut card.stacks {
            *stack = renumbered(*stack, &stacks)?;
        }
        let card = Card { new_sites, new_stacks, new_stack_sites, ..card };
        Ok(card.to_json())
    }
}

impl Card {
    /// The card as JSON in one line.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect(VALID)
    }
}

fn renumbered(index: u64, numbers: &[u64]) -> Result<u64, String> {
    let number = numbers.get(usize::try_from(index).unwrap_or(usize::MAX));
    number.copied().ok_or_else(|| "it refers to a call site that it does not name".to_owned())
}
