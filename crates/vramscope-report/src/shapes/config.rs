//! The widths of a model that the user gives: a list, or a `config.json` of Hugging Face
//! transformers.

use serde_json::{Map, Value};
use vramscope_inference::Widths;

/// The longest list of widths. No model has more.
const MAX_WIDTHS: usize = 64;
/// The largest width. The product of two of them and of the bytes of an element fits 64 bits.
const MAX_WIDTH: u64 = 1 << 28;

/// The widths of a model by its `config.json`, or by a list of numbers with the hidden width first:
/// `1536, 8960, 151936`.
///
/// # Errors
/// A sentence: the text is neither.
pub fn widths_of_text(text: &str) -> Result<Vec<Widths>, String> {
    if text.trim_start().starts_with(['{', '[']) {
        return widths_of_config(text).map_err(|why| format!("config.json: {why}"));
    }
    let words: Vec<&str> =
        text.split([',', ' ', '\n', '\t']).filter(|word| !word.is_empty()).collect();
    if words.len() > MAX_WIDTHS {
        return Err(format!("more than {MAX_WIDTHS} widths"));
    }
    let number = |word: &str| {
        let number = word.parse().ok().filter(|number| (1..=MAX_WIDTH).contains(number));
        let word: String = word.chars().take(20).collect();
        number.ok_or_else(|| format!("{word:?} is no width from 1 to {MAX_WIDTH}"))
    };
    let widths = words.into_iter().map(number).collect::<Result<Vec<u64>, String>>()?;
    let hidden = *widths.first().ok_or("there is no number")?;
    Ok(Widths::given(hidden, &widths, None))
}

/// The widths of a model by its `config.json`. Nested text models (`text_config`) are read.
///
/// # Errors
/// A sentence: the text is no JSON object, or names no hidden size.
pub fn widths_of_config(text: &str) -> Result<Vec<Widths>, String> {
    let value: Value = serde_json::from_str(text).map_err(|error| format!("no JSON: {error}"))?;
    let all = value.as_object().ok_or("no JSON object")?;
    let config = all.get("text_config").and_then(Value::as_object).unwrap_or(all);
    let number = |names: &[&str]| {
        let found = names.iter().find_map(|name| config.get(*name)?.as_u64());
        found.filter(|&number| number > 0)
    };
    let hidden = number(&["hidden_size", "n_embd", "d_model"])
        .ok_or("no hidden_size, n_embd or d_model in it")?;
    let heads = number(&["num_attention_heads", "n_head", "num_heads"]);
    let head = number(&["head_dim"]).or_else(|| heads.map(|heads| hidden / heads));
    let of_heads =
        |count: Option<u64>| head.zip(count).map(|(head, count)| head.saturating_mul(count));
    let queries = of_heads(heads);
    let keys = of_heads(number(&["num_key_value_heads"])).or(queries);
    let inner = number(&["intermediate_size", "n_inner", "d_ff", "ffn_dim"]);
    let fused =
        queries.zip(keys).map(|(queries, keys)| queries.saturating_add(keys.saturating_mul(2)));
    let widths = [
        queries,
        keys,
        fused,
        Some(inner.unwrap_or(hidden.saturating_mul(4))),
        inner.map(|inner| inner.saturating_mul(2)),
        number(&["moe_intermediate_size"]),
        number(&["vocab_size"]),
        number(&["n_positions", "max_position_embeddings"]),
    ];
    let widths: Vec<u64> = widths.into_iter().flatten().collect();
    let mut given = Widths::given(hidden, &widths, element_bytes(config));
    let vocabulary = number(&["vocab_size"]);
    let names = [("f", inner, "intermediate width"), ("V", vocabulary, "vocabulary")];
    let names = names.into_iter().filter_map(|(name, width, what)| Some((width?, name, what)));
    for widths in &mut given {
        widths.names = names.clone().collect();
    }
    Ok(given)
}

fn element_bytes(config: &Map<String, Value>) -> Option<u64> {
    let name = config.get("torch_dtype").or_else(|| config.get("dtype"))?.as_str()?;
    match name.trim_start_matches("torch.") {
        "float32" => Some(4),
        "bfloat16" | "float16" => Some(2),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_config_names_its_widths() {
        let qwen = r#"{"hidden_size": 1536, "intermediate_size": 8960, "vocab_size": 151936,
            "num_attention_heads": 12, "num_key_value_heads": 2, "torch_dtype": "bfloat16"}"#;
        let found = widths_of_config(qwen).expect("a config");
        assert_eq!((found.len(), found[0].element_bytes, found[0].hidden), (1, 2, 1536));
        assert_eq!(found[0].all, [256, 1536, 2048, 8960, 17920, 151_936]);
        let gpt2 = r#"{"n_embd": 768, "n_head": 12, "n_inner": null, "vocab_size": 50257,
            "n_positions": 1024}"#;
        let found = widths_of_config(gpt2).expect("a config");
        assert_eq!((found.len(), found[0].element_bytes, found[1].element_bytes), (2, 4, 2));
        assert_eq!(found[0].all, [768, 1024, 2304, 3072, 50257]);
        assert_eq!(found[0].names, [(50257, "V", "vocabulary")]);
        assert_eq!(widths_of_text("{\"n_embd\": 768}").map(|found| found.len()), Ok(2));
        let listed = widths_of_text("768, 3072 50257").expect("a list");
        assert_eq!((listed[0].hidden, &listed[0].all[..]), (768, &[768, 3072, 50257][..]));
        let many = "8 ".repeat(MAX_WIDTHS + 1);
        assert!(widths_of_text(&many).is_err_and(|why| why.contains("more than 64")));
        for (text, wanted) in
            [("", "no number"), ("768, x", "\"x\""), ("0", "\"0\""), ("{", "config.json")]
        {
            let error = widths_of_text(text).expect_err("no widths");
            assert!(error.contains(wanted), "{error}");
        }
        for (text, wanted) in [("[]", "object"), ("{", "no JSON"), ("{}", "hidden_size")] {
            let error = widths_of_config(text).expect_err("no config");
            assert!(error.contains(wanted), "{error}");
        }
    }
}
