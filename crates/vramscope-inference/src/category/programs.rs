//! Hand-written traces of programs with copies of weights, kept outputs and optimizers of their
//! own.

use super::tests::{
    BACKWARD, CALL, FORWARD, INIT, MAIN, STATE, STEP, Script, Stack, USER, ZERO, category,
};
use super::*;

const MIB: u64 = 1 << 20;
/// The line of the second moments.
const STATE_2: Stack =
    &["_init_group@/lib/torch/optim/adamw.py#2", "step@/lib/torch/optim/adamw.py", MAIN];
/// The sizes of the parameters of a model: three layers and a head.
const SIZES: [u64; 10] = [4 * MIB, MIB, 2048, 4 * MIB, MIB, 2048, 4 * MIB, MIB, 2048, 3 * MIB];

fn guess(script: &Script, addr: u64) -> Guess {
    script.all(&Rules::default()).into_iter().find(|g| g.0 == addr).expect("a block").1
}

/// A block for each parameter.
fn each(script: &mut Script, stack: Stack) -> Vec<u64> {
    SIZES.iter().map(|size| script.alloc(*size, stack)).collect()
}

/// A batch and a forward pass. Returns the activations.
fn forward(script: &mut Script, batch: &mut Option<u64>) -> Vec<u64> {
    const BATCH: Stack = &["batch@/my/train.py#30", MAIN];
    let new = script.alloc(8192, BATCH);
    if let Some(old) = batch.replace(new) {
        script.free(old, BATCH);
    }
    (0..3).map(|_| script.alloc(6 * MIB, FORWARD)).collect()
}

/// A backward pass. Returns the gradients.
fn backward(script: &mut Script, activations: Vec<u64>) -> Vec<u64> {
    let mut gradients = Vec::new();
    for addr in activations {
        let inner = script.alloc(6 * MIB, BACKWARD);
        script.free(addr, BACKWARD);
        script.free(inner, BACKWARD);
    }
    gradients.extend(SIZES.iter().map(|size| script.alloc(*size, BACKWARD)));
    gradients
}

fn zero(script: &mut Script, gradients: Vec<u64>) {
    for addr in gradients {
        script.free(addr, ZERO);
    }
}

/// Three steps of a program that updates its weights in place, without an allocation.
fn train(script: &mut Script) {
    let mut batch = None;
    for _ in 0..3 {
        let activations = forward(script, &mut batch);
        let gradients = backward(script, activations);
        zero(script, gradients);
    }
}

#[track_caller]
fn all_are(script: &Script, blocks: &[u64], expected: Guess) {
    let guesses = script.all(&Rules::default());
    for addr in blocks {
        let guess = guesses.iter().find(|guess| guess.0 == *addr).expect("a block").1;
        assert_eq!(guess.category, expected.category, "{addr:#x}: {guess:?}");
        assert_eq!(guess.candidates, expected.candidates, "{addr:#x}: {guess:?}");
    }
}

#[track_caller]
fn are(script: &Script, blocks: &[u64], expected: Category) {
    all_are(script, blocks, Guess::new(expected));
}

const MOMENTS: Stack = &["<listcomp>@/my/train.py#12", MAIN];

#[test]
fn two_copies_of_each_parameter_before_the_first_pass_are_moments() {
    let mut script = Script::default();
    let parameters = each(&mut script, INIT);
    let first = each(&mut script, MOMENTS);
    let second = each(&mut script, MOMENTS);
    train(&mut script);
    are(&script, &parameters, Category::Parameter);
    are(&script, &[first, second].concat(), Category::OptimizerState);
}

#[test]
fn one_copy_before_the_first_pass_is_momentum_or_a_frozen_model() {
    let mut script = Script::default();
    each(&mut script, INIT);
    let copy = each(&mut script, MOMENTS);
    train(&mut script);
    let either = Guess::either(Category::OptimizerState, Category::Parameter);
    all_are(&script, &copy, either);
}

#[test]
fn a_copy_beside_known_state_is_a_model() {
    let mut script = Script::default();
    each(&mut script, INIT);
    let average = each(&mut script, MOMENTS);
    let mut batch = None;
    let mut states = Vec::new();
    for step in 0..3 {
        let activations = forward(&mut script, &mut batch);
        let gradients = backward(&mut script, activations);
        if step == 0 {
            states = each(&mut script, STATE);
            states.extend(each(&mut script, STATE_2));
        }
        zero(&mut script, gradients);
    }
    are(&script, &average, Category::Parameter);
    are(&script, &states, Category::OptimizerState);
}

