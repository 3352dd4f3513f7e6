//! Reads the lines of an index.

use super::json::Json;
use super::{Card, CardFinding, SCHEMA};
use crate::peak::BandKind;
use crate::rank::run_facts;
use serde::Deserialize;
use vramscope_analysis::{Category, FindingKind, RankFacts, RankStack};

/// The longest line that is read. A card has a few kilobytes.
const MAX_LINE: usize = 8 << 20;

/// Reads the lines of an index in order.
#[derive(Debug, Default)]
pub struct Reader {
    title: String,
    files: u64,
    /// Lines read so far.
    lines: u64,
    is_done: bool,
    skipped_files: u64,
    /// The begin of a line whose end has not come yet.
    partial: Vec<u8>,
    sites: Vec<String>,
    /// The hash and the call site of each stack.
    stacks: Vec<(u64, u64)>,
}

impl Reader {
    /// Reads further text of an index, and returns the cards of the lines that end in it. The text
    /// may be cut anywhere.
    ///
    /// # Errors
    /// The text is no index, or one of another version.
    pub fn feed(&mut self, mut text: &[u8]) -> Result<Vec<Card>, String> {
        let mut cards = Vec::new();
        while let Some(end) = text.iter().position(|&byte| byte == b'\n') {
            self.append(&text[..end])?;
            text = &text[end + 1..];
            let line = std::mem::take(&mut self.partial);
            cards.extend(self.line(&line)?);
        }
        self.append(text)?;
        Ok(cards)
    }

    fn append(&mut self, text: &[u8]) -> Result<(), String> {
        if self.partial.len() + text.len() > MAX_LINE {
            return Err(format!("line {} is too long", self.lines + 1));
        }
        self.partial.extend_from_slice(text);
        Ok(())
    }

    /// Reads a line. `None` for the first and the last line, which have no card.
    ///
    /// # Errors
    /// The line is not of an index, or of one of another version.
    pub fn line(&mut self, line: &[u8]) -> Result<Option<Card>, String> {
        self.lines += 1;
        let failed = |why: String| format!("line {}: {why}", self.lines);
        let json = Json::parse(line).map_err(failed)?;
        if self.lines == 1 {
            let schema = json.get("schema").str();
            if schema != SCHEMA {
                return Err(format!("its schema is `{schema}`, expected {SCHEMA}"));
            }
            (self.title, self.files) = (json.text("title"), json.count("files"));
            return Ok(None);
        }
        if json.count("done") > 0 {
            (self.is_done, self.skipped_files) = (true, json.count("skipped_files"));
            return Ok(None);
        }
        let mut card = Card::of_json(&json, line).map_err(failed)?;
        self.sites.append(&mut card.new_sites);
        let is_site = |&index: &u64| index < self.sites.len() as u64;
        let are_sites = |all: &[u64]| all.iter().all(is_site);
        let mut is_whole = are_sites(&card.sites)
            && are_sites(&card.kept_sites)
            && are_sites(&card.new_stack_sites);
        let stacks = card.new_stacks.drain(..).zip(card.new_stack_sites.drain(..));
        self.stacks.extend(stacks);
        is_whole &= card.stacks.iter().all(|&index| index < self.stacks.len() as u64);
        if !is_whole {
            return Err(format!("line {}: it refers to a call site of no line", self.lines));
        }
        Ok(Some(card))
    }

    /// The run's name.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// The number of files that were opened. A file that is no snapshot has no card.
    pub fn files(&self) -> u64 {
        self.files
    }

    /// The number of files that are no snapshots, once the last line was read.
    pub fn skipped_files(&self) -> u64 {
        self.skipped_files
    }

    /// Whether the last line was read. An index without it is cut off.
    pub fn is_done(&self) -> bool {
        self.is_done
    }

    /// The call site with an index that a card has in its `sites`.
    pub fn site(&self, index: u64) -> &str {
        self.sites.get(index as usize).map_or("", String::as_str)
    }

    /// The hash and the call site of the stack with an index that a card has in its `stacks`.
    pub fn stack(&self, index: u64) -> (u64, &str) {
        let (hash, site) = self.stacks.get(index as usize).copied().unwrap_or_default();
        (hash, self.site(site))
    }

