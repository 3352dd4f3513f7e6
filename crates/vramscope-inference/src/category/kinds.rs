//! One hand-written trace for each kind of program that needs a rule of its own.

use super::tests::{
    BACKWARD, CALL, FORWARD, INIT, MAIN, STATE, STEP, Script, Stack, USER, ZERO, category, step,
};
use super::*;

const MIB: u64 = 1 << 20;
const KEEP: Stack = &["keep@/my/train.py", MAIN];
const BATCH: Stack = &["batch@/my/train.py", MAIN];

fn guess(script: &Script, addr: u64) -> Guess {
    script.all(&Rules::default()).into_iter().find(|g| g.0 == addr).expect("a block").1
}

/// A forward pass that keeps nothing.
fn infer(script: &mut Script) {
    let temporary = script.alloc(700, FORWARD);
    script.free(temporary, FORWARD);
}

/// A training step with a batch that the next batch replaces.
fn step_with_batch(script: &mut Script, last: &mut Option<u64>) -> u64 {
    let batch = script.alloc(4 * MIB, BATCH);
    if let Some(last) = last.replace(batch) {
        script.free(last, BATCH);
    }
    let activation = script.alloc(800, FORWARD);
    let inner = script.alloc(800, BACKWARD);
    script.free(activation, BACKWARD);
    let gradient = script.alloc(1000, BACKWARD);
    script.free(inner, BACKWARD);
    let root = script.alloc(1000, STEP);
    script.free(root, STEP);
    script.free(gradient, ZERO);
    batch
}

#[test]
fn kept_outputs_are_no_input_and_keep_one_category() {
    let mut script = Script::default();
    let (mut last, mut kept, mut batches) = (None, Vec::new(), Vec::new());
    for _ in 0..6 {
        batches.push(step_with_batch(&mut script, &mut last));
        kept.push(script.alloc(MIB, KEEP));
    }
    let guesses = script.guesses(&Rules::default());
    assert!(kept.iter().all(|&a| category(&guesses, a) == Category::Activation), "{guesses:?}");
    assert!(batches[1..].iter().all(|&a| category(&guesses, a) == Category::Input), "{guesses:?}");
}

#[test]
fn rollouts_without_a_batch_beside_have_two_candidates() {
    let mut script = Script::default();
    let kept: Vec<u64> = (0..6)
        .map(|_| {
            let observed = script.alloc(MIB, KEEP);
            infer(&mut script);
            observed
        })
        .collect();
    for addr in kept {
        let both = Guess::either(Category::Activation, Category::Input);
        assert_eq!(guess(&script, addr), both);
    }
}

#[test]
fn keys_and_values_that_grow_with_each_token_are_a_cache() {
    const CAT: Stack = &["generate@/my/serve.py", MAIN];
    let mut script = Script::default();
    let mut live: Vec<u64> = Vec::new();
    for token in 1..=8 {
        infer(&mut script);
        // Work between two tokens.
        for _ in 0..10 {
            infer(&mut script);
        }
        for layer in 0..4 {
            let grown = script.alloc(token * 64 * 1024, CAT);
            if live.len() == 4 {
                script.free(std::mem::replace(&mut live[layer], grown), CAT);
            } else {
                live.push(grown);
            }
        }
    }
    assert!(live.iter().all(|&addr| guess(&script, addr).category == Category::Cache));
}

#[test]
fn a_pool_of_blocks_before_inference_is_a_cache() {
    const POOL: Stack = &["<listcomp>@/my/serve.py", MAIN];
    let mut script = Script::default();
    let pool = [script.alloc(32 * MIB, POOL), script.alloc(32 * MIB, POOL)];
    (0..4).for_each(|_| infer(&mut script));
    assert!(pool.iter().all(|&addr| guess(&script, addr).category == Category::Cache));
}

#[test]
fn a_library_cache_that_backward_needs_is_an_activation() {
    const UPDATE: Stack = &["update@/lib/transformers/cache_utils.py", CALL, MAIN];
    let mut script = Script::default();
    let served = script.alloc(MIB, UPDATE);
    (0..10).for_each(|_| infer(&mut script));
    script.free(served, USER);
    let saved = script.alloc(MIB, UPDATE);
    step(&mut script, 1000);
    script.free(saved, BACKWARD);
    assert_eq!(guess(&script, served).category, Category::Cache);
    assert_eq!(guess(&script, saved).category, Category::Activation);
}