#[test]
fn copies_for_a_checkpoint_are_what_they_copy() {
    const SAVE: Stack = &["<dictcomp>@/my/train.py#51", MAIN];
    const SAVE_STATE: Stack = &["<dictcomp>@/my/train.py#52", MAIN];
    let mut script = Script::default();
    each(&mut script, INIT);
    let mut batch = None;
    let (mut weights, mut moments) = (Vec::new(), Vec::new());
    for step in 0..3 {
        let activations = forward(&mut script, &mut batch);
        let gradients = backward(&mut script, activations);
        if step == 0 {
            each(&mut script, STATE);
            each(&mut script, STATE_2);
        }
        zero(&mut script, gradients);
        if step == 1 {
            weights = each(&mut script, SAVE);
            moments = each(&mut script, SAVE_STATE);
            moments.extend(each(&mut script, SAVE_STATE));
            for addr in weights.iter().chain(&moments) {
                script.free(*addr, USER);
            }
        }
    }
    are(&script, &weights, Category::Parameter);
    are(&script, &moments, Category::OptimizerState);
}

#[test]
fn weights_that_a_step_replaces_are_parameters() {
    const MEAN: Stack = &["__init__@/my/own_optimizer.py#20", MAIN];
    const SET_MEAN: Stack = &["step@/my/own_optimizer.py#40", MAIN];
    const SET_DATA: Stack = &["step@/my/own_optimizer.py#52", MAIN];
    let mut script = Script::default();
    let mut weights = each(&mut script, INIT);
    let mut means = each(&mut script, MEAN);
    let (mut all_weights, mut all_means) = (weights.clone(), means.clone());
    let mut batch = None;
    for _ in 0..3 {
        let activations = forward(&mut script, &mut batch);
        let gradients = backward(&mut script, activations);
        for (i, size) in SIZES.into_iter().enumerate() {
            for (stack, old) in [(SET_MEAN, &mut means[i]), (SET_DATA, &mut weights[i])] {
                let temporary = script.alloc(size, stack);
                let new = script.alloc(size, stack);
                script.free(temporary, stack);
                script.free(std::mem::replace(old, new), stack);
            }
        }
        all_weights.extend(&weights);
        all_means.extend(&means);
        zero(&mut script, gradients);
    }
    are(&script, &all_weights, Category::Parameter);
    are(&script, &all_means, Category::OptimizerState);
}

#[test]
fn a_reference_model_from_before_the_window_is_no_state() {
    let mut script = Script::default();
    // Two models, then two moments of each parameter.
    for _ in 0..2 {
        for size in SIZES {
            script.preexisting(size);
        }
    }
    for size in SIZES {
        script.preexisting(size);
        script.preexisting(size);
    }
    train(&mut script);
    let guesses = script.guesses(&Rules::default());
    let count = |category| guesses.iter().filter(|guess| guess.1 == category).count();
    assert_eq!(count(Category::Parameter), 2 * SIZES.len());
    assert_eq!(count(Category::OptimizerState), 2 * SIZES.len());
}

#[test]
fn what_a_graph_releases_is_an_activation() {
    const RELEASE: Stack =
        &["torch::autograd::generated::MulBackward0::release_variables()@libtorch_cpu.so", MAIN];
    let mut script = Script::default();
    let held = script.preexisting(MIB);
    let other = script.preexisting(MIB);
    script.free(held, RELEASE);
    script.free(other, USER);
    for _ in 0..3 {
        let temporary = script.alloc(700, FORWARD);
        script.free(temporary, FORWARD);
    }
    assert_eq!(guess(&script, held).category, Category::Activation);
    assert_ne!(guess(&script, other).category, Category::Activation);
}

#[test]
fn gradients_that_a_model_moves_are_no_parameters() {
    const PARAMETER: Stack = &["_apply@/lib/torch/nn/modules/module.py#957", MAIN];
    const GRADIENT: Stack = &["_apply@/lib/torch/nn/modules/module.py#998", MAIN];
    const BUFFER: Stack = &["_apply@/lib/torch/nn/modules/module.py#1022", MAIN];
    for has_buffer in [false, true] {
        let mut script = Script::default();
        let moved: Vec<[u64; 2]> = SIZES
            .iter()
            .map(|size| [script.alloc(*size, PARAMETER), script.alloc(*size, GRADIENT)])
            .collect();
        let buffer = has_buffer.then(|| script.alloc(512, BUFFER));
        for [parameter, gradient] in moved {
            assert_eq!(guess(&script, parameter).category, Category::Parameter);
            assert_eq!(guess(&script, gradient).category, Category::Gradient);
        }
        if let Some(buffer) = buffer {
            assert_eq!(guess(&script, buffer).category, Category::Buffer);
        }
    }
}

