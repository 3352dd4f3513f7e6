//! Writes the lines of an index.

use super::{Entry, SCHEMA};
use crate::card::{Card, NamedStack, Names};
use rustc_hash::FxHashMap;
use serde::Serialize;
use vramscope_inference::CallSite;

/// Writes the lines of an index in order. Memory is in proportion to the number of distinct call
/// sites and stacks.
#[derive(Debug, Default)]
pub struct Writer {
    sites: FxHashMap<CallSite, u32>,
    /// Files may name the site of a stack differently.
    stacks: FxHashMap<NamedStack, u32>,
}

#[derive(Serialize)]
struct Header<'a> {
    schema: &'static str,
    title: &'a str,
    files: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<u64>,
}

#[derive(Serialize)]
struct Done {
    done: bool,
    skipped_files: usize,
}

/// The lines of this crate have neither maps nor numbers that JSON lacks.
const VALID: &str = "a line is always valid JSON";

impl Writer {
    /// The first line. `files` is the number of files that are looked at.
    pub fn header(title: &str, files: usize) -> String {
        let header = Header { schema: SCHEMA, title, files, next: None };
        serde_json::to_string(&header).expect(VALID)
    }

    /// The first line of a part of an index. A reader asks for the rest from `next` on.
    pub fn header_of_part(title: &str, files: usize, next: u64) -> String {
        let header = Header { schema: SCHEMA, title, files, next: Some(next) };
        serde_json::to_string(&header).expect(VALID)
    }

    /// The last line. `skipped_files` is the number of files that are no snapshots.
    pub fn done(skipped_files: usize) -> String {
        serde_json::to_string(&Done { done: true, skipped_files }).expect(VALID)
    }

    /// The line of an entry. A card names its own call sites and stacks, and gets short.
    ///
    /// # Errors
    /// The card refers to a call site or a stack that it does not name.
    pub fn line(&mut self, entry: Entry) -> Result<String, String> {
        match entry {
            Ok(card) => self.card(*card),
            Err(file) => Ok(file.to_json()),
        }
    }

    fn card(&mut self, card: Card) -> Result<String, String> {
        card.check(&card.names)?;
        let mut card = card.short();
        let named = std::mem::take(&mut card.names);
        let mut new = Names::default();
        let mut sites: Vec<u32> = Vec::with_capacity(named.sites.len());
        for site in named.sites {
            let next = self.sites.len() as u32;
            sites.push(*self.sites.entry(site).or_insert_with_key(|site| {
                new.sites.push(site.clone());
                next
            }));
        }
        let mut stacks: Vec<u32> = Vec::with_capacity(named.stacks.len());
        for stack in named.stacks {
            let stack = NamedStack { site: sites[stack.site as usize], ..stack };
            let next = self.stacks.len() as u32;
            stacks.push(*self.stacks.entry(stack).or_insert_with(|| {
                new.stacks.push(stack);
                next
            }));
        }
        for of in card.sites.iter_mut().chain(&mut card.kept_sites) {
            of.site = sites[of.site as usize];
        }
        for of in &mut card.stacks {
            of.stack = stacks[of.stack as usize];
        }
        card.names = new;
        Ok(card.to_json())
    }
}
