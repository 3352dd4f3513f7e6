//! Makes answers small: a model reads every byte of them.

use serde_json::{Map, Value, json};

/// The most frames of a call stack.
const FRAMES: usize = 6;

/// A list of numbers that is no picture has at most this many.
const MAX_NUMBERS: usize = 8;

/// Rows that an array keeps at least.
const LEAST_ROWS: usize = 2;

/// The answer with call stacks in words. If it is larger than `most` bytes, its longest lists lose
/// their last rows, and `left_out` beside each list counts them.
pub(super) fn fit(mut answer: Value, most: Option<usize>) -> Value {
    shorten_stacks(&mut answer);
    drop_pictures(&mut answer);
    let Some(most) = most else { return answer };
    let mut size = length(&answer);
    while size > most {
        let Some(cut) = longest(&mut answer).and_then(|(map, key)| halve(map, &key)) else { break };
        size = size.saturating_sub(cut);
    }
    answer
}

/// Drops curves, which are made to be drawn, and long lists of zeros.
fn drop_pictures(value: &mut Value) {
    let is_picture = |key: &str, value: &Value| {
        let Value::Array(items) = value else { return false };
        let is_number = |item: &Value| item.is_number();
        items.len() > MAX_NUMBERS
            && (key == "curve" && items.iter().all(is_number) || items.iter().all(|item| item == 0))
    };
    match value {
        Value::Array(items) => items.iter_mut().for_each(drop_pictures),
        Value::Object(map) => {
            map.retain(|key, value| !is_picture(key, value));
            map.values_mut().for_each(drop_pictures);
        }
        _ => {}
    }
}

/// The bytes of a value.
fn length(value: &Value) -> usize {
    value.to_string().len()
}

/// Writes frames as `gpt.py:19 forward`, innermost first: those of Python code outside of packages,
/// or else those of Python code, or else of any.
fn shorten_stacks(value: &mut Value) {
    match value {
        Value::Array(items) => {
            let frames: Option<Vec<Frame>> = items.iter().map(Frame::of).collect();
            match frames.filter(|frames| !frames.is_empty()) {
                Some(frames) => *items = words(&frames),
                None => items.iter_mut().for_each(shorten_stacks),
            }
        }
        Value::Object(map) => map.values_mut().for_each(shorten_stacks),
        _ => {}
    }
}

/// A frame of a call stack.
struct Frame<'a> {
    name: &'a str,
    file: &'a str,
    line: u64,
}

impl<'a> Frame<'a> {
    /// A frame; `None` for any other value.
    fn of(value: &'a Value) -> Option<Self> {
        let map = value.as_object().filter(|map| map.len() == 3)?;
        let text = |key: &str| map.get(key)?.as_str();
        Some(Self { name: text("name")?, file: text("file")?, line: map.get("line")?.as_u64()? })
    }

    fn is_python(&self) -> bool {
        let extension = std::path::Path::new(self.file).extension();
        extension.is_some_and(|extension| extension == "py") || self.file.starts_with('<')
    }

    fn is_package(&self) -> bool {
        ["site-packages", "dist-packages", "/lib/python"]
            .iter()
            .any(|part| self.file.contains(part))
    }
}

