//! Words that several answers share.

use crate::protocol::{Progress, Quantity};
use vramscope_analysis::{Block, Trace, is_framework_file};
use vramscope_snapshot::{Frame, Snapshot};
use vramscope_units::{Bytes, EventIndex, Micros, grouped, signed_grouped};

/// Bytes with their exact count.
pub(crate) fn bytes(b: Bytes) -> Quantity {
    Quantity { raw: b.0.to_string(), text: b.to_string(), exact: b.exact() }
}

/// Bytes that a damaged file may put below zero.
pub fn signed_bytes(b: i64) -> Quantity {
    let magnitude = bytes(Bytes(b.unsigned_abs()));
    if b >= 0 {
        return magnitude;
    }
    Quantity {
        raw: b.to_string(),
        text: format!("-{}", magnitude.text),
        exact: format!("-{}", magnitude.exact),
    }
}

/// A change of bytes, with its sign: `+1.20 GiB`.
pub fn change_bytes(b: i64) -> Quantity {
    let plain = signed_bytes(b);
    let plus = |text: String| if b > 0 { format!("+{text}") } else { text };
    Quantity { raw: plain.raw, text: plus(plain.text), exact: plus(plain.exact) }
}

/// A change of a count, with its sign.
pub fn signed_count(n: i64) -> String {
    format!("{}{}", if n > 0 { "+" } else { "" }, signed_grouped(n))
}

/// A count of things.
pub(crate) fn count(n: u64, one: &str, many: &str) -> Quantity {
    let text = grouped(n);
    Quantity {
        raw: n.to_string(),
        exact: format!("{text} {}", if n == 1 { one } else { many }),
        text,
    }
}

/// Where a peak is.
pub(crate) fn peak_event(event: Option<u32>) -> Quantity {
    match event {
        Some(event) => {
            let text = EventIndex(event).to_string();
            Quantity { raw: event.to_string(), exact: format!("after event {text}"), text }
        }
        None => Quantity {
            raw: "-1".into(),
            text: "before the window".into(),
            exact: "before the first event of the window".into(),
        },
    }
}

pub(crate) fn progress(read: u64, total: u64) -> Progress {
    if total == 0 {
        return Progress { fraction: 0.0, text: Bytes(read).to_string(), provisional: None };
    }
    let fraction = (read as f64 / total as f64).min(1.0);
    Progress { fraction, text: format!("{} of {}", Bytes(read), Bytes(total)), provisional: None }
}

/// The last part of a path.
pub(crate) fn file_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

/// `model.py:212`, or the file alone where the line is unknown.
pub(crate) fn place(file: &str, line: u32) -> String {
    place_if_known(file, line).unwrap_or_else(|| with_line("(unknown file)", line))
}

/// The same, where the file is known.
pub(crate) fn place_if_known(file: &str, line: u32) -> Option<String> {
    let name = file_name(file);
    (!matches!(name, "" | "??")).then(|| with_line(name, line))
}

fn with_line(name: &str, line: u32) -> String {
    if line == 0 { name.to_owned() } else { format!("{name}:{line}") }
}

/// [`place_if_known`] of a frame.
pub(crate) fn place_of(snapshot: &Snapshot, frame: Frame) -> Option<String> {
    place_if_known(&snapshot.text(frame.file), frame.line)
}

/// What a call site is called.
pub(crate) fn site(snapshot: &Snapshot, frame: Option<Frame>) -> String {
    match frame {
        Some(frame) => called(&snapshot.text(frame.name), &snapshot.text(frame.file), frame.line),
        None => "no call stack".to_owned(),
    }
}

/// `forward model.py:212`; a function in C++ without its arguments, and alone where its file is
/// unknown, as it mostly is.
pub(crate) fn called(name: &str, file: &str, line: u32) -> String {
    let name = without_arguments(name);
    place_if_known(file, line).map_or_else(|| name.to_owned(), |place| format!("{name} {place}"))
}

/// All of a frame: `at::empty(c10::ArrayRef<long>) (unknown file)`.
pub(crate) fn whole(snapshot: &Snapshot, frame: Frame) -> String {
    format!("{} {}", snapshot.text(frame.name), place(&snapshot.text(frame.file), frame.line))
}