    /// The figures of a card that are compared across ranks.
    pub fn facts(&self, card: &Card) -> RankFacts {
        let peak = |band: BandKind| card.peaks.get(band as usize).map_or(0, |&peak| peak.max(0));
        let mut by_stack: Vec<RankStack> = Vec::with_capacity(card.stacks.len());
        for (place, &index) in card.stacks.iter().enumerate() {
            let (hash, site) = self.stack(index);
            let number = |numbers: &[u64]| numbers.get(place).copied().unwrap_or(0);
            let category = Category::ALL.get(number(&card.stack_categories) as usize);
            by_stack.push(RankStack {
                hash,
                site: site.to_owned(),
                bytes: number(&card.stack_bytes),
                category: category.copied().unwrap_or_default(),
                is_told: card.told.contains(&(place as u64)),
            });
        }
        let sites = card.sites.iter().map(|&site| self.site(site).to_owned());
        RankFacts {
            device: card.device.unwrap_or(0),
            requested_peak: peak(BandKind::Requested).cast_unsigned(),
            reserved_peak: peak(BandKind::Reserved).cast_unsigned(),
            by_stack,
            by_site: sites.zip(card.site_bytes.iter().copied()).collect(),
            by_category: pairs(&card.categories, &card.category_bytes),
            findings: pairs(&card.kinds, &card.kind_bytes),
            ..run_facts(&card.path)
        }
    }
}

fn pairs<T: Copy>(names: &[T], bytes: &[u64]) -> Vec<(T, u64)> {
    names.iter().copied().zip(bytes.iter().copied()).collect()
}

impl Card {
    /// Reads a card that names its own call sites and stacks, as [`Card::to_json`] writes it.
    ///
    /// # Errors
    /// The text is no JSON.
    pub fn parse(json: &[u8]) -> Result<Self, String> {
        Json::parse(json).and_then(|tree| Self::of_json(&tree, json))
    }

    /// What a card lacks is empty or 0.
    fn of_json(json: &Json<'_>, text: &[u8]) -> Result<Self, String> {
        let CardFindings { findings } =
            serde_json::from_slice(text).map_err(|error| error.to_string())?;
        let signed = |name: &str| -> Vec<i64> {
            json.numbers(name).into_iter().map(u64::cast_signed).collect()
        };
        let error = json.get("error").str();
        Ok(Self {
            path: json.text("path"),
            bytes: json.count("bytes"),
            rank: json.get("rank").number().map(|rank| rank as u32),
            iteration: json.get("iteration").number(),
            device: json.get("device").number().map(|device| device as u32),
            error: (!error.is_empty()).then(|| error.to_owned()),
            events: json.count("events"),
            peaks: signed("peaks"),
            peak_events: signed("peak_events"),
            estimates: json.numbers("estimates"),
            end: json.count("end").cast_signed(),
            free: json.count("free"),
            largest_free: json.count("largest_free"),
            end_free: json.count("end_free"),
            end_largest_free: json.count("end_largest_free"),
            capacity: json.get("capacity").number(),
            categories: category_list(json.get("categories")),
            category_bytes: json.numbers("category_bytes"),
            sites: json.numbers("sites"),
            site_bytes: json.numbers("site_bytes"),
            kept_event: json.count("kept_event").cast_signed(),
            kept: json.count("kept"),
            kept_sites: json.numbers("kept_sites"),
            kept_site_bytes: json.numbers("kept_site_bytes"),
            stacks: json.numbers("stacks"),
            stack_bytes: json.numbers("stack_bytes"),
            stack_categories: json.numbers("stack_categories"),
            told: json.numbers("told"),
            oom_events: json.numbers("oom_events"),
            oom_requests: json.numbers("oom_requests"),
            kinds: json.get("kinds").list().iter().map(kind).collect(),
            kind_bytes: json.numbers("kind_bytes"),
            findings,
            curve: json.numbers("curve"),
            first_step: json.count("first_step"),
            step_peaks: json.numbers("step_peaks"),
            step_floors: json.numbers("step_floors"),
            new_sites: json.texts("new_sites"),
            new_stacks: json.numbers("new_stacks"),
            new_stack_sites: json.numbers("new_stack_sites"),
        })
    }
}

/// The findings of a card's line.
#[derive(Deserialize)]
struct CardFindings {
    #[serde(default)]
    findings: Vec<CardFinding>,
}

fn category_list(names: &Json<'_>) -> Vec<Category> {
    let category = |name: &Json<'_>| Category::parse(name.str()).unwrap_or_default();
    names.list().iter().map(category).collect()
}

/// The kind with this name. One of a later version is churn, the mildest.
fn kind(name: &Json<'_>) -> FindingKind {
    FindingKind::parse(name.str()).unwrap_or(FindingKind::Churn)
}