#[test]
fn state_that_an_optimizer_replaces_is_state() {
    let mut script = Script::default();
    let old = [script.preexisting(1000), script.preexisting(1000)];
    let [.., gradient] = step(&mut script, 1000);
    let new = [script.alloc(1000, STEP), script.alloc(1000, STEP)];
    for addr in old {
        script.free(addr, STEP);
    }
    script.free(gradient, ZERO);
    step(&mut script, 1000);
    for addr in old.into_iter().chain(new) {
        assert_eq!(guess(&script, addr).category, Category::OptimizerState, "{addr:#x}");
    }
    assert_eq!(guess(&script, gradient).category, Category::Gradient);
}

#[test]
fn an_even_number_of_weights_without_an_optimizer_is_one_copy() {
    let mut script = Script::default();
    let weights: Vec<u64> = [(MIB, 8), (2 * MIB, 4), (512, 5)]
        .into_iter()
        .flat_map(|(size, count)| vec![size; count])
        .map(|size| script.preexisting(size))
        .collect();
    // The window ends in a forward pass that keeps its blocks.
    (0..4).for_each(|_| {
        script.alloc(3000, FORWARD);
    });
    assert!(weights.iter().all(|&addr| guess(&script, addr).category == Category::Parameter));
}

#[test]
fn weights_without_gradients_are_frozen_parameters() {
    let mut script = Script::default();
    let frozen = [MIB, 2 * MIB, 3 * MIB].map(|size| script.preexisting(size));
    let adapter = script.preexisting(1000);
    for _ in 0..2 {
        let [input, .., gradient] = step(&mut script, 1000);
        let root = script.alloc(1000, STEP);
        script.free(root, STEP);
        script.free(gradient, ZERO);
        script.free(input, USER);
    }
    for addr in frozen.into_iter().chain([adapter]) {
        assert_eq!(guess(&script, addr).category, Category::Parameter, "{addr:#x}");
    }
}

#[test]
fn a_workspace_needs_more_than_its_size() {
    let mut script = Script::default();
    let norm = &["layer_norm@/lib/torch/nn/functional.py", CALL, MAIN];
    script.alloc(900, FORWARD);
    let workspace = script.alloc(32 * MIB, FORWARD);
    let activations = [script.alloc(32 * MIB, norm), script.alloc(32 * MIB, norm)];
    script.alloc(700, BACKWARD);
    assert_eq!(guess(&script, workspace).category, Category::Workspace);
    for addr in activations {
        assert_eq!(guess(&script, addr).category, Category::Activation);
    }
}

#[test]
fn a_buffer_for_benchmarks_is_a_workspace() {
    const BENCH: Stack = &[
        "get_empty_cache_for_benchmark@/lib/triton/backends/nvidia/driver.py",
        "do_bench@/lib/triton/testing.py",
        CALL,
        MAIN,
    ];
    let mut script = Script::default();
    let cleared = script.alloc(256 * MIB, BENCH);
    step(&mut script, 1000);
    assert_eq!(guess(&script, cleared).category, Category::Workspace);
}

#[test]
fn copies_of_gradients_are_gradients() {
    let mut script = Script::default();
    for _ in 0..2 {
        let [input, .., half] = step(&mut script, 1000);
        let whole = script.alloc(2000, USER);
        script.free(half, USER);
        let other = script.alloc(5000, USER);
        let root = script.alloc(2000, STEP);
        script.free(root, STEP);
        let state = script.alloc(2000, STATE);
        assert_eq!(guess(&script, whole).category, Category::Gradient);
        assert_ne!(guess(&script, other).category, Category::Gradient);
        assert_eq!(guess(&script, state).category, Category::OptimizerState);
        for addr in [whole, other, input] {
            script.free(addr, USER);
        }
    }
}

#[test]
fn paths_of_windows_match_the_rules() {
    const UPDATE: Stack = &[r"update@C:\\lib\\transformers\\cache_utils.py", MAIN];
    let mut script = Script::default();
    let cache = script.alloc(MIB, UPDATE);
    (0..10).for_each(|_| infer(&mut script));
    assert_eq!(guess(&script, cache).category, Category::Cache);
}

