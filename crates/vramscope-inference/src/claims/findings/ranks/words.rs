//! The words of findings about ranks. They need no tables of a file.

use super::skew::{RankSkew, SkewCause, SkewSite};
use crate::category::Category;
use crate::claims::phrase::{Sentence, site_filter};
use crate::claims::scene::Words;
use crate::claims::words::{category_noun, counted, subject};
use vramscope_units::{Bytes, grouped};

/// The words of a finding across ranks. The title names the rank.
pub fn rank_words(skew: &RankSkew) -> Words {
    let RankSkew { rank, bytes, usual, .. } = *skew;
    let excess = skew.excess();
    match &skew.cause {
        SkewCause::Batch { percent, inputs } => batch(skew, excess, *percent, *inputs),
        SkewCause::Held => held(skew, excess),
        SkewCause::Sharding => Words {
            title: Sentence::new(format_args!("Rank {rank} shards less: {} more ", excess.brief()))
                .and(category_noun(Category::Parameter, "parameters"))
                .text(" and ")
                .and(category_noun(Category::OptimizerState, "optimizer state"))
                .text(" than the others"),
            text: format!(
                "Parameters and optimizer state take {bytes} on rank {rank}, and usually {usual} \
                 on {}.",
                others(skew)
            ),
            action: format!(
                "Compare how rank {rank} shards the model: parameters that are not wrapped, a \
                 last shard that is larger, layers that are divided unevenly."
            ),
        },
        SkewCause::Reserved => Words {
            title: Sentence::new(format_args!(
                "Rank {rank} reserves {} more than the others for equal use",
                excess.brief()
            )),
            text: format!(
                "reserved_bytes peaks at {bytes} on rank {rank}, and usually at {usual} on {}. \
                 The peaks of requested_bytes hardly differ, so the allocator keeps memory that \
                 is not in use.",
                others(skew)
            ),
            action: format!(
                "Compare PYTORCH_CUDA_ALLOC_CONF of rank {rank} and of another rank, and the \
                 sizes and the order of their allocations."
            ),
        },
    }
}

fn batch(skew: &RankSkew, excess: Bytes, percent: u64, inputs: Option<(Bytes, Bytes)>) -> Words {
    let RankSkew { rank, bytes, usual, .. } = *skew;
    let ratio = format!("{}.{:02}", percent / 100, percent % 100);
    let inputs = match inputs {
        Some((own, usual)) => format!(" Its inputs are {own}, theirs {usual}."),
        None => String::new(),
    };
    Words {
        title: Sentence::new(format_args!("Larger batch or longer sequences on rank {rank}"))
            .and(at(skew))
            .text(format_args!(": {} more than the others", excess.brief())),
        text: format!(
            "{} hold {ratio} x as much on rank {rank} as usually on {}: {bytes} instead of \
             {usual}. One ratio everywhere means a larger batch or longer sequences.{inputs} That \
             adds {excess} to the peak of rank {rank}.",
            counted(skew.sites.len(), "call stack"),
            others(skew),
        ),
        action: format!(
            "Compare the batches of rank {rank} with those of another rank: number of samples and \
             sequence length. Balance them, or limit the tokens per batch."
        ),
    }
}

fn held(skew: &RankSkew, excess: Bytes) -> Words {
    let RankSkew { rank, bytes, usual, .. } = *skew;
    let site = skew.sites.first().map(|site| subject(&site.site.name)).unwrap_or_default();
    let more = match skew.sites.len() {
        0 | 1 => " holds".to_owned(),
        count => format!(" and {} hold", counted(count - 1, "more call stack")),
    };
    let elsewhere = if usual.0 == 0 {
        format!("nothing on {}", others(skew))
    } else {
        format!("usually {usual} on {}", others(skew))
    };
    Words {
        title: Sentence::new(format_args!(
            "Rank {rank} holds {} more than the others,",
            excess.brief()
        ))
        .and(at(skew)),
        text: format!("{site}{more} {bytes} on rank {rank} at its peak, and {elsewhere}."),
        action: held_action(skew, &site),
    }
}

/// ` at nets.py:37 forward`: the call site with the largest excess, and the number of others.
fn at(skew: &RankSkew) -> Sentence {
    let Some(SkewSite { site, .. }) = skew.sites.first().filter(|of| of.site.has_frame) else {
        return Sentence::default();
    };
    let mut lines: Vec<&str> = skew.sites.iter().map(|of| of.site.name.as_str()).collect();
    lines.sort_unstable();
    lines.dedup();
    let more = match lines.len() {
        0 | 1 => String::new(),
        2 => " (+1 line)".to_owned(),
        count => format!(" (+{} lines)", count - 1),
    };
    Sentence::new(" at ").filter(&site.name, site_filter(site)).text(more)
}

/// The remedy for call sites that hold more. Where the other ranks hold memory at them too, they
/// run the code as well.
fn held_action(skew: &RankSkew, site: &str) -> String {
    let rank = skew.rank;
    let is_alone = skew.usual.0 == 0;
    let is_data =
        matches!(skew.category, Some(Category::Activation | Category::Temporary | Category::Input));
    match (is_alone, is_data) {
        (true, _) => format!(
            "Look for code at {site} that only rank {rank} runs (if rank == {rank}, evaluation, \
             logging, a cache), and free what it makes or run it on the CPU."
        ),
        (false, true) => format!(
            "The other ranks run {site} too, with less. Compare rank {rank} with another rank: \
             tokens routed to its experts, samples and sequence lengths, and activation \
             checkpointing, which may be off on rank {rank}."
        ),
        (false, false) => format!(
            "The other ranks run {site} too, with less. Compare what rank {rank} keeps there: \
             sizes, the number of calls, and what holds the results."
        ),
    }
}

/// `the other 7 ranks`.
fn others(skew: &RankSkew) -> String {
    format!("the other {} ranks", grouped(skew.ranks.saturating_sub(1) as u64))
}

/// The line about a finding across ranks.
pub fn rank_why(skew: &RankSkew) -> String {
    match &skew.cause {
        SkewCause::Batch { .. } => format!(
            "one ratio at {} means a larger batch or longer sequences",
            counted(skew.sites.len(), "call stack")
        ),
        SkewCause::Held if skew.usual.0 == 0 => {
            format!("{} hold nothing there", others(skew))
        }
        SkewCause::Held => {
            format!("{} usually hold {} there", others(skew), skew.usual)
        }
        SkewCause::Sharding => format!("usual are {}", skew.usual),
        SkewCause::Reserved => "the peaks of requested memory hardly differ".to_owned(),
    }
}