/// `at::(anonymous namespace)::run` of `at::(anonymous namespace)::run(int) const`. Names in Python
/// have no arguments.
pub(crate) fn without_arguments(name: &str) -> &str {
    let mut depth = 0;
    for (at, byte) in name.bytes().enumerate().rev() {
        match byte {
            b')' => depth += 1,
            b'(' => depth -= 1,
            // What is in a function is named behind its arguments.
            b':' if depth == 0 => break,
            _ => continue,
        }
        if depth == 0 {
            let before = &name[..at];
            // `call::operator()` and `at::(anonymous namespace)` are names.
            let is_name =
                before.is_empty() || before.ends_with(':') || before.ends_with("operator");
            return if is_name { name } else { before };
        }
    }
    name
}

pub(crate) fn is_framework(snapshot: &Snapshot, frame: Frame) -> bool {
    is_framework_file(&snapshot.text(frame.file))
}

/// `#3,702  +1.204 s`: an event, and its time from the window's start.
pub(crate) fn event(trace: &Trace, event: EventIndex) -> String {
    match &trace.clock {
        Some(clock) => format!("{event}  +{}", Micros(clock.offset(event.0) as i64)),
        None => event.to_string(),
    }
}

/// `412 events, 38.2 ms`: how long a block was live within the window.
pub(crate) fn lifetime(trace: &Trace, block: &Block) -> String {
    match life(trace, block) {
        (events, Some(time)) => format!("{events}, {time}"),
        (events, None) => events,
    }
}

/// The same where there is little room: `38.2 ms`, or `412 events` where there is no clock.
pub(crate) fn lived(trace: &Trace, block: &Block) -> Quantity {
    let (events, time) = life(trace, block);
    let raw = vramscope_analysis::lifetime(trace, block).to_string();
    let text = time.map_or_else(|| events.clone(), |time| time.to_string());
    let exact = if time.is_some() { format!("{events}, {text}") } else { events };
    Quantity { raw, text, exact }
}

fn life(trace: &Trace, block: &Block) -> (String, Option<Micros>) {
    let events = count(u64::from(block.leaves - block.enters), "event", "events").exact;
    let last = trace.slots() - 1;
    let clock = trace.clock.as_ref().filter(|_| last > 0);
    // A state begins with its event; the state before the window begins with the first.
    let time = clock.map(|clock| {
        let at = |slot: u32| clock.offset(slot.clamp(1, last) - 1) as i64;
        Micros(at(block.leaves.min(last)) - at(block.enters))
    });
    (events, time)
}

#[cfg(test)]
mod tests {
    use super::{called, without_arguments};

    #[test]
    fn a_call_site_is_a_name_and_its_place() {
        assert_eq!(called("forward", "/train/model.py", 212), "forward model.py:212");
        assert_eq!(
            called("at::_ops::mul::call(at::Tensor const&)", "??", 0),
            "at::_ops::mul::call"
        );
        assert_eq!(
            called("gather(bool, bool)", "../csrc/memory_snapshot.cpp", 0),
            "gather memory_snapshot.cpp"
        );
    }

    #[test]
    fn arguments_are_told_from_other_parentheses() {
        for (name, without) in [
            ("forward", "forward"),
            ("<lambda>", "<lambda>"),
            ("torch::(anonymous namespace)::gather()", "torch::(anonymous namespace)::gather"),
            ("at::empty<long>(c10::ArrayRef<long>, std::function<void (int)>)", "at::empty<long>"),
            ("c10::Scalar::equal<(void*)0>(int) const", "c10::Scalar::equal<(void*)0>"),
            ("run(int) const [clone .isra.0]", "run"),
            (
                "run(int)::{lambda(int)#1}::operator()(int) const",
                "run(int)::{lambda(int)#1}::operator()",
            ),
            ("std::function<void ()>::operator()", "std::function<void ()>::operator()"),
            ("at::(anonymous namespace)", "at::(anonymous namespace)"),
            ("(anonymous namespace)::run", "(anonymous namespace)::run"),
            (")", ")"),
            ("(a))", "(a))"),
            ("é(ü)", "é"),
            ("", ""),
        ] {
            assert_eq!(without_arguments(name), without, "{name}");
        }
    }
}
