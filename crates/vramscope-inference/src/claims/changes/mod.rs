//! Changes of the program, one file each: whether a run has it, what it does to the run's memory,
//! its line and its words.
//!
//! A new change is a file with a [`Change`], its name in the list below, and a twin: a program that
//! was really changed (`scripts/twins`). Names, errors, JSON, documents and fixes come from there.
//!
//! Imports go down only: [`parse`], [`compare`] and [`features`], which read the list; the list;
//! the files of changes; [`recipe`]; [`change`].

mod accumulate;
mod attention_flash;
mod autocast;
mod autocast_cache;
mod batch;
mod change;
mod checkpoint;
mod checkpoint_half;
mod chunked_loss;
mod compare;
mod del;
mod drop_held;
mod edit_at;
mod eval_batch;
mod eval_no_grad;
mod features;
mod foreach_off;
mod freeze;
mod growth;
mod in_parts;
mod last_use;
mod offload_activations;
mod optimizer_8bit;
mod optimizer_adafactor;
mod optimizer_fused;
mod optimizer_in_backward;
mod optimizer_muon;
mod optimizer_sgd;
mod params_bf16;
mod parse;
mod prelude;
mod recipe;
mod seconds;
mod sequence;
mod shard;
mod upcast_off;
mod value;
mod words;
mod zero_grad;

pub use change::{Change, Cost, Features, Offer, Optimization};
pub use compare::Changes;
pub use edit_at::EditAt;
pub use parse::RecipeError;
pub use recipe::Recipe;
pub use value::Value;
pub use words::ProofWords;

/// All changes. Those of one cost are in the order in which they are tried after a failure: the
/// least first.
pub static CHANGES: &[&Change] = &[
    &del::DEL,
    &last_use::LAST_USE,
    &in_parts::IN_PARTS,
    &zero_grad::EARLY,
    &zero_grad::LATE,
    &eval_no_grad::EVAL_NO_GRAD,
    &foreach_off::FOREACH_OFF,
    &optimizer_fused::FUSED,
    &attention_flash::FLASH,
    &eval_batch::EVAL_BATCH,
    &upcast_off::UPCAST_OFF,
    &autocast_cache::AUTOCAST_CACHE_OFF,
    &accumulate::ACCUMULATE,
    &checkpoint_half::HALF,
    &chunked_loss::CHUNKED_LOSS,
    &checkpoint::ALL,
    &checkpoint::SITE,
    &optimizer_in_backward::IN_BACKWARD,
    &offload_activations::OFFLOAD,
    &optimizer_8bit::EIGHT_BIT,
    &optimizer_sgd::SGD,
    &optimizer_adafactor::ADAFACTOR,
    &optimizer_muon::MUON,
    &params_bf16::PARAMS_BF16,
    &autocast::BF16,
    &autocast::OFF,
    &freeze::EMBEDDING,
    &freeze::LOWER,
    &shard::SHARD,
    &batch::BATCH,
    &sequence::SEQUENCE,
];
