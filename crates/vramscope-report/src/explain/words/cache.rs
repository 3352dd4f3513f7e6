//! Messages of serving engines that size their KV cache.

use super::advice;
use crate::explain::causes::About;
use crate::explain::record::{Kind, Message};
use crate::explain::scan::Found;
use vramscope_units::grouped;

/// The headline of a message about a KV cache.
pub(super) fn headline(found: &Found) -> String {
    let cache = &found.cache;
    match (found.kind, cache.tokens, cache.needed, cache.available, cache.stored_tokens) {
        (Kind::CacheLength, Some(tokens), Some(needed), Some(available), _) => format!(
            "the KV cache of {} tokens needs {}, {} are left",
            grouped(tokens),
            About::from(needed).bytes(),
            About::from(available).bytes()
        ),
        (Kind::CacheLength, Some(tokens), _, _, Some(stored)) => format!(
            "a request may have {} tokens, the KV cache stores {}",
            grouped(tokens),
            grouped(stored)
        ),
        (Kind::CacheLength, Some(tokens), Some(needed), None, _) => format!(
            "the KV cache of {} tokens needs {}, less is left",
            grouped(tokens),
            About::from(needed).bytes()
        ),
        (Kind::CacheLength, Some(tokens), ..) => {
            format!("a request may have {} tokens, more than the KV cache stores", grouped(tokens))
        }
        (Kind::CacheStart, ..) => match (cache.free, cache.desired) {
            (Some(free), Some(desired)) => format!(
                "{} are free at the start, the engine was told to take {}",
                About::from(free).bytes(),
                About::from(desired).bytes()
            ),
            (Some(free), None) => format!(
                "{} are free at the start, the engine was told to take more",
                About::from(free).bytes()
            ),
            _ => "too little is free at the start".to_owned(),
        },
        (Kind::CacheWarmUp, ..) => match cache.requests {
            Some(requests) => {
                format!("out of memory in the warm-up with {} requests", grouped(requests))
            }
            None => "out of memory in the warm-up".to_owned(),
        },
        _ => "no memory is left for the KV cache".to_owned(),
    }
}

/// What may help, as far as the figures show it.
pub(super) fn say(said: &mut Message, found: &Found) {
    let cache = &found.cache;
    let is_sglang = found.text.contains("mem-fraction-static");
    let share = if is_sglang { "--mem-fraction-static" } else { "--gpu-memory-utilization" };
    match found.kind {
        Kind::CacheLength => {
            if let Some(tokens) = cache.estimated_tokens {
                let change = format!("--max-model-len {tokens}");
                said.fixes.push(advice(change, "the engine's own estimate of what fits"));
            } else if let Some(tokens) = cache.stored_tokens {
                said.fixes.push(advice(format!("--max-model-len {tokens}"), "fits"));
            }
            if let (Some(needed), Some(available)) = (cache.needed, cache.available) {
                let more = About::from(needed).minus(About::from(available));
                said.fixes.push(advice(
                    format!("{share} higher"),
                    format!("if the device has {} more", more.words()),
                ));
            }
            said.notes.push(
                "The KV cache gets what weights, activations and CUDA graphs leave of the memory \
                 that the engine may take."
                    .to_owned(),
            );
        }
        Kind::CacheStart => {
            if let (Some(free), Some(capacity)) = (cache.free, cache.capacity) {
                // Rounded down: what is free, of the whole.
                let least = u128::from(free.bytes.saturating_sub(free.rounding));
                let whole = u128::from(capacity.bytes.saturating_add(capacity.rounding)).max(1);
                let hundredths = least * 100 / whole;
                if (1..100).contains(&hundredths) {
                    said.fixes.push(advice(
                        format!("{share} 0.{hundredths:02} or less"),
                        "the engine starts, with a smaller KV cache",
                    ));
                }
                let used = About::from(capacity).minus(About::from(free));
                said.notes.push(format!(
                    "{} were in use before the engine loaded anything: other processes, or this \
                     one's CUDA context and libraries. nvidia-smi lists them.",
                    used.words()
                ));
                said.help.push("nvidia-smi".to_owned());
            }
        }
        Kind::CacheWarmUp => {
            said.fixes
                .push(advice("--max-num-seqs lower", "a smaller warm-up, the engine's advice"));
            said.fixes.push(advice(
                format!("{share} lower"),
                "leaves more for activations, the engine's advice",
            ));
        }
        _ => {
            said.fixes.push(advice(
                format!("{share} higher"),
                "if more of the device is free, the engine's advice",
            ));
            said.notes.push(
                "Weights, activations and CUDA graphs take all memory that the engine may take. \
                 The message does not say how much."
                    .to_owned(),
            );
        }
    }
}
