//! Call sites in JSON: their names. What a file or a message has is read here, once.

use crate::text::{NO_STACK, no_stack};
use serde::{Deserialize, Deserializer, Serializer};
use vramscope_inference::CallSite;
use vramscope_trace::NoStack;

pub(super) fn serialize<S: Serializer>(sites: &[CallSite], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(sites.iter().map(|site| &site.name))
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<CallSite>, D::Error> {
    let names: Vec<String> = Vec::deserialize(from)?;
    Ok(names.into_iter().map(named).collect())
}

/// The call site with a name. The name of memory without a call stack is the reason.
fn named(name: String) -> CallSite {
    let reasons = [NoStack::BeforeRecording, NoStack::Backward, NoStack::NotRecorded].map(no_stack);
    CallSite { has_frame: !name.is_empty() && name != NO_STACK && !reasons.contains(&&*name), name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_for_no_call_stack_is_no_frame() {
        assert!(named("my file.py:3 f".to_owned()).has_frame);
        for reason in ["", NO_STACK, "(before recording)", "(backward, no Python frames)"] {
            assert!(!named(reason.to_owned()).has_frame, "{reason}");
        }
    }
}
