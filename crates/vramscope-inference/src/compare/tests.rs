use super::*;

/// A stack with one frame per line, innermost first. All frames are in `file`.
fn stack<'a>(bytes: u64, file: &'a str, lines: &[u32]) -> HeldBy<'a> {
    let frames = lines.iter().map(|&line| NamedFrame { name: "step", file, line }).collect();
    HeldBy { bytes, is_of_free: false, no_stack: None, frames }
}

/// The bytes of each match, sorted. 0 stands for no partner.
fn matched(a: &[HeldBy<'_>], b: &[HeldBy<'_>]) -> Vec<(u64, u64)> {
    let pairs = match_stacks(a, b);
    let bytes = |stacks: &[HeldBy<'_>], i: Option<usize>| i.map_or(0, |i| stacks[i].bytes);
    let mut rows: Vec<(u64, u64)> =
        pairs.iter().map(|&(i, j)| (bytes(a, i), bytes(b, j))).collect();
    rows.sort_unstable();
    // Every stack occurs in exactly one match.
    assert_eq!(rows.iter().map(|r| r.0).sum::<u64>(), a.iter().map(|s| s.bytes).sum::<u64>());
    assert_eq!(rows.iter().map(|r| r.1).sum::<u64>(), b.iter().map(|s| s.bytes).sum::<u64>());
    rows
}

const FILE: &str = "/train/model.py";

#[test]
fn package_path_is_relative_to_the_package_or_two_components() {
    for (file, expected) in [
        (
            "/opt/venv/lib/python3.11/site-packages/torch/nn/modules/linear.py",
            "torch/nn/modules/linear.py",
        ),
        ("/usr/lib/python3.12/threading.py", "threading.py"),
        ("/home/me/work/train/model.py", "train/model.py"),
    ] {
        assert_eq!(package_path(file), expected);
    }
}

#[test]
fn shifted_lines_match_in_order() {
    let a = [stack(100, FILE, &[6]), stack(200, FILE, &[9]), stack(300, FILE, &[12])];
    // Three lines were inserted above. Two of the new lines are old lines of other calls.
    let b = [stack(110, FILE, &[9]), stack(210, FILE, &[12]), stack(310, FILE, &[15])];
    assert_eq!(matched(&a, &b), [(100, 110), (200, 210), (300, 310)]);
    // One call was removed together with lines above it.
    let fewer = [stack(110, FILE, &[10]), stack(310, FILE, &[15])];
    assert_eq!(matched(&a, &fewer), [(100, 110), (200, 0), (300, 310)]);
    // All bytes doubled, so they do not help.
    let doubled = [stack(200, FILE, &[10]), stack(400, FILE, &[13]), stack(600, FILE, &[16])];
    assert_eq!(matched(&a, &doubled), [(100, 200), (200, 400), (300, 600)]);
    // A call was added in between.
    let new = [b[0].clone(), stack(70, FILE, &[10]), b[1].clone(), b[2].clone()];
    assert_eq!(matched(&a, &new), [(0, 70), (100, 110), (200, 210), (300, 310)]);
}

#[test]
fn equal_lines_match_when_no_line_has_shifted() {
    let a = [stack(100, FILE, &[6])];
    // By bytes alone, line 7 would match.
    let b = [stack(10, FILE, &[6]), stack(100, FILE, &[7])];
    assert_eq!(matched(&a, &b), [(0, 100), (100, 10)]);
    assert_eq!(matched(&b, &a), [(10, 100), (100, 0)]);
    // One call was removed, and another was added further down.
    let a = [stack(100, FILE, &[6]), stack(200, FILE, &[9])];
    let b = [stack(250, FILE, &[9]), stack(70, FILE, &[12])];
    assert_eq!(matched(&a, &b), [(0, 70), (100, 0), (200, 250)]);
}

#[test]
fn stacks_match_across_moved_folders_but_not_renamed_files() {
    let one = |file: &'static str| [stack(5, file, &[1, 2])];
    let same = [(5, 5)];
    let other = [(0, 5), (5, 0)];
    for (a, b, expected) in [
        ("/home/me/a/train/model.py", "/home/you/b/train/model.py", &same[..]),
        (
            "/opt/venv/lib/python3.11/site-packages/torch/nn/linear.py",
            "/x/site-packages/torch/nn/linear.py",
            &same,
        ),
        ("/build/torch/nn/linear.py", "/x/site-packages/torch/nn/linear.py", &same),
        ("/home/me/run-1/train.py", "/home/you/run-2/train.py", &same),
        ("C:\\work\\train\\model.py", "/home/me/train/model.py", &same),
        ("/train/model.py", "/train/other.py", &other),
    ] {
        assert_eq!(matched(&one(a), &one(b)), expected, "{a} {b}");
    }
    // A file in the same folder wins over a file with the same name only.
    let a = [stack(1, "/a/enc/block.py", &[3]), stack(2, "/a/dec/block.py", &[4])];
    let b = [stack(2, "/b/dec/block.py", &[3]), stack(7, "/b/enc/block.py", &[4])];
    assert_eq!(matched(&a, &b), [(1, 7), (2, 2)]);
}

#[test]
fn different_functions_depths_and_frees_do_not_match() {
    let a = [stack(5, FILE, &[1])];
    let mut other = stack(5, FILE, &[1]);
    other.frames[0].name = "backward";
    let free = HeldBy { is_of_free: true, ..stack(5, FILE, &[1]) };
    for b in [other, free, stack(5, FILE, &[1, 1]), stack(5, FILE, &[])] {
        assert_eq!(matched(&a, &[b]), [(0, 5), (5, 0)]);
    }
    // A list has at most one empty stack, so two empty stacks match.
    assert_eq!(matched(&[stack(5, FILE, &[])], &[stack(6, FILE, &[])]), [(5, 6)]);
    assert!(match_stacks(&[], &[]).is_empty());
}

#[test]
fn outer_lines_decide_before_inner_lines() {
    // A function is called from two lines, and both lines shift.
    let a = [stack(10, FILE, &[50, 100]), stack(20, FILE, &[50, 200])];
    let b = [stack(11, FILE, &[58, 203]), stack(21, FILE, &[58, 303])];
    assert_eq!(matched(&a, &b), [(10, 11), (20, 21)]);
}

#[test]
fn stacks_match_by_user_frames_across_pytorch_releases() {
    let torch = |name: &'static str| NamedFrame {
        name,
        file: "/x/site-packages/torch/nn/modules/module.py",
        line: 1,
    };
    let own = |line: u32| NamedFrame { name: "forward", file: FILE, line };
    let of = |bytes: u64, frames: &[NamedFrame<'static>]| HeldBy {
        bytes,
        is_of_free: false,
        no_stack: None,
        frames: frames.to_vec(),
    };
    let a = [
        of(10, &[own(3), torch("_call_impl"), own(9)]),
        of(20, &[own(4), torch("_call_impl"), own(9)]),
    ];
    let through = [torch("_call_impl"), torch("_wrapped_call_impl")];
    let b = [
        of(11, &[own(3), through[0], through[1], own(9)]),
        of(21, &[own(4), through[0], through[1], own(9)]),
    ];
    assert_eq!(matched(&a, &b), [(10, 11), (20, 21)]);
    // Stacks without user frames do not match.
    let (a, b) = ([of(1, &through[..1])], [of(1, &through)]);
    assert_eq!(matched(&a, &b), [(0, 1), (1, 0)]);
}

#[test]
fn stacks_match_where_their_reasons_are_equal() {
    let without =
        |bytes, why| HeldBy { no_stack: Some(why), frames: Vec::new(), ..stack(bytes, FILE, &[]) };
    let a = [without(5, NoStack::BeforeRecording), without(7, NoStack::Backward)];
    let b = [without(8, NoStack::Backward)];
    assert_eq!(matched(&a, &b), [(5, 0), (7, 8)]);
}