#[test]
fn a_type_in_the_arguments_of_a_function_is_not_the_function() {
    const COPY: Stack = &[
        "at::native::(anonymous namespace)::cublasCommonArgs::cublasCommonArgs(at::Tensor const&, \
         std::optional<at::cuda::blas::ScalingType> const&)@libtorch_cuda.so",
        "forward@/lib/torch/nn/modules/linear.py",
        CALL,
        MAIN,
    ];
    const GEMM: Stack = &[
        "void at::cuda::blas::gemm<float>(char, long, at::opmath_type<float>)@libtorch_cuda.so",
        "forward@/lib/torch/nn/modules/linear.py",
        CALL,
        MAIN,
    ];
    let mut script = Script::default();
    let copy = script.alloc(3 * MIB, COPY);
    let scratch = script.alloc(5 * MIB, GEMM);
    let gradient = script.alloc(1000, BACKWARD);
    script.free(copy, BACKWARD);
    script.free(gradient, ZERO);
    step(&mut script, 1000);
    let guesses = script.guesses(&Rules::default());
    assert_eq!(category(&guesses, scratch), Category::Workspace);
    assert_eq!(category(&guesses, copy), Category::Activation);
    // A user's rule can name a type among the arguments.
    let rules = Rules::parse("buffer * blas::ScalingType").expect("a rule");
    assert_eq!(category(&script.guesses(&rules), copy), Category::Buffer);
}

#[test]
fn an_optimizer_that_is_cut_off_in_its_first_step_holds_temporaries() {
    let mut script = Script::default();
    let sizes = [MIB, 2 * MIB];
    for size in sizes {
        script.alloc(size, INIT);
    }
    step(&mut script, 1000);
    for size in sizes {
        script.alloc(size, BACKWARD);
    }
    let states = sizes.map(|size| script.alloc(size, STATE));
    let roots = sizes.map(|size| script.alloc(size, STEP));
    for (addr, root) in states.into_iter().zip(roots) {
        assert_eq!(guess(&script, addr).category, Category::OptimizerState);
        assert_eq!(guess(&script, root).category, Category::Temporary);
    }
}

#[test]
fn logits_of_a_function_with_cache_in_its_name_are_no_cache() {
    const LOGITS: Stack =
        &["forward@/lib/torch/nn/modules/linear.py", CALL, "run_with_cache@/my/model.py", MAIN];
    const LAYER: Stack = &["update_cache@/my/model.py", CALL, MAIN];
    let mut script = Script::default();
    let (mut last, mut logits) = (None, Vec::new());
    let layers: Vec<u64> = (0..4).map(|_| script.alloc(MIB, LAYER)).collect();
    for _ in 0..4 {
        let batch = script.alloc(300, USER);
        (0..20).for_each(|_| infer(&mut script));
        script.free(batch, USER);
        let new = script.alloc(8 * MIB, LOGITS);
        logits.push(new);
        if let Some(last) = last.replace(new) {
            script.free(last, USER);
        }
    }
    assert!(logits.iter().all(|&addr| guess(&script, addr).category == Category::Activation));
    assert!(layers.iter().all(|&addr| guess(&script, addr).category == Category::Cache));
}

#[test]
fn what_a_line_stores_from_before_the_first_pass_on_is_input() {
    let mut script = Script::default();
    let (mut last, mut stored) = (None, Vec::new());
    for _ in 0..6 {
        stored.extend((0..3).map(|_| script.alloc(MIB, KEEP)));
        step_with_batch(&mut script, &mut last);
    }
    assert!(stored.iter().all(|&addr| guess(&script, addr).category == Category::Input));
}

#[test]
fn a_tensor_beside_parameters_that_move_later_is_a_buffer() {
    const OWN: Stack = &["__init__@/my/model.py", MAIN];
    const MOVED: Stack = &["_apply@/lib/torch/nn/modules/module.py#957", MAIN];
    let mut script = Script::default();
    let store = script.alloc(64 * MIB, OWN);
    let weight = script.alloc(MIB, MOVED);
    (0..4).for_each(|_| infer(&mut script));
    assert_eq!(guess(&script, store).category, Category::Buffer);
    assert_eq!(guess(&script, weight).category, Category::Parameter);
}

#[test]
fn a_large_tensor_beside_modules_is_data() {
    let mut script = Script::default();
    script.alloc(MIB, INIT);
    let data = script.alloc(512 * MIB, USER);
    script.alloc(MIB, FORWARD);
    assert_eq!(guess(&script, data).category, Category::Input);
}

#[test]
fn what_a_pass_frees_itself_without_a_backward_pass_is_a_temporary() {
    let mut script = Script::default();
    let kept = script.alloc(MIB, FORWARD);
    let inner = script.alloc(2 * MIB, FORWARD);
    (0..20).for_each(|_| infer(&mut script));
    script.free(inner, FORWARD);
    script.alloc(300, USER);
    (0..20).for_each(|_| infer(&mut script));
    script.free(kept, USER);
    assert_eq!(guess(&script, inner).category, Category::Temporary);
    assert_eq!(guess(&script, kept).category, Category::Activation);
}