fn words(frames: &[Frame<'_>]) -> Vec<Value> {
    let of =
        |wanted: &dyn Fn(&&Frame<'_>) -> bool| frames.iter().filter(wanted).collect::<Vec<_>>();
    let mut kept = of(&|frame| frame.is_python() && !frame.is_package());
    if kept.is_empty() {
        kept = of(&|frame| frame.is_python());
    }
    if kept.is_empty() {
        kept = of(&|_| true);
    }
    let word = |frame: &&Frame<'_>| {
        let file = frame.file.rsplit(['/', '\\']).next().unwrap_or(frame.file);
        json!(format!("{file}:{} {}", frame.line, frame.name))
    };
    let more = kept.len().saturating_sub(FRAMES);
    let mut words: Vec<Value> = kept.iter().take(FRAMES).map(word).collect();
    if more > 0 {
        words.push(json!(format!("{more} more")));
    }
    words
}

/// The object and the key of the list that takes most bytes and may lose rows.
fn longest(value: &mut Value) -> Option<(&mut Map<String, Value>, String)> {
    let mut best: (usize, Vec<Step>) = (0, Vec::new());
    search(value, &mut Vec::new(), &mut best);
    let (Step::Key(last), path) = best.1.split_last()? else { return None };
    let mut at = value;
    for step in path {
        at = match step {
            Step::Key(key) => at.get_mut(key)?,
            Step::Item(index) => at.get_mut(index)?,
        };
    }
    Some((at.as_object_mut()?, last.clone()))
}

/// A step from a value to one within it.
#[derive(Clone)]
enum Step {
    Key(String),
    Item(usize),
}

/// Finds the list with most bytes of its own: those in lists within it that may lose rows belong to
/// these.
fn search(value: &Value, path: &mut Vec<Step>, best: &mut (usize, Vec<Step>)) -> usize {
    let mut taken = 0;
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                path.push(Step::Item(index));
                taken += search(item, path, best);
                path.pop();
            }
            let own = length(value).saturating_sub(taken);
            let is_named = matches!(path.last(), Some(Step::Key(_)));
            if is_named && items.len() > LEAST_ROWS {
                if own > best.0 {
                    *best = (own, path.clone());
                }
                taken += own;
            }
        }
        Value::Object(map) => {
            for (key, item) in map {
                path.push(Step::Key(key.clone()));
                taken += search(item, path, best);
                path.pop();
            }
        }
        _ => {}
    }
    taken
}

/// Drops the second half of a list, and returns how many bytes that saves.
fn halve(map: &mut Map<String, Value>, key: &str) -> Option<usize> {
    let items = map.get_mut(key)?.as_array_mut()?;
    let kept = (items.len() / 2).max(LEAST_ROWS);
    let dropped = items.split_off(kept);
    let bytes = dropped.iter().map(|item| length(item) + 1).sum();
    let counts = map.entry("left_out").or_insert_with(|| json!({}));
    let counts = counts.as_object_mut()?;
    let before = counts.get(key).and_then(Value::as_u64).unwrap_or_default();
    counts.insert(key.to_owned(), json!(before + dropped.len() as u64));
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(name: &str, file: &str, line: u32) -> Value {
        json!({"name": name, "file": file, "line": line})
    }

    #[test]
    fn stacks_are_words_of_the_program() {
        let frames = [
            frame("at::empty(long)", "??", 0),
            frame("_call_impl", "/venv/lib/python3.12/site-packages/torch/nn/module.py", 1751),
            frame("forward", "/app/gpt.py", 19),
            frame("<module>", "/app/train.py", 3),
        ];
        let answer = json!({"stacks": [{"bytes": 7, "frames": frames}], "frames": []});
        let said = fit(answer, None);
        assert_eq!(
            said["stacks"][0]["frames"],
            json!(["gpt.py:19 forward", "train.py:3 <module>"])
        );
        assert_eq!(
            fit(json!({"frames": [frames[0]]}), None)["frames"],
            json!(["??:0 at::empty(long)"])
        );
        let deep: Vec<Value> = (0..9).map(|line| frame("f", "a.py", line)).collect();
        assert_eq!(fit(json!({ "frames": deep }), None)["frames"][6], json!("3 more"));
    }

    #[test]
    fn curves_and_zeros_are_left_out() {
        let answer =
            json!({"a": [{"curve": vec![3; 9], "none": vec![0; 16], "events": vec![3; 9]}]});
        assert_eq!(fit(answer, None), json!({"a": [{"events": vec![3; 9]}]}));
        let short = json!({"curve": [1, 2], "none": [0, 0]});
        assert_eq!(fit(short.clone(), None), short);
    }

    #[test]
    fn the_largest_lists_lose_their_last_rows_and_say_so() {
        let rows: Vec<Value> =
            (0..100).map(|row| json!({"row": row, "text": "x".repeat(90)})).collect();
        let answer = json!({"total": 5, "rows": rows, "few": [1, 2]});
        let said = fit(answer.clone(), Some(3000));
        assert!(said.to_string().len() <= 3000, "{}", said.to_string().len());
        let kept = said["rows"].as_array().expect("rows").len();
        assert_eq!(said["left_out"]["rows"], json!(100 - kept));
        assert_eq!((&said["rows"][0]["row"], &said["few"]), (&json!(0), &json!([1, 2])));
        assert_eq!(fit(answer.clone(), None), answer);
        // A text is not cut.
        let text = json!({"text": "x".repeat(900)});
        assert_eq!(fit(text.clone(), Some(10)), text);
    }
}
