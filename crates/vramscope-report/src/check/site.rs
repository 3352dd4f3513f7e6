//! Figures of the call stacks that contain a text, such as `site:reduce_scatter blocks`.

use crate::side::{Side, SideStack};

/// The live blocks or bytes of all call stacks that contain a text, at the peak of the band.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SiteMetric {
    text: String,
    is_bytes: bool,
}

const PREFIX: &str = "site:";

impl SiteMetric {
    /// Whether an expression is about a site.
    pub(super) fn is_one(expression: &str) -> bool {
        expression.trim_start().starts_with(PREFIX)
    }

    /// Parses `site:TEXT blocks` or `site:TEXT bytes`, or `site:TEXT` before a limit in bytes. The
    /// error is a message for the user.
    pub(super) fn parse(name: &str, is_limit_in_bytes: bool) -> Result<Self, String> {
        let name = name.trim();
        let rest = name.strip_prefix(PREFIX).unwrap_or_default();
        let (text, is_bytes) = match rest.rsplit_once(char::is_whitespace) {
            Some((text, "bytes")) => (text.trim(), true),
            Some((text, "blocks")) => (text.trim(), false),
            _ if is_limit_in_bytes => (rest.trim(), true),
            _ => return Err(Self::expected(name)),
        };
        if text.is_empty() {
            return Err(Self::expected(name));
        }
        Ok(Self { text: text.to_owned(), is_bytes })
    }

    fn expected(name: &str) -> String {
        format!(
            "{name:?} needs a text, then blocks or bytes. Example: 'site:reduce_scatter blocks>2'"
        )
    }

    pub(super) fn is_bytes(&self) -> bool {
        self.is_bytes
    }

    /// The figure in words: `blocks of call stacks with "reduce_scatter" at the peak`.
    pub(super) fn name(&self) -> String {
        let unit = if self.is_bytes { "bytes" } else { "blocks" };
        format!("{unit} of call stacks with \"{}\" at the peak", self.text)
    }

    /// The number of call stacks of a side that contain the text.
    pub(super) fn matching(&self, side: &Side) -> usize {
        side.stacks.iter().filter(|stack| self.is_in(side, stack)).count()
    }

    /// The figure in both sides.
    pub(super) fn of(&self, a: &Side, b: &Side) -> [i64; 2] {
        [self.held(a), self.held(b)]
    }

    fn held(&self, side: &Side) -> i64 {
        let stacks = side.stacks.iter().filter(|stack| self.is_in(side, stack));
        let figure = |s: &SideStack| if self.is_bytes { s.bytes } else { s.blocks.into() };
        let sum = stacks.map(figure).fold(0u64, u64::saturating_add);
        i64::try_from(sum).unwrap_or(i64::MAX)
    }

    /// Whether the call site contains the text, or a frame as `file:line function`.
    fn is_in(&self, side: &Side, stack: &SideStack) -> bool {
        let has = |text: &str| text.contains(&self.text);
        let mut frames = side.frames_of(stack).into_iter();
        has(&stack.site) || frames.any(|f| has(&format!("{}:{} {}", f.file, f.line, f.name)))
    }
}