#[test]
fn logits_that_stay_until_the_next_step_are_no_input() {
    const KEEP: Stack = &["main@/my/train.py#60", MAIN];
    let mut script = Script::default();
    let (mut batch, mut last, mut kept) = (None, None, Vec::new());
    for _ in 0..4 {
        let activations = forward(&mut script, &mut batch);
        let logits = script.alloc(2 * MIB, FORWARD);
        let gradients = backward(&mut script, activations);
        zero(&mut script, gradients);
        let copy = script.alloc(2 * MIB, KEEP);
        kept.push(copy);
        script.free(logits, KEEP);
        if let Some(last) = last.replace(copy) {
            script.free(last, KEEP);
        }
    }
    are(&script, &kept, Category::Activation);
    assert_eq!(guess(&script, batch.expect("a batch")).category, Category::Input);
}

#[test]
fn logits_of_a_teacher_in_another_precision_are_no_input() {
    const CAST: Stack = &["main@/my/train.py#47", MAIN];
    let mut script = Script::default();
    let (mut batch, mut casts) = (None, Vec::new());
    for _ in 0..3 {
        for addr in forward(&mut script, &mut batch) {
            script.free(addr, FORWARD);
        }
        let logits = script.alloc(MIB, FORWARD);
        let cast = script.alloc(2 * MIB, CAST);
        script.free(logits, CAST);
        casts.push(cast);
        let activations = (0..3).map(|_| script.alloc(6 * MIB, FORWARD)).collect();
        let gradients = backward(&mut script, activations);
        zero(&mut script, gradients);
        script.free(cast, CAST);
    }
    are(&script, &casts, Category::Activation);
}

#[test]
fn batches_of_a_thread_are_inputs_however_long_they_wait() {
    const PRODUCE: Stack = &[
        "produce@/my/train.py#20",
        "run@/lib/python3.11/threading.py",
        "_bootstrap@/lib/python3.11/threading.py",
    ];
    let mut script = Script::default();
    let (mut batch, mut queue) = (None, Vec::new());
    for _ in 0..6 {
        queue.extend((0..3).map(|_| script.alloc(MIB, PRODUCE)));
        let activations = forward(&mut script, &mut batch);
        let gradients = backward(&mut script, activations);
        zero(&mut script, gradients);
        script.free(queue.remove(0), USER);
    }
    are(&script, &queue, Category::Input);
}

#[test]
fn weights_that_autocast_casts_do_not_grow_with_tokens() {
    const CAST: Stack = &[
        "at::autocast::cached_cast(c10::ScalarType, at::Tensor const&)@libtorch_cpu.so",
        "forward@/lib/torch/nn/modules/linear.py#134",
        CALL,
        MAIN,
    ];
    let mut script = Script::default();
    let weights = [8 * MIB, 8 * MIB].map(|size| script.alloc(size, INIT));
    let mut copies = Vec::new();
    let mut casts = Vec::new();
    for _ in 0..weights.len() {
        copies.push(script.alloc(4 * MIB, CAST));
        // An argument that is no weight.
        casts.push(script.alloc(5 * MIB, CAST));
        script.alloc(3 * MIB, FORWARD);
        (0..20).for_each(|_| {
            let temporary = script.alloc(700, FORWARD);
            script.free(temporary, FORWARD);
        });
    }
    are(&script, &copies, Category::Parameter);
    are(&script, &casts, Category::Activation);
}

#[test]
fn a_cache_may_grow_by_any_number_of_tokens() {
    const CAT: Stack = &["forward@/my/model.py#22", CALL, MAIN];
    let mut script = Script::default();
    let mut live: Vec<u64> = Vec::new();
    for tokens in [16, 20, 21, 24, 22, 23, 27, 28] {
        for layer in 0..4 {
            let grown = script.alloc(tokens * 64 * 1024, CAT);
            if live.len() == 4 {
                script.free(std::mem::replace(&mut live[layer], grown), CAT);
            } else {
                live.push(grown);
            }
            let temporary = script.alloc(700, FORWARD);
            script.free(temporary, FORWARD);
        }
    }
    are(&script, &live, Category::Cache);
}

#[test]
fn a_workspace_of_the_first_backward_pass_is_no_gradient() {
    let mut script = Script::default();
    each(&mut script, INIT);
    let mut batch = None;
    let activations = forward(&mut script, &mut batch);
    let workspace = script.alloc(32 * MIB, BACKWARD);
    let gradients = backward(&mut script, activations);
    let root = script.alloc(MIB, STEP);
    script.free(root, STEP);
    zero(&mut script, gradients);
    let guesses = script.guesses(&Rules::default());
    assert_eq!(category(&guesses, workspace), Category::Workspace);
}
